/** What a restart leaves of pauses: F19. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, AsyncTaskReminderService, type AsyncTaskManagerOptions } from '../../../src/index.js'
import { memoryStore, type MemoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick } from '../../support/limited-tasks.js'

const PAUSED_ROW = {
  id: 'pauses/owner:main',
  feature: 'pauses',
  data: { owner: 'main', deliveries: 'send', since: 1_000 },
}

function firstProcess(options: AsyncTaskManagerOptions = {}) {
  const store = memoryStore()
  const tasks = limitedTasks({ store, maxAsyncTasks: 4, ...options })
  return { ...tasks, store, rows: () => store.contents().featureStates }
}

/** The next process on what a store held when the last one was killed. @param at the time on its clock */
async function nextProcess(from: MemoryStore, at: number, options: AsyncTaskManagerOptions = {}) {
  const store = from.copy()
  const clock = createManualClock(at)
  const started: string[] = []
  const errors: unknown[] = []
  const manager = new AsyncTaskManager({
    store,
    clock,
    graceMs: 0,
    maxAsyncTasks: 4,
    onError: (error) => errors.push(error),
    findRunner:
      () =>
      (input, { signal }) => {
        started.push(input.id)
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve({})))
      },
    ...options,
  })
  onTestFinished(() => manager.dispose())
  const recovery = await manager.recovered
  await tick()
  const reminders = new AsyncTaskReminderService(manager)
  return {
    manager,
    store,
    clock,
    started,
    errors,
    recovery,
    reminders,
    rows: () => store.contents().featureStates,
    status: (id: string) => manager.getTask(id)?.status,
    notes: () => manager.getAllTasks().filter(({ isNote }) => isNote === true),
  }
}

describe('a stored pause', () => {
  it('F19: says after a restart who has begun it', async () => {
    const first = firstProcess()
    first.manager.pause('main', { by: '/pause' })
    await first.manager.stored()
    const { manager } = await nextProcess(first.store, 5_000)
    expect(manager.pauses()).toEqual([{ owner: 'main', deliveries: 'send', since: 1_000, by: '/pause' }])
  })

  it('F19: is a row while it lasts', async () => {
    const { manager, rows } = firstProcess()
    manager.pause('main')
    manager.pause(undefined, { deliveries: 'hold' })
    await manager.stored()
    expect(rows()).toEqual(
      expect.arrayContaining([
        PAUSED_ROW,
        { id: 'pauses/all', feature: 'pauses', data: { deliveries: 'hold', since: 1_000 } },
      ]),
    )
    manager.resume()
    manager.releaseOwner('main')
    await manager.stored()
    expect(rows()).toEqual([])
  })

  it('F19: goes on after a restart: nothing starts before it ends, and it says so once', async () => {
    const { manager, launch, store } = firstProcess()
    manager.pause('main')
    await launch('a')
    await launch('b', { owner: 'other' })
    const next = await nextProcess(store, 9_000)
    expect(next.manager.pauses()).toEqual([{ owner: 'main', deliveries: 'send', since: 1_000 }])
    expect(next.recovery.queued).toEqual(['a'])
    expect(next.status('a')).toBe('queued')
    expect(next.started).toEqual([])
    const again = await nextProcess(next.store, 10_000)
    expect(again.notes()).toHaveLength(1)
    const reminder = again.reminders.leaseReminder()
    expect(reminder?.text).toContain(
      'Background tasks have been paused since 1970-01-01T00:00:01.000Z, and still are. 1 task(s) wait',
    )
    reminder?.acknowledge()
    expect(again.manager.resume('main')).toBe(true)
    await tick()
    expect(again.started).toEqual(['a'])
    await again.manager.stored()
    expect(again.rows()).toEqual([])
    expect((await nextProcess(again.store, 11_000)).manager.pauses()).toEqual([])
  })

  it('F19: is said to the owners whose tasks wait when everything is paused', async () => {
    const { manager, launch, store } = firstProcess()
    manager.pause()
    await launch('a', { owner: 'first' })
    await launch('b', { owner: 'second' })
    await manager.stored()
    const { notes } = await nextProcess(store, 9_000)
    expect(notes().map(({ owner }) => owner)).toEqual(['first', 'second'])
  })

  it('F19: is said also while it holds results, and is not said any longer when it has ended', async () => {
    const { manager, launch, runs, store } = firstProcess()
    await launch('a')
    manager.pause('main', { deliveries: 'hold' })
    await runs[0]?.end('held')
    await manager.stored()
    const next = await nextProcess(store, 9_000)
    const said = next.reminders.leaseReminder()
    expect(said?.text).toContain('Background tasks have been paused')
    expect(said?.text).not.toContain('held')
    said?.release()
    next.manager.resume('main')
    expect(next.reminders.leaseReminder()?.taskIds).toEqual(['a'])
    expect(next.notes().map(({ delivery }) => delivery)).toEqual(['delivered'])
  })

  it('F19: holds a run back that the crash has interrupted, which is the next attempt when it ends', async () => {
    const { manager, launch, store } = firstProcess()
    await launch('a', { timeoutMs: 60_000, retry: { attempts: 2, on: ['interrupted'] } })
    manager.pause()
    await manager.stored()
    const queue = { maxWaitMs: 500 }
    const next = await nextProcess(store, 9_000, { queue })
    expect(next.recovery).toMatchObject({ retried: ['a'], queued: [] })
    expect(next.manager.getTask('a')).toMatchObject({ status: 'queued', attempt: 2, attempts: [{ number: 1 }] })
    expect(next.manager.getTask('a')).not.toHaveProperty('startedAt')
    expect(next.started).toEqual([])
    await next.manager.stored()
    const again = await nextProcess(next.store, 20_000, { queue })
    expect(again.manager.getTask('a')).toMatchObject({ status: 'queued', attempt: 2 })
    again.manager.resume()
    await tick()
    await tick()
    expect(again.started).toEqual(['a'])
    expect(again.manager.getTask('a')).toMatchObject({ status: 'running', attempt: 2, startedAt: 20_000 })
  })

  it('F19: does not count as waiting for a slot, before and after a restart', async () => {
    const queue = { maxWaitMs: 1_000 }
    const { manager, launch, pass, store } = firstProcess({ maxAsyncTasks: 0, whenFull: 'queue', queue })
    await launch('a')
    await pass(600)
    manager.pause()
    await pass(5_000)
    await manager.stored()
    const paused = await nextProcess(store, 50_000, { maxAsyncTasks: 0, queue })
    expect(paused.status('a')).toBe('queued')
    paused.manager.resume()
    await paused.manager.stored()
    const resumed = await nextProcess(paused.store, 50_100, { maxAsyncTasks: 0, queue })
    resumed.clock.advance(299)
    expect(resumed.status('a')).toBe('queued')
    resumed.clock.advance(1)
    expect(resumed.manager.getTask('a')).toMatchObject({ status: 'failed', errorCode: 'QUEUE_TIMEOUT' })
    paused.clock.advance(399)
    expect(paused.status('a')).toBe('queued')
    paused.clock.advance(1)
    expect(paused.status('a')).toBe('failed')
  })

  it('F19: keeps the back-off of a run that waited for it when it ended', async () => {
    const { manager, launch, runs, store } = firstProcess()
    await launch('a', { retry: { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 500, jitter: false } } })
    manager.pause()
    await runs[0]?.fail(Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' }))
    manager.resume()
    await manager.stored()
    const next = await nextProcess(store, 1_100)
    next.clock.advance(399)
    await tick()
    expect(next.started).toEqual([])
    next.clock.advance(1)
    await tick()
    expect(next.started).toEqual(['a'])
  })

  it('F19: lets no row that is none pause anything', async () => {
    const store = memoryStore()
    store.open()
    await store.write([
      { table: 'featureStates', put: PAUSED_ROW },
      {
        table: 'featureStates',
        put: { id: 'pauses/owner:x', feature: 'pauses', data: { owner: 'y', deliveries: 'send', since: 1 } },
      },
      { table: 'featureStates', put: { id: 'pauses/all', feature: 'pauses', data: { deliveries: 'maybe', since: 1 } } },
    ])
    const { manager, errors, rows } = await nextProcess(store, 9_000)
    expect(manager.pauses().map(({ owner }) => owner)).toEqual(['main'])
    expect(errors.map(String)).toEqual([
      expect.stringMatching(
        /: The stored row "pauses\/owner:x" is dropped: row: got .*, expected the owner of this row\.$/,
      ),
      expect.stringMatching(
        /: The stored row "pauses\/all" is dropped: row\.deliveries: got "maybe", expected one of "hold", "send"\.$/,
      ),
    ])
    await manager.stored()
    expect(rows()).toEqual([PAUSED_ROW])
  })

  it('F19: goes on whichever write was the last', async () => {
    const copies: MemoryStore[] = []
    const { manager, launch, store } = firstProcess()
    const write = store.write.bind(store)
    store.write = async (changes) => {
      await write(changes)
      copies.push(store.copy())
    }
    manager.pause('main')
    await launch('a')
    manager.resume('main')
    await tick()
    manager.pause('main')
    await manager.stored()
    for (const copy of copies) {
      const isPaused = copy.contents().featureStates.length > 0
      const { started, status } = await nextProcess(copy, 9_000)
      expect(started).toEqual(isPaused || status('a') !== 'running' ? [] : ['a'])
    }
    expect(copies.length).toBeGreaterThan(2)
  })
})
