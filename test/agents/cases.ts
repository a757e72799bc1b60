/**
 * What is tried with each agent. A case returns the cell of the table: what was seen. It throws when the package does not do what it promises.
 */
import { spawn } from 'node:child_process'
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { TaskAnswer, TaskHandle } from '../../src/index.js'
import { cutText } from '../../src/data/cut-text.js'
import { textOf as textIn } from './model/json.js'
import { questionOf } from './agents.js'
import { writtenFiles } from './written-files.js'
import { AGENT_PRESETS } from '../../src/protocol/agents/presets.js'
import { endless, endlessCommand, until } from './processes.js'
import { errorText } from './model/server.js'
import type { Stage } from './stage.js'

export interface AgentCase {
  readonly name: string
  run(stage: Stage): Promise<string>
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

const outputOf = async (task: TaskHandle): Promise<string> => {
  const { final_message = '' } = await task.result
  return final_message
}

/** Waits until the task has ended. Returns its record. */
async function ended(task: TaskHandle): Promise<TaskHandle['record']> {
  await task.result.catch(() => undefined)
  return task.record
}

const textOf = (record: TaskHandle['record']): string => ('error' in record ? record.error : '')

/** Launches a task whose agent runs a command, and waits until the command runs. */
async function runningCommand(stage: Stage, limits: { readonly timeoutMs?: number } = {}): Promise<TaskHandle> {
  // Some agents leave a long command in the background, and ask the model again.
  const goal = `[[shell ${endlessCommand(stage.mark)}]] [[slow 200000]] [[say done]]`
  const task = stage.launch(goal, { access: 'full' }, limits)
  await until(() => endless(stage.mark).length > 0 || task.record.status !== 'running', 'a running command')
  assert.notEqual(endless(stage.mark).length, 0, `the command has not started: ${textOf(task.record)}`)
  return task
}

export const launchAndResult: AgentCase = {
  name: 'goal to result',
  run: async (stage) => {
    const startedAt = Date.now()
    const task = stage.launch('[[shell echo hello]] [[say the answer]]', { access: 'full' })
    assert.equal(await outputOf(task), 'the answer')
    return seconds(Date.now() - startedAt)
  },
}

const progress: AgentCase = {
  name: 'progress',
  run: async (stage) => {
    if (stage.agent.showsEndedCommands === true) return 'shows a command when it has ended'
    const host = stage.host({ access: 'full' })
    const goal = `${stage.mark} [[shell ${endlessCommand(stage.mark)}]] [[say done]]`
    const task = host.launch('agent', goal)
    await until(() => endless(stage.mark).length > 0, 'a running command')
    const shown = (): boolean => host.manager.readOutput(task.id)?.text.includes(endlessCommand(stage.mark)) === true
    await until(shown, 'the command in the output', 5000)
    task.cancel()
    await ended(task)
    return 'shows the command that runs'
  },
}

/** Enough for an agent to start its command; on a busy machine, some take a minute. */
const deadlineMs = ({ isSecond }: Stage): number => (isSecond ? 120_000 : 30_000)

const cancel: AgentCase = {
  name: 'cancel during a command',
  run: async (stage) => {
    const task = await runningCommand(stage)
    const startedAt = Date.now()
    task.cancel()
    await until(() => endless(stage.mark).length === 0, 'all ended')
    const goneMs = Date.now() - startedAt
    const { status } = await ended(task)
    assert.equal(status, 'cancelled')
    assert.ok(goneMs < 6000, `its command ran on for ${goneMs} ms`)
    return `gone after ${goneMs} ms`
  },
}

const deadline: AgentCase = {
  name: 'deadline during a command',
  run: async (stage) => {
    const limitMs = deadlineMs(stage)
    const startedAt = Date.now()
    const task = await runningCommand(stage, { timeoutMs: limitMs })
    const record = await ended(task)
    assert.equal(record.status, 'failed')
    assert.equal('errorCode' in record ? record.errorCode : '', 'TASK_TIMEOUT')
    assert.equal(endless(stage.mark).length, 0, 'its command runs on')
    return `failed, ${Date.now() - startedAt - limitMs} ms later`
  },
}

const deadlineAfterResult: AgentCase = {
  name: 'deadline after a printed result',
  run: async (stage) => {
    const { preset } = stage.agent
    if (preset === undefined || AGENT_PRESETS[preset].goesOn !== true) return 'has its result when it ends'
    const call = JSON.stringify({ command: endlessCommand(stage.mark), description: 'waits', run_in_background: true })
    const goal = `[[tool Bash ${call}]] [[say the result]]`
    const task = stage.launch(goal, { access: 'full' }, { timeoutMs: deadlineMs(stage) })
    const output = (await task.result) as { final_message?: string; terminate_reason?: string }
    assert.equal(output.final_message, 'the result')
    assert.equal(output.terminate_reason, 'TASK_TIMEOUT', 'it has ended before its deadline')
    assert.equal(endless(stage.mark).length, 0, 'its command runs on')
    return 'completed with the result'
  },
}

const access: AgentCase = {
  name: 'access',
  run: async (stage) => {
    if (stage.agent.way === 'ACP') return 'by `mode` and `permissions`'
    const goal = (file: string): string =>
      `[[write ${join(stage.place.cwd, file)} ${stage.mark}]] [[say wrote ${file}]]`
    const has = (file: string): boolean => existsSync(join(stage.place.cwd, file))
    const read = stage.launch(goal('one.txt'))
    const { denied } = (await read.result) as { denied?: readonly string[] }
    assert.ok(!has('one.txt'), 'it has written without access')
    await stage.launch(goal('two.txt'), { access: 'write' }).result
    assert.ok(has('two.txt'), 'it has not written with access')
    return denied === undefined
      ? 'read writes nothing, and does not say so'
      : `read writes nothing: denied ${denied.map((name) => cutText(name.replaceAll(stage.place.cwd, '.').replaceAll(stage.mark, 'text'), 60)).join(', ')}`
  },
}

const permission: AgentCase = {
  name: 'permission',
  run: async (stage) => {
    if (stage.agent.way === 'program') return 'nobody is asked'
    const file = join(stage.place.cwd, 'asked.txt')
    const task = stage.launch(`[[shell touch ${file}]] [[say asked]]`)
    const questions = () => ('questions' in task.record ? (task.record.questions ?? []) : [])
    await until(() => questions().length > 0 || task.record.status !== 'running', 'a question')
    const [question] = questions()
    const isThere = existsSync(file)
    assert.ok(!isThere, 'the command has run without a permission')
    if (question === undefined) return `asks nothing, and does nothing: ${task.record.status}`
    const [, yes = ''] = /"(Yes|Allow[^"]*|Approve[^"]*)"/.exec(JSON.stringify(question)) ?? []
    task.answer(question.id, yes)
    assert.equal(await outputOf(task), 'asked')
    assert.ok(existsSync(file), 'the command has not run after the permission')
    return 'asks the owner, and does it after a yes'
  },
}

/** An answer with `blue` for each field that offers it. */
function blueAnswer(schema: Readonly<Record<string, unknown>>): TaskAnswer {
  const fields = Object.entries((schema['properties'] ?? {}) as Readonly<Record<string, object>>)
  const offers = fields.filter(([, field]) => JSON.stringify(field).includes('"blue"'))
  return { action: 'accept', content: Object.fromEntries(offers.map(([name]) => [name, 'blue'])) }
}

const question: AgentCase = {
  name: 'question of the model',
  run: async (stage) => {
    const { tool, input } = questionOf(stage.agent)
    const task = stage.launch(`[[ask ${tool} ${JSON.stringify(input)}]] [[say asked]]`)
    const questions = () => ('questions' in task.record ? (task.record.questions ?? []) : [])
    await until(() => questions().length > 0 || task.record.status !== 'running', 'a question')
    const [asked] = questions()
    if (asked !== undefined) task.answer(asked.id, blueAnswer(asked.schema))
    const output = await outputOf(task)
    const requests = stage.requests()
    if (!requests.some(({ tools }) => tools.some(({ name }) => name === tool))) return 'its model has no tool for it'
    assert.equal(output, 'asked')
    const results = requests.flatMap(({ entries }) => entries.filter(({ role }) => role === 'tool'))
    const result = textIn(results.at(-1)?.text)
    if (asked === undefined) return `nobody is asked; the model gets: ${cutText(textOfResult(result), 100)}`
    assert.match(asked.message, /Which colour\?/)
    assert.match(result, /blue/, 'the answer has not reached the model')
    return 'asks the owner, and the model gets the answer'
  },
}

/** The text in the JSON of a tool's result. */
const textOfResult = (result: string): string => {
  const texts = [...result.matchAll(/"(?:content|text|output|error)":"((?:[^"\\]|\\.)*)"/g)].map(
    ([, text = '']) => text,
  )
  return (texts[0] ?? result).replaceAll('\\n', ' ')
}

const kilobytes = (bytes: number): string => (bytes < 1000 ? `${bytes} bytes` : `${Math.round(bytes / 1000)} kB`)

const written: AgentCase = {
  name: 'writes',
  run: async (stage) => {
    const before = new Set(
      [...writtenFiles(stage.place.home), ...writtenFiles(stage.place.cwd)].map(({ path }) => path),
    )
    assert.equal(await outputOf(stage.launch('[[say done]]')), 'done')
    const isNew = ({ path }: { readonly path: string }): boolean => !before.has(path)
    const files = writtenFiles(stage.place.home).filter(isNew)
    const own = writtenFiles(stage.place.cwd).filter((file) => isNew(file) && !file.path.includes('/.git/'))
    const parts = [...new Set(files.map(({ folder }) => folder))].sort().map((folder) => {
      const those = files.filter((file) => file.folder === folder)
      const bytes = those.reduce((sum, file) => sum + file.bytes, 0)
      return `\`~/${folder}\` ${those.length} ${those.length === 1 ? 'file' : 'files'}, ${kilobytes(bytes)}`
    })
    const inFolder = own.length === 0 ? 'nothing in its working folder' : `${own.length} files in its working folder`
    return [...parts, inFolder].join('; ')
  },
}

const resumed: AgentCase = {
  name: 'costs',
  run: async (stage) => {
    const host = stage.host()
    const costOf = async (launch: () => TaskHandle, word: string): Promise<string> => {
      const before = stage.model.requests.length
      const startedAt = Date.now()
      assert.equal(await outputOf(launch()), word)
      const took = seconds(Date.now() - startedAt)
      const isOwn = ({ entries }: { readonly entries: readonly { readonly text: string }[] }): boolean =>
        entries.some(({ text }) => text.includes(stage.mark))
      const own = stage.model.requests.slice(before).filter(isOwn)
      const first = own.find(({ step }) => step.key !== '')
      return `${own.length} ${own.length === 1 ? 'request' : 'requests'}, the first ${kilobytes(first?.bytes ?? 0)}, ${took}`
    }
    let last = ''
    const first = await costOf(() => {
      const task = host.launch('agent', `${stage.mark} [[say one]]`)
      last = task.id
      return task
    }, 'one')
    const next = await costOf(() => host.continue(last, `${stage.mark} [[say two]]`), 'two')
    return `new: ${first}; continued: ${next}`
  },
}

const continued: AgentCase = {
  name: 'continue, three times',
  run: async (stage) => {
    const host = stage.host()
    const first = host.launch('agent', '[[say one]]')
    assert.equal(await outputOf(first), 'one')
    let last = first.id
    for (const word of ['two', 'three', 'four']) {
      const next = host.continue(last, `[[say ${word}]]`)
      assert.equal(await outputOf(next), word)
      last = next.id
    }
    // An agent may ask for something else afterwards, such as a title.
    const spoken = stage.model.requests
      .filter(({ step }) => step.key.includes('[[say four]]'))
      .map(({ entries }) => entries.filter(({ role }) => role === 'assistant').length)
    assert.ok(spoken.includes(3), `no request has the whole conversation: ${spoken.join(', ')} answers`)
    return 'the model gets the whole conversation'
  },
}

const worktree: AgentCase = {
  name: 'worktree',
  run: async (stage) => {
    if (stage.agent.way === 'ACP') return 'no such option'
    const task = stage.launch('[[shell echo new > new.txt]] [[say wrote it]]', {
      access: 'full',
      isolation: 'worktree',
    })
    const { worktree: made } = (await task.result) as { worktree?: { files?: number; path?: string } }
    assert.equal(made?.files, 1, 'the worktree has no new file')
    assert.ok(!existsSync(join(stage.place.cwd, 'new.txt')), 'the file is in the checkout')
    stage.git('worktree', 'remove', '--force', made.path ?? '')
    return 'its file is in the worktree'
  },
}

const twoAtOnce: AgentCase = {
  name: 'two at once in one folder',
  run: async (stage) => {
    const host = stage.host()
    const tasks = ['one', 'two'].map((word) => host.launch('agent', `[[slow 1000]] [[say ${word}]]`))
    assert.deepEqual(await Promise.all(tasks.map((task) => outputOf(task))), ['one', 'two'])
    return 'each has its own result'
  },
}

/** Runs `host.ts`. Its last line is JSON. */
function spawnHost(stage: Stage, action: string, goal: string) {
  const script = fileURLToPath(new URL('host.ts', import.meta.url))
  const settings = { program: stage.agent.program, place: stage.place, file: join(stage.place.home, 'tasks.db'), goal }
  const child = spawn(process.execPath, ['--import', 'tsx', script, action, JSON.stringify(settings)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
  })
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const closed = new Promise<string>((resolve) => child.once('close', () => resolve(said)))
  return { child, closed, said: () => said }
}

/** Kills a host during the command of its agent, and lets the next host take over. Returns what that one says. */
async function afterKill(stage: Stage, action: string, isDurable: boolean): Promise<unknown> {
  const command = `touch ${join(stage.place.home, 'started')}; sleep 4`
  const first = spawnHost(stage, isDurable ? 'launch-durable' : 'launch', `[[shell ${command}]] [[say survived]]`)
  try {
    await until(() => existsSync(join(stage.place.home, 'started')), 'started')
  } finally {
    first.child.kill('SIGKILL')
    await first.closed
  }
  const second = spawnHost(stage, action, '[[say continued]]')
  stage.signal.addEventListener('abort', () => second.child.kill('SIGKILL'), { once: true })
  const said = await second.closed
  return JSON.parse(said.trim().split('\n').at(-1) ?? '')
}

const adopted: AgentCase = {
  name: 'kill -9 of the host, with survivesHost',
  run: async (stage) => {
    if (stage.agent.way === 'ACP') return 'no such option'
    const said = await afterKill(stage, 'adopt', true)
    assert.deepEqual(said, { status: 'completed', final_message: 'survived' })
    return 'the next host delivers the result'
  },
}

const continuedAfterKill: AgentCase = {
  name: 'kill -9 of the host, then continue',
  run: async (stage) => {
    const said = await afterKill(stage, 'continue', false)
    assert.deepEqual(said, { before: 'failed', status: 'completed', final_message: 'continued' })
    return 'reported as interrupted, and continued'
  },
}

/** The maximum length of an error in a cell, in characters. */
const MAX_ERROR_CHARS = 150

/** How long an agent may try again before it is stopped. */
const MAX_RETRY_MS = 180_000

const STATUSES = [400, 401, 429, 500, 529]

/** The first sentence or so of an error, without what differs from run to run. */
function shortError(error: string, { model }: Stage): string {
  const [first = ''] = error.split(/\n| Command /)
  const text = first
    .replace(/^Agent \S+ /, 'Agent ')
    .replaceAll(model.url, 'URL')
    .replaceAll(new URL(model.url).host, 'HOST')
    .replace(/[\d.]+ seconds/, 'N seconds')
  return text.length > MAX_ERROR_CHARS ? `${cutText(text, MAX_ERROR_CHARS)}…` : text
}

const apiError = (status: number): AgentCase => ({
  name: `error ${status}`,
  run: async (stage) => {
    const startedAt = Date.now()
    const task = stage.launch(`[[error ${status}]]`)
    const record = await Promise.race([ended(task), wait(MAX_RETRY_MS, undefined, { ref: false })])
    if (record === undefined) {
      task.cancel()
      await ended(task)
      return `asks again for longer than ${seconds(MAX_RETRY_MS)}: ${stage.requests().length} requests`
    }
    if (stage.agent.answersErrors === true) {
      assert.equal(record.status, 'completed')
      return `completes with the answer: ${shortError(await outputOf(task), stage)}`
    }
    assert.equal(record.status, 'failed')
    const error = textOf(record)
    const code = 'errorCode' in record ? record.errorCode : undefined
    const tried = stage.requests().length
    const isNamed =
      error.includes(errorText(status)) || error.includes(String(status)) ? '' : ' (not what the API said)'
    return `${shortError(error, stage)}${isNamed} \`${code ?? 'no code'}\`, ${tried} ${tried === 1 ? 'request' : 'requests'}, ${seconds(Date.now() - startedAt)}`
  },
})

export const CASES: readonly AgentCase[] = [
  launchAndResult,
  progress,
  cancel,
  deadline,
  deadlineAfterResult,
  access,
  permission,
  question,
  continued,
  adopted,
  continuedAfterKill,
  worktree,
  twoAtOnce,
  written,
  resumed,
  ...STATUSES.map(apiError),
]
