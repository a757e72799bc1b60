/** What a case works with: a throw-away HOME, a repository as working directory, a host, and the scripted model. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createAgentTasks, type OutputRunner, type TaskHandle } from '../../src/index.js'
import type { Place, RunChoices, TestedAgent } from './agents.js'
import { cacheFolder } from './install.js'
import type { ScriptedModel } from './model/server.js'

/** Variables of the machine's own agents, which must not reach those of the suite. */
const OWN = /^(ANTHROPIC|CLAUDE|OPENAI|CODEX|GEMINI|GOOGLE|QWEN|OPENCODE|COPILOT|GITHUB|GH)_/

const hostOf = (runner: OutputRunner) => createAgentTasks({ subagents: { agent: runner } })

/** What the names of this process's folders begin with: several suites may run at once. */
export const RUN_PREFIX = `run-${process.pid}-`

export interface Stage {
  readonly agent: TestedAgent
  readonly model: ScriptedModel
  readonly place: Place
  /** A text that no other case has, for its prompts and commands. */
  readonly mark: string
  /** The requests whose prompt has the mark. */
  requests(): ScriptedModel['requests']
  launch(goal: string, choices?: RunChoices, limits?: { readonly timeoutMs?: number }): TaskHandle
  host(choices?: RunChoices): ReturnType<typeof hostOf>
  git(...args: readonly string[]): string
  /** Whether the case has failed once. */
  readonly isSecond: boolean
  /** Aborts when the case is over. */
  readonly signal: AbortSignal
  close(): Promise<void>
}

/** Makes the folders of one case. */
export function openStage(agent: TestedAgent, command: string, model: ScriptedModel, isSecond = false): Stage {
  const folder = mkdtempSync(join(cacheFolder, RUN_PREFIX))
  const [home, cwd] = [join(folder, 'home'), join(folder, 'project')]
  mkdirSync(home)
  mkdirSync(cwd)
  const foreign = Object.keys(process.env).filter((name) => OWN.test(name))
  const env = {
    ...Object.fromEntries(foreign.map((name) => [name, undefined])),
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    XDG_CACHE_HOME: join(home, '.cache'),
    XDG_DATA_HOME: join(home, '.local/share'),
    XDG_STATE_HOME: join(home, '.local/state'),
    ...agent.setUp(home, model.url),
  }
  const place: Place = { command, home, cwd, env }
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { cwd, encoding: 'utf8' }).trim()
  git('init', '-q', '-b', 'main')
  writeFileSync(join(cwd, 'README'), 'a project\n')
  git('add', '.')
  git('commit', '-q', '-m', 'one')
  const over = new AbortController()
  const hosts: ReturnType<typeof hostOf>[] = []
  const host: Stage['host'] = (choices = {}) => {
    const made = hostOf(agent.runner(place, choices))
    hosts.push(made)
    return made
  }
  return {
    agent,
    model,
    place,
    mark: basename(folder),
    requests: () => model.requests.filter(({ step }) => step.key.includes(basename(folder))),
    launch: (goal, choices, limits) => host(choices).launch('agent', `${basename(folder)} ${goal}`, limits),
    host,
    git,
    isSecond,
    signal: over.signal,
    close: async () => {
      over.abort()
      await Promise.all(hosts.map((one) => one.dispose()))
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
    },
  }
}
