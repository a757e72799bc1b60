// A run on a worker, as its host follows it: what Redis says of its job, and what the host does then.
import { getEventListeners } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { failureLog } from '../../../src/bullmq/failure-log.js'
import type { HostLink, Wake } from '../../../src/bullmq/host-link.js'
import { jobKeys } from '../../../src/bullmq/job-keys.js'
import { LOOK, TELL } from '../../../src/bullmq/job-scripts.js'
import { followRun } from '../../../src/bullmq/remote-run.js'
import type { JobData } from '../../../src/bullmq/wire.js'
import type { RunContext } from '../../../src/engine/runner.js'
import { createRunContext, runInput } from '../../support/run-context.js'

type Look = readonly unknown[]

const ended = (output: object): Look => ['completed', JSON.stringify(output), '', [], [], '', '']
const stands = (state: string): Look => [state, '', '', [], [], '', '']

/** A link to a Redis that answers one look after the other; after the last one it wakes the run no more. */
function open(looks: readonly (Look | Error)[], { seesDead = true, cancelled = 'active', told = [] as number[] } = {}) {
  const left = [...looks]
  const done: unknown[][] = []
  const runs = new Map<string, Wake>()
  const sent: JobData[] = []
  const link = {
    channel: 'host',
    isReady: true,
    seesDead,
    join: (id: string, wake: Wake) => runs.set(id, wake),
    leave: (id: string) => runs.delete(id),
    keysOf: (id: string) => jobKeys({ prefix: 'bull', queue: 'q' }, id),
    send: (_id: string, data: JobData) => Promise.resolve(void sent.push(data)),
    cancel: (...args: unknown[]) => {
      done.push(['cancel', ...args])
      return Promise.resolve(cancelled)
    },
    giveUp: (...args: unknown[]) => Promise.resolve(void done.push(['giveUp', ...args])),
    letGo: (keys: unknown) => void done.push(['letGo', keys]),
    run: (script: unknown, _keys: unknown, args: Readonly<Record<string, unknown>>) => {
      if (script === TELL) {
        done.push(['tell', args['what'], args['number'], args['text']])
        return Promise.resolve(told.shift() ?? 1)
      }
      expect(script).toBe(LOOK)
      const look = left.shift()
      if (left.length > 0) setImmediate(() => runs.get('job')?.())
      done.push(['look', args['after'], args['host'], args['seen']])
      return look instanceof Error ? Promise.reject(look) : Promise.resolve(look ?? stands('active'))
    },
  }
  const lines: string[] = []
  const base = createRunContext()
  const follow = (more: Partial<RunContext> = {}) =>
    followRun({
      link: link as unknown as HostLink,
      jobId: 'job',
      workers: 'workers',
      input: runInput(),
      context: { ...base, ...more },
      logFailure: failureLog((line) => void lines.push(line)),
    })
  const resumed = (startedAt = Date.now()): Partial<RunContext> => ({
    durability: { folder: undefined, key: 'k', isResumed: true, startedAt, saveProgram: () => Promise.resolve() },
  })
  return { base, done, sent, lines, follow, resumed, wake: (output?: string) => runs.get('job')?.(output), runs }
}

describe('a run on a worker', () => {
  it('W1: is sent once, and ends with the output that its host was told', async () => {
    const { follow, sent, wake, done, runs } = open([])
    const output = follow()
    while (sent.length === 0) await Promise.resolve()
    wake('{"final_message":"done"}')
    expect(await output).toEqual({ final_message: 'done' })
    expect(sent).toMatchObject([{ owner: 'main', attempt: 1, host: 'host' }])
    expect(done).toEqual([])
    expect(runs.size).toBe(0)
  })

  it('W5: is read, not sent, when an earlier process has sent it', async () => {
    const { follow, sent, done, resumed } = open([ended({ a: 1 })])
    expect(await follow(resumed())).toEqual({ a: 1 })
    expect(sent).toEqual([])
    // The job does not know this host.
    expect(done).toEqual([['look', '0-0', 'host', '']])
  })

  it('W5: is sent when an earlier process has not, and never after a day', async () => {
    const { follow, sent, resumed } = open([['missing'], ended({ a: 1 })])
    expect(await follow(resumed())).toEqual({ a: 1 })
    expect(sent).toHaveLength(1)
    const old = open([['missing']])
    await expect(old.follow(resumed(Date.now() - 86_400_001))).rejects.toMatchObject({ code: 'INTERRUPTED' })
    expect(old.sent).toEqual([])
  })

  it('W4: is given up when its worker has died, and has failed with INTERRUPTED', async () => {
    const failure = JSON.stringify({ error: 'The worker died.', code: 'INTERRUPTED' })
    const { follow, done, resumed } = open([stands('silent'), ['failed', 'The worker died.', failure, [], [], '', '']])
    await expect(follow(resumed())).rejects.toMatchObject({ code: 'INTERRUPTED', message: 'The worker died.' })
    expect(done.map(([what]) => what)).toEqual(['look', 'giveUp', 'look'])
  })

  it('W6: is not given up when its worker may be coming back', async () => {
    const { follow, done, resumed } = open([stands('silent'), stands('active'), ended({})], { seesDead: false })
    expect(await follow(resumed())).toEqual({})
    expect(done.map(([what]) => what)).toEqual(['look', 'look', 'look'])
  })

  it('W4: that BullMQ itself has found without a worker was interrupted', async () => {
    const { follow, resumed } = open([['interrupted', 'stalled', '', [], [], '', '']])
    await expect(follow(resumed())).rejects.toMatchObject({ code: 'INTERRUPTED' })
  })

  it.each([['missing'], ['failed']])('W3: that is cancelled before it starts ends at once (%s)', async (state) => {
    const { follow, base, done, sent, lines, resumed } = open([state === 'missing' ? [state] : stands(state)])
    base.controller.abort(new Error('not needed'))
    await expect(follow(resumed())).rejects.toThrow('not needed')
    expect(done[0]).toEqual(['cancel', 'job', 'not needed'])
    expect([sent, lines]).toEqual([[], []])
  })

  it('W2: passes on entries from where it was, and what was spent since the last look', async () => {
    const spent: unknown[] = []
    const entries = [
      ['1-0', ['output', 'one ']],
      ['2-0', ['progress', '{"progress":1}']],
      ['3-0', ['output', 'two']],
    ]
    const { follow, base, done, resumed } = open([
      ['active', '', '', entries, [], '{"tokens":5}', '{"tokens":2}'],
      ['active', '', '', [], [], '{"tokens":5}', ''],
      ['active', '', '', [['4-0', ['output', '!']]], [], '{"tokens":6,"cost":1}', ''],
      ended({}),
    ])
    await follow({ ...resumed(), spend: (amount) => void spent.push(amount) })
    expect(base.output()).toBe('one two!')
    expect(base.reported).toEqual([{ progress: 1 }])
    // An earlier process had passed 2 on.
    expect(spent).toEqual([{ tokens: 3 }, { tokens: 1, cost: 1 }])
    expect(done.filter(([what]) => what === 'look')).toEqual([
      ['look', '0-0', 'host', ''],
      ['look', '3-0', 'host', '{"tokens":5}'],
      ['look', '3-0', 'host', '{"tokens":5}'],
      ['look', '4-0', 'host', '{"tokens":6,"cost":1}'],
    ])
    expect(done.at(-1)).toEqual(['letGo', ['bull:q:job:up']])
  })

  it('W2: asks each question once, in order, and withdraws those that are not open any more', async () => {
    const asked: { message: unknown; signal: AbortSignal | undefined; answer: (answer: never) => void }[] = []
    const questions = ['2', '{"message":"When?"}', '1', '{"message":"Which?"}']
    const { follow, done, resumed } = open([
      ['active', '', '', [], questions, '', ''],
      ['active', '', '', [], questions.slice(0, 2), '', ''],
      ended({}),
    ])
    await follow({
      ...resumed(),
      ask: (question, options) =>
        new Promise((resolve) => {
          const { message } = question as { message: unknown }
          asked.push({ message, signal: options?.signal, answer: resolve })
          if (message === 'When?') resolve({ action: 'decline' } as never)
        }),
    })
    expect(asked.map(({ message }) => message)).toEqual(['Which?', 'When?'])
    expect(asked.map(({ signal }) => signal?.aborted)).toEqual([true, true])
    expect(done.filter(([what]) => what === 'tell')).toEqual([['tell', 'answer', '2', '{"action":"decline"}']])
  })

  it('W1: leaves no listener, and nothing of a stream that has nothing', async () => {
    const { follow, base, done, resumed } = open([stands('active'), ended({})])
    const wrapUp = new AbortController()
    await follow({ ...resumed(), wrapUp: wrapUp.signal })
    expect([base.controller.signal, wrapUp.signal].flatMap((signal) => getEventListeners(signal, 'abort'))).toEqual([])
    expect(done.filter(([what]) => what === 'letGo')).toEqual([])
  })

  it('W1: the first output that its host was told counts, whatever wakes it after that', async () => {
    const { follow, sent, wake, done } = open([])
    const output = follow()
    while (sent.length === 0) await Promise.resolve()
    wake('{"a":1}')
    wake()
    wake('{"a":2}')
    expect(await output).toEqual({ a: 1 })
    expect(done).toEqual([])
  })

  it('W2: withdraws what is still asked when it has ended', async () => {
    const { follow, wake, resumed } = open([['active', '', '', [], ['1', '{"message":"Which?"}'], '', '']])
    let asked: AbortSignal | undefined
    const output = follow({
      ...resumed(),
      ask: (_question, options) => {
        asked = options?.signal
        return new Promise(() => undefined)
      },
    })
    while (asked === undefined) await Promise.resolve()
    expect(asked.aborted).toBe(false)
    wake('{}')
    await output
    expect(asked.aborted).toBe(true)
  })

  it('W2: is read to its last entry when it has ended', async () => {
    const entry = (number: number) => [`${number}-0`, ['output', `${number} `]]
    const numbers = Array.from({ length: 65 }, (_, at) => at + 1)
    const [whole, rest] = [numbers.slice(0, 64).map(entry), numbers.slice(64).map(entry)]
    const end = (entries: unknown) => ['completed', '{}', '', entries, [], '', '']
    const { follow, base, done, resumed } = open([end(whole), end(rest)])
    await follow(resumed())
    expect(base.output()).toBe(numbers.map((number) => `${number} `).join(''))
    expect(done.filter(([what]) => what === 'look').map(([, after]) => after)).toEqual(['0-0', '64-0'])
  })

  it('W3: its cancellation is written once', async () => {
    const { follow, base, done, resumed } = open([stands('active'), stands('active'), stands('failed')])
    base.controller.abort(new Error('not needed'))
    await expect(follow(resumed())).rejects.toThrow('not needed')
    expect(done.map(([what]) => what)).toEqual(['cancel', 'look', 'look', 'look'])
  })

  it('W6: the same failure of Redis is logged once, until there is another one', async () => {
    const [first, second] = [new Error('LOADING'), new Error('OOM')]
    const { follow, lines, resumed } = open([first, first, stands('active'), first, second, ended({ a: 1 })])
    expect(await follow(resumed())).toEqual({ a: 1 })
    expect(lines).toEqual(['Job job cannot be followed: LOADING', 'Job job cannot be followed: OOM'])
  })

  it('W2: says a message again, under its number, until Redis has it', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { follow, done, wake, resumed } = open([], { told: [-1, -1, 1] })
    async function* messages() {
      yield 'one'
      yield 'two'
      await new Promise(() => undefined)
    }
    const output = follow({ ...resumed(), messages: messages() })
    const tells = () => done.filter(([what]) => what === 'tell').map(([, , number, text]) => [number, text])
    await vi.advanceTimersByTimeAsync(399)
    expect(tells()).toEqual(Array(2).fill(['host:1', 'one']))
    await vi.advanceTimersByTimeAsync(1)
    expect(tells()).toEqual([...Array<unknown>(3).fill(['host:1', 'one']), ['host:2', 'two']])
    wake('{}')
    await output
    expect(done.at(-1)).toEqual(['letGo', ['bull:q:job:down']])
  })

  it('W2: is told to conclude', async () => {
    const wrapUp = new AbortController()
    wrapUp.abort(new Error('Its budget is spent.'))
    const { follow, done, resumed } = open([ended({})])
    await follow({ ...resumed(), wrapUp: wrapUp.signal })
    expect(done).toContainEqual(['tell', 'wrapUp', '', 'Its budget is spent.'])
  })
})
