/** What a crash leaves of keys, limits of subagents and rates: F18. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, type AsyncTaskManagerOptions, type RunnerDefinition } from '../../../src/index.js'
import { memoryStore, type MemoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick } from '../../support/limited-tasks.js'

const interrupted = { attempts: 5, on: ['interrupted'] } as const

/** The next process on what a store held when the last one was killed. */
async function nextProcess(
  from: MemoryStore,
  definition: Partial<RunnerDefinition> = {},
  { now = 9_000, ...options }: AsyncTaskManagerOptions & { readonly now?: number } = {},
) {
  const store = from.copy()
  const clock = createManualClock(now)
  const errors: unknown[] = []
  const started: string[] = []
  const ends = new Map<string, () => void>()
  const manager = new AsyncTaskManager({
    store,
    clock,
    graceMs: 0,
    maxAsyncTasks: 10,
    onError: (error) => errors.push(error),
    findRunner: () => ({
      run: ({ id }, { signal }) =>
        new Promise((resolve) => {
          started.push(id)
          ends.set(id, () => resolve({}))
          signal.addEventListener('abort', () => resolve({}))
        }),
      ...definition,
    }),
    ...options,
  })
  onTestFinished(() => manager.dispose())
  const recovery = await manager.recovered
  const settle = async () => {
    for (let n = 0; n < 4; n += 1) await tick()
  }
  await settle()
  return {
    manager,
    store,
    clock,
    errors,
    recovery,
    started,
    end: async (id: string) => {
      ends.get(id)?.()
      await settle()
    },
    pass: async (ms: number) => {
      clock.advance(ms)
      await settle()
    },
  }
}

const stateOf = (store: MemoryStore, name: string) =>
  store.contents().featureStates.find(({ id }) => id === `rates/${name}`)?.data

describe('keys and limits when a process dies', () => {
  it('F18: what ran has its key again before what waited for it, and that waits in its order', async () => {
    const store = memoryStore()
    const { launch } = limitedTasks({ store, maxAsyncTasks: 10 })
    const keyed = (id: string, priority = 0) => launch(id, { concurrencyKey: 'k', priority }, { retry: interrupted })
    await keyed('a')
    await keyed('b')
    await keyed('c', 1)
    await launch('other', { concurrencyKey: 'x' }, { retry: interrupted })
    const next = await nextProcess(store, { retry: interrupted })
    expect(next.recovery).toMatchObject({ retried: ['a', 'other'], queued: ['b', 'c'] })
    expect(next.manager.getTask('b')).toMatchObject({ status: 'queued', concurrencyKey: 'k' })
    expect(next.started).toEqual(['a', 'other'])
    await next.end('a')
    await next.end('c')
    expect(next.started).toEqual(['a', 'other', 'c', 'b'])
    await next.end('b')
    await next.end('other')
    expect(next.manager.registry.limits.size).toBe(0)
  })

  it('F18: a limit of a subagent is that which its definition has now', async () => {
    const store = memoryStore()
    const { launch } = limitedTasks({ store, maxAsyncTasks: 10 })
    await launch('a', {}, { maxConcurrent: 1 })
    for (const id of ['b', 'c', 'd']) await launch(id, {}, { maxConcurrent: 1 })
    const next = await nextProcess(store, { maxConcurrent: 2 })
    expect(next.recovery).toMatchObject({ interrupted: ['a'], queued: ['b', 'c', 'd'] })
    expect(next.started).toEqual(['b', 'c'])
  })

  it('F18: the age of what waits goes on from its launch', async () => {
    const store = memoryStore()
    const { launch, pass, manager } = limitedTasks({ store, whenFull: 'queue' })
    await launch('a')
    await launch('old')
    await pass(61_000)
    await launch('new', { priority: 1 })
    await manager.stored()
    const next = await nextProcess(store, {}, { now: 70_000, maxAsyncTasks: 1 })
    expect(next.started).toEqual(['old'])
    const repeating = memoryStore()
    const first = limitedTasks({ store: repeating, whenFull: 'queue' })
    await first.launch('a', {}, { retry: interrupted })
    await first.launch('old')
    const waiting = await nextProcess(repeating, { retry: interrupted }, { now: 62_000, maxAsyncTasks: 1 })
    const input = { id: 'new', subagentName: 'agent', goalPrompt: 'g', priority: 1, whenFull: 'queue' } as const
    waiting.manager.launch(input, () => ({}))
    await waiting.end('a')
    expect(waiting.started).toEqual(['a', 'old'])
  })
})

describe('the rate of a subagent when a process dies', () => {
  const rate = { limit: 2, perMs: 10_000 }

  it('F18: a start is stored in the same write as the task that starts', async () => {
    const store = memoryStore()
    const writes: string[][] = []
    const write = store.write.bind(store)
    store.write = (changes) => {
      writes.push(changes.map((change) => ('put' in change ? change.put.id : `-${change.remove}`)))
      return write(changes)
    }
    const { launch, pass } = limitedTasks({ store, maxAsyncTasks: 10 })
    await launch('a', {}, { rate })
    expect(writes).toEqual([expect.arrayContaining(['a', 'rates/agent'])])
    expect(stateOf(store, 'agent')).toEqual({ at: 1_000, perMs: 10_000, starts: [0] })
    await pass(3_000)
    await launch('b', {}, { rate })
    await launch('c', {}, { rate })
    expect(stateOf(store, 'agent')).toEqual({ at: 4_000, perMs: 10_000, starts: [3_000, 0] })
    writes.length = 0
    await pass(7_000)
    expect(writes[0]).toEqual(expect.arrayContaining(['c', 'rates/agent']))
    // One that does not count any longer goes with the next start of any.
    await pass(10_000)
    await launch('x', { subagentName: 'other' }, { rate })
    expect([stateOf(store, 'agent'), stateOf(store, 'other')]).toEqual([undefined, expect.anything()])
  })

  it('F18: the next process counts what started before, and starts what waits when it may', async () => {
    const store = memoryStore()
    const { launch, pass } = limitedTasks({ store, maxAsyncTasks: 10 })
    await launch('a', {}, { rate })
    await pass(3_000)
    for (const id of ['b', 'c', 'd']) await launch(id, {}, { rate })
    const next = await nextProcess(store, { rate })
    expect(next.recovery).toMatchObject({ interrupted: ['a', 'b'], queued: ['c', 'd'] })
    expect([next.started, next.clock.now()]).toEqual([[], 9_000])
    await next.pass(1_999)
    expect(next.started).toEqual([])
    await next.pass(1)
    expect(next.started).toEqual(['c'])
    await next.pass(3_000)
    expect(next.started).toEqual(['c', 'd'])
    expect(stateOf(next.store, 'agent')).toEqual({ at: 14_000, perMs: 10_000, starts: [3_000, 0] })
  })

  it('F18: runs that are repeated after a crash count, and wait', async () => {
    const store = memoryStore()
    const { launch } = limitedTasks({ store, maxAsyncTasks: 10 })
    for (const id of ['a', 'b']) await launch(id, { timeoutMs: 5_000 }, { rate, retry: interrupted })
    const next = await nextProcess(store, { rate, retry: interrupted })
    expect(next.recovery.retried).toEqual(['a', 'b'])
    expect(next.manager.getTask('a')).toMatchObject({ status: 'queued', attempt: 2, attempts: [{ number: 1 }] })
    expect(next.manager.getTask('a')).not.toHaveProperty('startedAt')
    expect(next.store.contents().tasks.find(({ id }) => id === 'a')).toMatchObject({ status: 'queued', attempt: 2 })
    expect(next.started).toEqual([])
    // A crash before they may start counts no attempt.
    const third = await nextProcess(next.store, { rate, retry: interrupted }, { now: 10_000 })
    expect(third.recovery).toMatchObject({ queued: ['a', 'b'], retried: [] })
    await third.pass(1_000)
    expect(third.started).toEqual(['a', 'b'])
    expect(third.manager.getTask('a')).toMatchObject({ status: 'running', attempt: 2, startedAt: 11_000 })
    await third.pass(5_000)
    expect(third.manager.getTask('a')?.status).toBe('failed')
  })

  it('F18: a clock that was set back does not make them wait longer than the whole time', async () => {
    const store = memoryStore()
    const { launch } = limitedTasks({ store, maxAsyncTasks: 10 })
    for (const id of ['a', 'b', 'c']) await launch(id, {}, { rate })
    const next = await nextProcess(store, { rate }, { now: 10 })
    await next.pass(9_999)
    expect(next.started).toEqual([])
    await next.pass(1)
    expect(next.started).toEqual(['c'])
  })

  it('F18: a malformed row is reported and dropped, and the rest is taken over', async () => {
    const store = memoryStore()
    const { launch } = limitedTasks({ store, maxAsyncTasks: 10 })
    for (const id of ['a', 'b', 'c']) await launch(id, {}, { rate })
    const row = store.contents().featureStates[0]
    if (row === undefined) throw new Error('No row.')
    const damaged = { ...row, data: { ...row.data, starts: ['never'] } }
    await store.write([{ table: 'featureStates', put: damaged }])
    const next = await nextProcess(store, { rate })
    const message = 'The stored row "rates/agent" is dropped: row.starts[0]: got "never", expected a number.'
    expect(next.errors).toEqual([expect.objectContaining({ code: 'STORE_DAMAGED', message })])
    expect(next.started).toEqual(['c'])
    expect(stateOf(next.store, 'agent')).toMatchObject({ starts: [0] })
  })
})
