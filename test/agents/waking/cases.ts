/** What is tried with the hooks of each client. A case returns what was seen, and throws when the package does not do what it promises. */
import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import type { ClientName } from '../../../src/features/hooks/hook-client.js'
import { HOOK_CLIENTS } from '../../../src/features/hooks/clients.js'
import { WOKEN } from './clients.js'
import type { WakingStage } from './stage.js'

export interface WakingCase {
  readonly name: string
  /** @param kills how often a case kills its client */
  run(client: ClientName, open: () => WakingStage, kills: number): Promise<string>
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
      const again = stage.run(says(6), id)
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

const idle: WakingCase = {
  name: 'idle in a terminal, with half a line typed',
  run: async (_client, open) => {
    const stage = open()
    const terminal = await stage.openTerminal()
    terminal.type(`${stage.mark} ${stage.launch(8)} ${says(3)}`)
    await wait(2000)
    terminal.enter()
    // The prompt itself has the words of the answers.
    await seen(() => stage.requests().some(({ entries }) => entries.at(-1)?.role === 'tool'), terminal.screen)
    await wait(2000)
    terminal.type('half a line')
    await seen(
      () => stage.requests().some(({ entries }) => entries.some(({ text }) => hasResult(text))),
      terminal.screen,
    )
    await wait(1000)
    assert.match(terminal.screen(), /half a line/)
    assert.equal(resultsIn(stage, 8).length, 1)
    return `woken ${latencyOf(stage, 8)} ms after the end; the line stays`
  },
}

const hasResult = (text: string): boolean => text.includes('slept 8 until')

async function seen(condition: () => boolean, show: () => string): Promise<void> {
  for (let waited = 0; !condition(); waited += 100) {
    if (waited > 90_000) assert.fail(`the screen shows: ${show()}`)
    await wait(100)
  }
}

const ALL = [three, nine, idle, killed, two]

export const casesOf = (client: ClientName): readonly WakingCase[] =>
  ALL.filter(
    (one) =>
      (one !== nine || HOOK_CLIENTS[client].maxContinuations !== undefined) &&
      (one !== idle || WOKEN[client].interactive !== undefined),
  )

export const CASE_NAMES = ALL.map(({ name }) => name)
