/** The wait before the next run of a task is stored: F9. */
import { expect, it, onTestFinished, vi } from 'vitest'
import { AsyncTaskManager, type RunFunction } from '../../../src/index.js'
import { memoryStore, type MemoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'

const retry = { attempts: 3, on: ['rate-limited'], backoff: { initialMs: 1_000, jitter: false } } as const

/** The store of a process that died at 1000, right after the first run of a task. */
async function storeWithWait(more: object = {}): Promise<MemoryStore> {
  const store = memoryStore()
  const { launch, runs } = limitedTasks({ store })
  await launch('a', { retry })
  await runs[0]?.fail(Object.assign(new Error('slow down'), { code: 'RATE_LIMITED', ...more }))
  await tick()
  return store.copy()
}

/** The next process, whose clock says this. */
async function processAt(store: MemoryStore, now: number, queue = {}) {
  const run = vi.fn<RunFunction>(untilAborted)
  const clock = createManualClock(now)
  const manager = new AsyncTaskManager({ store, clock, queue, graceMs: 0, findRunner: () => run })
  onTestFinished(() => manager.dispose())
  expect((await manager.recovered).queued).toEqual(['a'])
  /** How often it has run when so much time has passed. */
  const runsAfter = async (ms: number): Promise<number> => {
    clock.advance(ms)
    await tick()
    return run.mock.calls.length
  }
  return { manager, runsAfter }
}

it('F9: what is left of a back-off is waited for after a crash', async () => {
  const store = await storeWithWait()
  const { runsAfter } = await processAt(store, 1_400)
  expect(await runsAfter(599)).toBe(0)
  const again = await processAt(store.copy(), 1_999)
  expect(await again.runsAfter(0)).toBe(0)
  expect(await again.runsAfter(1)).toBe(1)
  expect(await runsAfter(1)).toBe(1)
})

it('F9: so is what a rate limit has asked for', async () => {
  const { runsAfter } = await processAt(await storeWithWait({ retryAfterMs: 60_000 }), 11_000)
  expect(await runsAfter(49_999)).toBe(0)
  expect(await runsAfter(1)).toBe(1)
})

it('F9: a wait that is over by then delays nothing', async () => {
  const { runsAfter } = await processAt(await storeWithWait(), 2_000)
  expect(await runsAfter(0)).toBe(1)
})

it('F9: a clock that was set back makes no wait longer', async () => {
  const { runsAfter } = await processAt(await storeWithWait(), -1_000_000)
  expect(await runsAfter(999)).toBe(0)
  expect(await runsAfter(1)).toBe(1)
})

it('F9: the longest wait for a slot counts from its end', async () => {
  const { manager, runsAfter } = await processAt(await storeWithWait(), 1_000, { maxWaitMs: 100 })
  manager.setMaxAsyncTasks(0)
  expect(await runsAfter(1_099)).toBe(0)
  expect(manager.getTask('a')?.status).toBe('queued')
  await runsAfter(1)
  expect(manager.getTask('a')).toMatchObject({ status: 'failed', errorCode: 'QUEUE_TIMEOUT' })
})

it('F8, F9: the longest wait for a slot counts from the end of the back-off, also when that was over before a crash', async () => {
  const store = await storeWithWait()
  const clock = createManualClock(2_300)
  const queue = { maxWaitMs: 1_000 }
  const manager = new AsyncTaskManager({ store, clock, queue, maxAsyncTasks: 0, findRunner: () => untilAborted })
  onTestFinished(() => manager.dispose())
  await manager.recovered
  clock.advance(699)
  await tick()
  expect(manager.getTask('a')?.status).toBe('queued')
  clock.advance(1)
  await tick()
  expect(manager.getTask('a')).toMatchObject({ status: 'failed', errorCode: 'QUEUE_TIMEOUT' })
})

it('F9: a run that has started has no wait', async () => {
  const store = await storeWithWait()
  const runOf = (): object | undefined => store.copy().contents().tasks[0]?.run
  expect(runOf()).toMatchObject({ notBefore: 2_000, delayMs: 1_000 })
  const { runsAfter } = await processAt(store, 2_000)
  expect(await runsAfter(0)).toBe(1)
  expect(runOf()).not.toHaveProperty('notBefore')
  expect(runOf()).not.toHaveProperty('delayMs')
})

it('F8: the longest wait for a slot goes on across crashes, and begins at the launch', async () => {
  let store = memoryStore()
  const options = { maxAsyncTasks: 0, whenFull: 'queue', queue: { maxWaitMs: 1_000 } } as const
  const first = new AsyncTaskManager({ ...options, store, clock: createManualClock(5_000) })
  onTestFinished(() => first.dispose())
  first.launch({ id: 'a', subagentName: 'agent', goalPrompt: 'g', context: {} }, untilAborted)
  await tick()
  const statusAfter = async (start: number, ms: number): Promise<string | undefined> => {
    store = store.copy()
    const clock = createManualClock(start)
    const manager = new AsyncTaskManager({ ...options, store, clock, findRunner: () => untilAborted })
    onTestFinished(() => manager.dispose())
    await manager.recovered
    clock.advance(ms)
    await tick()
    return manager.getTask('a')?.status
  }
  expect(await statusAfter(5_400, 100)).toBe('queued')
  expect(await statusAfter(5_800, 199)).toBe('queued')
  // A clock that was set back makes no wait shorter.
  expect(await statusAfter(1_000, 999)).toBe('queued')
  expect(await statusAfter(5_800, 200)).toBe('failed')
})
