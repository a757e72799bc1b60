/** A client with its hooks in a new HOME and a new folder, and the scripted model that it asks. */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { HOOK_CLIENTS } from '../../../src/features/hooks/clients.js'
import { argumentsOf } from '../../../src/features/hooks/client-process.js'
import { planOf, writeHooks } from '../../../src/features/hooks/configure.js'
import type { ClientName } from '../../../src/features/hooks/hook-client.js'
import { AGENTS } from '../agents.js'
import { cacheFolder } from '../install.js'
import type { RecordedRequest, ScriptedModel } from '../model/server.js'
import { WOKEN } from './clients.js'
import { openTerminal, type Terminal } from './terminal.js'

const MAIN = fileURLToPath(new URL('../../../dist/src/cli/main.js', import.meta.url))

/** Variables of the machine's own agents, which must not reach those of the suite. */
const OWN = /^(ANTHROPIC|CLAUDE|OPENAI|CODEX|GEMINI|GOOGLE|QWEN|OPENCODE|COPILOT|GITHUB|GH)_/

/** Waits for the seconds of its goal, and prints when it ended. */
const SLEEPER = 'setTimeout(() => console.log(`slept ${process.argv[1]} until ${Date.now()}.`), process.argv[1] * 1000)'

export interface Run {
  /** Resolves to what it has printed when it has ended. */
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>
  readonly output: () => string
  /** The id of its conversation. */
  readonly sessionId: () => string | undefined
  /** Kills the client, and the server that it has started. */
  kill(): void
}

export interface WakingStage {
  readonly mark: string
  /** Runs the client headless. `goal` is a script of the model. */
  run(goal: string, sessionId?: string): Run
  /** The conversations that clients in a terminal have begun. */
  sessionIds(): readonly string[]
  /** Starts the client in a terminal, and waits until it is ready. */
  openTerminal(): Promise<Terminal>
  /** A call of the tool `task` for a task that takes so many seconds. */
  launch(seconds: number): string
  /** A call of the tool that waits for what runs. */
  waitForTasks(): string
  /** A call of the tool `task` that runs the client of `inner` with this script. */
  launchInner(goal: string): string
  /** The requests of this stage's conversations. */
  requests(): readonly RecordedRequest[]
  close(): Promise<void>
}

/** A client that runs as a subagent in the same folder, with its own hooks. */
export interface InnerClient {
  readonly name: ClientName
  readonly command: string
}

export function openWakingStage(
  name: ClientName,
  command: string,
  model: ScriptedModel,
  prefix: string,
  inner?: InnerClient,
): WakingStage {
  const folder = mkdtempSync(join(cacheFolder, prefix))
  const [home, cwd] = [join(folder, 'home'), join(folder, 'project')]
  mkdirSync(home)
  mkdirSync(cwd)
  const { tool, args, interactive, sessionIn, sessionFolder } = WOKEN[name]
  const others = Object.keys(process.env).filter((variable) => OWN.test(variable))
  const own = {
    HOME: home,
    PWD: cwd,
    XDG_CONFIG_HOME: join(home, '.config'),
    XDG_CACHE_HOME: join(home, '.cache'),
    XDG_DATA_HOME: join(home, '.local/share'),
    XDG_STATE_HOME: join(home, '.local/state'),
    ...agentOf(name).setUp(home, model.url),
  }
  const env = { ...process.env, ...Object.fromEntries(others.map((variable) => [variable, undefined])), ...own }
  const config = join(folder, 'agent-tasks.config.json')
  const sleeper = {
    name: 'sleeper',
    description: 'Sleeps.',
    command: process.execPath,
    args: ['-e', SLEEPER, '{goal}'],
  }
  const server = [process.execPath, MAIN, 'mcp', '--config', config]
  const addHooks = (client: ClientName): void => {
    WOKEN[client].addServer(home, cwd, server)
    const wakesIdle = HOOK_CLIENTS[client].wakeArgs !== undefined
    writeHooks(planOf({ client, scope: 'user', folder: cwd, env, command: [process.execPath, MAIN], wakesIdle }))
  }
  addHooks(name)
  const subagents: object[] = [sleeper]
  if (inner !== undefined) {
    const agent = agentOf(inner.name)
    const { asSubagent = [] } = WOKEN[inner.name]
    const variables = inner.name === name ? own : { ...own, ...agent.setUp(home, model.url) }
    if (inner.name !== name) addHooks(inner.name)
    subagents.push({
      name: 'inner',
      description: 'Runs a client.',
      command: inner.command,
      args: asSubagent,
      env: variables,
      agent: agent.preset,
      access: 'full',
      trust: true,
    })
  }
  writeFileSync(config, JSON.stringify({ maxAsyncTasks: 10, store: '.store', subagents }))
  const mark = basename(folder)
  const sessionIdIn = (output: string): string | undefined =>
    sessionFolder === undefined
      ? sessionIn.exec(output)?.[1]
      : readdirSync(join(home, sessionFolder)).find((name) => /^[\da-f]{8}-[\da-f-]+$/.test(name))
  const children = new Set<ChildProcess>()
  const terminals = new Set<Terminal>()
  const kill = (child: ChildProcess): void => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    process.kill(-child.pid, 'SIGKILL')
  }
  return {
    mark,
    sessionIds: () => {
      const { folder: sessions = '', id } = interactive?.sessions ?? {}
      const files = existsSync(join(home, sessions)) ? readdirSync(join(home, sessions), { recursive: true }) : []
      return files.flatMap((file) => id?.exec(String(file))?.[1] ?? [])
    },
    openTerminal: async () => {
      if (interactive === undefined) throw new Error(`${name} is not tried in a terminal`)
      interactive.prepare(home, cwd)
      const terminal = openTerminal(mark, cwd, [command, ...interactive.args], env)
      terminals.add(terminal)
      if (interactive.accept !== undefined) {
        await terminal.shows(interactive.accept.question)
        for (const key of interactive.accept.keys) terminal.press(key)
      }
      await terminal.shows(interactive.ready)
      await wait(1000)
      return terminal
    },
    launch: (seconds) => launchOf(tool, 'sleeper', String(seconds)),
    waitForTasks: () => `[[tool ${tool.replace(/task$/, 'wait_for_async_tasks')} {"timeout_seconds":50}]]`,
    launchInner: (goal) => launchOf(tool, 'inner', goal),
    run: (goal, sessionId) => {
      const child = spawn(command, [...args(`${mark} ${goal}`, sessionId)], {
        cwd,
        env,
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      children.add(child)
      let output = ''
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => (output += text))
      }
      const ended = new Promise<{ code: number | null; output: string }>((resolve) => {
        child.once('error', (error) => resolve({ code: null, output: String(error) }))
        child.once('close', (code) => resolve({ code, output }))
      })
      return { ended, output: () => output, sessionId: () => sessionIdIn(output), kill: () => kill(child) }
    },
    requests: () =>
      model.requests.filter(
        ({ entries, tools }) => tools.length > 0 && entries.some(({ text }) => text.includes(mark)),
      ),
    close: async () => {
      for (const child of children) kill(child)
      for (const terminal of terminals) terminal.close()
      // Codex leaves a server behind, with the MCP servers of its conversations.
      for (const pid of processesWith(folder)) killQuietly(pid)
      // A client in a terminal writes its files while it ends.
      await wait(terminals.size > 0 ? 3000 : 200)
      rmSync(folder, { recursive: true, force: true, maxRetries: 40, retryDelay: 100 })
    },
  }
}

function agentOf(name: ClientName) {
  const { program } = WOKEN[name]
  const agent = AGENTS.find((one) => one.program === program)
  if (agent === undefined) throw new Error(`there is no agent ${program}`)
  return agent
}

/** A script in the goal is a string of JSON without brackets, so that it is no part of the script around it. */
function launchOf(tool: string, subagent_name: string, goal_prompt: string): string {
  const json = JSON.stringify({ subagent_name, goal_prompt, async: true })
  return `[[tool ${tool} ${json.replaceAll('[', '\\u005b').replaceAll(']', '\\u005d')}]]`
}

/** The process may have ended meanwhile. */
function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** The processes whose command line has a text. */
const processesWith = (text: string): readonly number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid && argumentsOf(pid).some((argument) => argument.includes(text)))

/** Removes what runs with this prefix have left. */
export function removeStages(prefix: string): void {
  for (const left of readdirSync(cacheFolder).filter((name) => name.startsWith(prefix))) {
    rmSync(join(cacheFolder, left), { recursive: true, force: true })
  }
}
