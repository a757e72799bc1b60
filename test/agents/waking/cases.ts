/** What is tried with the hooks of each client. A case returns what was seen, and throws when the package does not do what it promises. */
import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { CLIENT_NAMES, type ClientName } from '../../../src/features/hooks/hook-client.js'
import { HOOK_CLIENTS } from '../../../src/features/hooks/clients.js'
import { WOKEN } from './clients.js'
import type { RecordedRequest } from '../model/server.js'
import type { WakingStage } from './stage.js'
import type { Terminal } from './terminal.js'

/** @param inner a client that runs as a subagent */
export type OpenStage = (inner?: ClientName) => WakingStage

export interface WakingCase {
  readonly name: string
  /** A second client that it runs. */
  readonly inner?: ClientName
  /** @param kills how often a case kills its client */
  run(client: ClientName, open: OpenStage, kills: number): Promise<string>
}

const says = (count: number): string => Array.from({ length: count }, (_, n) => `[[say answer ${n + 1}]]`).join(' ')

/** The parts of a conversation that have a result, without the prompt of the script. */
function resultsIn(stage: WakingStage, seconds: number): readonly string[] {
  const entries = stage.requests().at(-1)?.entries ?? []
  return entries.flatMap(({ text }) => (text.includes(`slept ${seconds} until`) ? [text] : []))
}

/** The first request that has a result, and how long after the end of its program it came, in ms. */
function latencyOf(stage: WakingStage, seconds: number): number {
  const found = stage
    .requests()
    .find(({ entries }) => entries.some(({ text }) => text.includes(`slept ${seconds} until`)))
  const endedAt = /slept [\d.]+ until (\d+)/.exec(
    found?.entries.find(({ text }) => text.includes(`slept ${seconds} until`))?.text ?? '',
  )?.[1]
  assert.ok(found !== undefined && endedAt !== undefined, `no request has the result of ${seconds} s`)
  return found.at - Number(endedAt)
}

const three: WakingCase = {
  name: 'tasks of 2, 5 and 9 s in a headless run',
  run: async (_client, open) => {
    const stage = open()
    const goal = `${[2, 5, 9].map((seconds) => stage.launch(seconds)).join(' ')} ${says(6)}`
    const { code, output } = await stage.run(goal).ended
    assert.equal(code, 0, `exit code ${String(code)}: ${output.slice(-300)}`)
    for (const seconds of [2, 5, 9]) assert.equal(resultsIn(stage, seconds).length, 1, `the result of ${seconds} s`)
    const latencies = [2, 5, 9].map((seconds) => latencyOf(stage, seconds))
    return `each once; the model is asked ${Math.max(...latencies)} ms after the end, at the latest`
  },
}

const nine: WakingCase = {
  name: 'nine results one after the other',
  run: async (_client, open) => {
    const stage = open()
    const all = [3, 5, 7, 9, 11, 13, 15, 17, 19]
    const goal = `${all.map((seconds) => stage.launch(seconds)).join(' ')} ${says(12)}`
    const { code } = await stage.run(goal).ended
    assert.equal(code, 0)
    for (const seconds of all) assert.equal(resultsIn(stage, seconds).length, 1, `the result of ${seconds} s`)
    const messages =
      stage
        .requests()
        .at(-1)
        ?.entries.filter(({ text }) => text.includes('slept ')) ?? []
    return `each once, in ${messages.length} messages`
  },
}

/** When the client is killed, in ms after the end of the program of its task. */
export const MOMENTS = [-500, 0, 20, 60, 120, 200, 350, 600, 1000, 2000]

const killed: WakingCase = {
  name: 'SIGKILL of client and server around a delivery, then resume',
  run: async (_client, open, kills) => {
    let marked = 0
    const moments = MOMENTS.filter((_, at) => at % Math.ceil(MOMENTS.length / kills) === 0)
    await inTurn(moments, async (moment) => {
      const stage = open()
      const run = stage.run(`${stage.launch(3)} [[say one]] [[slow 400]] [[say two]] ${says(2)}`)
      const launched = (): number | undefined =>
        stage.requests().find(({ entries }) => entries.at(-1)?.role === 'tool')?.at
      while (launched() === undefined) {
        await Promise.race([wait(10), run.ended.then(() => assert.fail(run.output().slice(-300)))])
      }
      await wait(Math.max(0, (launched() ?? 0) + 3000 + moment - Date.now()))
      run.kill()
      await run.ended
      const id = run.sessionId()
      assert.ok(id !== undefined, 'the run has printed no id')
      // The server of a killed client needs a moment to end.
      await wait(500)
      // Copilot CLI asks the model before its servers are there. A model takes its time.
      const again = stage.run(`[[slow 3000]] ${says(6)}`, id)
      const { code } = await again.ended
      assert.equal(code, 0, `resumed: exit code ${String(code)}: ${again.output().slice(-300)}`)
      const ends = stage
        .requests()
        .flatMap(({ entries }) => entries)
        .filter(({ text }) => isEnd(text))
      assert.notEqual(ends.length, 0, `killed at ${moment} ms: the end of the task was lost`)
      const seen = (stage.requests().at(-1)?.entries ?? []).filter(({ text }) => isEnd(text))
      const repeats = seen.filter(({ text }) => text.includes('possible repeat'))
      marked += repeats.length
      assert.ok(seen.length - repeats.length <= 1, `killed at ${moment} ms: twice without a mark`)
    })
    return `none lost, none twice unmarked; ${marked} of ${moments.length} marked`
  },
}

/** Whether a text has the result of the task, or that it was interrupted. */
const isEnd = (text: string): boolean =>
  text.includes('slept 3 until') || /async task\(s\) (failed|completed)/.test(text)

async function inTurn<Item>(items: readonly Item[], use: (item: Item) => Promise<void>): Promise<void> {
  for (const item of items) await use(item)
}

const two: WakingCase = {
  name: 'two sessions at once in one folder',
  run: async (_client, open) => {
    const stage = open()
    const runs = [3, 4].map((seconds) => stage.run(`number-${seconds} ${stage.launch(seconds)} ${says(4)}`))
    for (const { code, output } of await Promise.all(runs.map((run) => run.ended))) {
      assert.equal(code, 0, output.slice(-300))
    }
    for (const [own, other] of [
      [3, 4],
      [4, 3],
    ] as const) {
      const requests = stage
        .requests()
        .filter(({ entries }) => entries.some(({ text }) => text.includes(`number-${own}`)))
      const texts = (requests.at(-1)?.entries ?? []).map(({ text }) => text)
      assert.equal(
        texts.filter((text) => text.includes(`slept ${own} until`)).length,
        1,
        `the result of session ${own}`,
      )
      assert.ok(
        !texts.some((text) => text.includes(`slept ${other} until`)),
        `session ${own} has the result of ${other}`,
      )
    }
    return 'each has its own result'
  },
}

/** Whether the model has called a tool, and has its answer. */
const hasAnswered = (stage: WakingStage) => () => stage.requests().some(({ step }) => step.key.startsWith('1 '))

/** Launches a task of so many seconds in a terminal, and resolves when the turn has ended. */
async function launchInTerminal(stage: WakingStage, seconds: number): Promise<Terminal> {
  const terminal = await stage.openTerminal()
  await terminal.submit(`${stage.mark} ${stage.launch(seconds)} ${says(4)}`)
  await seen(hasAnswered(stage), terminal)
  await wait(2000)
  return terminal
}

const gotResult = (stage: WakingStage, seconds: number) => () =>
  stage.requests().some(({ entries }) => entries.some(({ text }) => text.includes(`slept ${seconds} until`)))

const idle = (line: string): WakingCase => ({
  name: `idle in a terminal, ${line === '' ? 'with an empty line' : 'with half a line typed'}`,
  run: async (_client, open) => {
    const stage = open()
    const terminal = await launchInTerminal(stage, 8)
    terminal.type(line)
    await seen(gotResult(stage, 8), terminal)
    await wait(2000)
    assert.ok(terminal.screen().includes(line), 'the line has gone')
    assert.equal(resultsIn(stage, 8).length, 1)
    return `woken ${latencyOf(stage, 8)} ms after the end${line === '' ? '' : '; the line stays'}`
  },
})

const escaped: WakingCase = {
  name: 'Esc while a tool waits for the result',
  run: async (_client, open) => {
    const stage = open()
    const terminal = await stage.openTerminal()
    const waiting = stage.waitForTasks()
    await terminal.submit(`${stage.mark} ${stage.launch(8)} ${waiting} ${says(4)}`)
    await seen(hasAnswered(stage), terminal)
    await wait(2000)
    terminal.press('Escape')
    await wait(8000)
    await terminal.submit('go on')
    await seen(gotResult(stage, 8), terminal)
    await wait(2000)
    assert.equal(resultsIn(stage, 8).length, 1)
    return 'once, with the next prompt'
  },
}

const cleared: WakingCase = {
  name: '/clear while a task runs',
  run: async (client, open) => {
    const stage = open()
    const terminal = await launchInTerminal(stage, 12)
    const id = stage.sessionIds()[0]
    await terminal.submit('/clear')
    await wait(3000)
    await terminal.submit(`${stage.mark} cleared ${says(4)}`)
    if (HOOK_CLIENTS[client].hasManySessions === true) {
      // The conversation goes on to exist beside the new one, on the same connection.
      await wait(15_000)
      const isNew = ({ entries }: RecordedRequest): boolean =>
        entries.some(({ text }) => text.includes(`${stage.mark} cleared`))
      const withResult = stage.requests().filter(({ entries }) => entries.some(({ text }) => text.includes('slept 12')))
      assert.equal(withResult.filter(isNew).length, 0, 'the new conversation has it')
      if (withResult.length === 0) {
        terminal.close()
        assert.ok(id !== undefined, 'it has no id')
        await stage.run(says(4), id).ended
        assert.equal(resultsIn(stage, 12).length, 1)
      }
      return 'once, in the conversation that has launched it'
    }
    await seen(gotResult(stage, 12), terminal)
    await wait(2000)
    const [message = '', ...more] = resultsIn(stage, 12)
    assert.equal(more.length, 0, 'it has come twice')
    assert.ok(
      !stage
        .requests()
        .at(-1)
        ?.entries.some(({ text }) => text.includes('"goal_prompt"')),
      'not cleared',
    )
    assert.match(message, /earlier conversation/)
    return 'once, in the new conversation, which says so'
  },
}

const inside = (inner: ClientName): WakingCase => ({
  name: `${HOOK_CLIENTS[inner].title} as a subagent: own results`,
  inner,
  run: async (_client, open) => {
    const stage = open(inner)
    const { tool } = WOKEN[inner]
    const task = JSON.stringify({ subagent_name: 'sleeper', goal_prompt: '3', async: true })
    const goal = `[inner] ${stage.mark} [[tool ${tool} ${task}]] [[say one]] [[say the inner end]]`
    const { code, output } = await stage.run(`${stage.launchInner(goal)} ${says(4)}`).ended
    assert.equal(code, 0, output.slice(-300))
    const isInner = ({ entries }: RecordedRequest): boolean =>
      // Notifications quote the goal.
      entries.some(({ role, text }) => role === 'user' && /(?<!goal ")\[inner\]/.test(text))
    const [inners, outers] = [stage.requests().filter(isInner), stage.requests().filter((one) => !isInner(one))]
    const inIt = (requests: readonly RecordedRequest[], words: RegExp): number =>
      requests.at(-1)?.entries.filter(({ role, text }) => role !== 'assistant' && words.test(text)).length ?? 0
    assert.equal(inIt(inners, /slept 3 until/), 1, 'the result of its task, in the subagent')
    assert.equal(inIt(outers, /(?<!say )the inner end/), 1, 'the answer of the subagent, in the client')
    assert.equal(inIt(outers, /slept 3 until/), 0, 'the result of the task of the subagent, in the client')
    return 'yes'
  },
})

async function seen(condition: () => boolean, terminal: Terminal): Promise<void> {
  for (let waited = 0; !condition(); waited += 100) {
    if (waited > 90_000) assert.fail(`the screen shows: ${terminal.screen()}`)
    await wait(100)
  }
}

const IN_TERMINALS = [idle('half a line'), idle(''), escaped, cleared]

const ALL = [three, nine, ...IN_TERMINALS, killed, two, ...CLIENT_NAMES.map(inside)]

export const casesOf = (client: ClientName): readonly WakingCase[] =>
  ALL.filter(
    (one) =>
      (one !== nine || HOOK_CLIENTS[client].maxContinuations !== undefined) &&
      (!IN_TERMINALS.includes(one) || WOKEN[client].interactive !== undefined) &&
      (one !== cleared || WOKEN[client].interactive?.sessions !== undefined),
  )

export const CASE_NAMES = ALL.map(({ name }) => name)
