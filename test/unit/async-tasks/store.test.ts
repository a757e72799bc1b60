import { afterEach, describe, expect, it, vi } from 'vitest'
import { AsyncTaskManager, type AsyncTaskManagerOptions } from '../../../src/index.js'
import { memoryStore, StoreError, type MemoryStore, type Store } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { breakableStore } from '../../support/breakable-store.js'
import { DisposedError } from '../../../src/errors.js'
import { StoreInUseError } from '../../../src/store/store-errors.js'

const OUTPUT = { final_message: 'done' }
/** Six hundred of these are more than a text of JavaScript can have. */
const LONG = 'x'.repeat(1_000_000)
const managers: AsyncTaskManager[] = []

afterEach(async () => {
  await Promise.all(managers.splice(0).map((manager) => manager.dispose()))
})

function managerOn(store: Store, options: AsyncTaskManagerOptions = {}): AsyncTaskManager {
  const manager = new AsyncTaskManager({ store, clock: createManualClock(), ...options })
  managers.push(manager)
  return manager
}

/** What a new process finds when this one is killed now. */
const afterCrash = (store: MemoryStore, options?: AsyncTaskManagerOptions): AsyncTaskManager =>
  managerOn(store.copy(), options)

const task = (id: string, owner = 'main') => ({ id, subagentName: 'agent', goalPrompt: 'look into it', owner })

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('a launch', () => {
  it('K1: is stored before its run starts', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    let stored: readonly string[] | undefined
    manager.launch(task('a'), () => {
      stored = store.contents().tasks.map(({ id, status }) => `${id} ${status}`)
      return Promise.resolve({})
    })
    expect(store.contents().tasks).toEqual([])
    await manager.stored()
    expect(store.contents().tasks).toMatchObject([{ id: 'a', status: 'running', owner: 'main', attempt: 1 }])
    await tick()
    expect(stored).toEqual(['a running'])
  })

  it('K1: is written with all that changes in its tick, in one write', async () => {
    const { store, state } = breakableStore()
    const manager = managerOn(store, { maxAsyncTasks: -1 })
    const run = vi.fn(() => Promise.resolve(OUTPUT))
    for (let n = 0; n < 100; n += 1) manager.launch(task(`task-${n}`), run)
    expect([state.writes, run.mock.calls.length]).toEqual([0, 0])
    await manager.stored()
    expect(state.writes).toBe(1)
    await manager.waitFor(manager.getAllTasks().map(({ id }) => id))
    expect(run).toHaveBeenCalledTimes(100)
  })

  it('K1: fails its task, which has not run and owes nothing, when it cannot be stored', async () => {
    const { store, state, memory } = breakableStore()
    const clock = createManualClock()
    const errors: unknown[] = []
    const manager = managerOn(store, {
      clock,
      maxAsyncTasks: 1,
      onError: (error, { source }) => errors.push([source, error]),
    })
    const told: unknown[] = []
    manager.transitions$.subscribe(({ taskId, kind, to }) => told.push([taskId, kind, to]))
    const run = vi.fn(() => Promise.resolve({}))
    state.isBroken = true
    expect(manager.launch(task('a'), run).status).toBe('running')
    await expect(manager.stored()).rejects.toThrow(StoreError)
    expect(manager.getTask('a')).toMatchObject({
      status: 'failed',
      errorCode: 'NOT_STORED',
      error: 'The task could not be stored and was not started: the disk is full',
      delivery: 'none',
    })
    expect(errors).toMatchObject([['store', { code: 'STORE_FULL' }]])
    expect(told).toEqual([
      ['a', 'status', 'running'],
      ['a', 'status', 'failed'],
    ])
    expect([manager.canLaunchAsync().allowed, manager.getPendingNotifications(), clock.pending]).toEqual([true, [], 0])
    await manager.onIdle()
    state.isBroken = false
    manager.launch(task('b'), run)
    await manager.waitFor(['b'])
    expect([run.mock.calls.length, memory.contents().tasks.map(({ id }) => id)]).toEqual([1, ['b']])
  })

  it('K1: is refused at once, and repeats no write, while what else has changed waits to be written', async () => {
    const { store, state, memory } = breakableStore()
    const clock = createManualClock()
    const manager = managerOn(store, { clock, maxAsyncTasks: 1, whenFull: 'queue', onError: () => undefined })
    const run = vi.fn(() => Promise.resolve(OUTPUT))
    manager.registerTask(task('a'))
    await manager.stored()
    state.isBroken = true
    manager.completeTask('a', OUTPUT)
    await expect(manager.stored()).rejects.toThrow(StoreError)
    manager.launch(task('b'), run)
    manager.launch(task('c'), run)
    await expect(manager.stored()).rejects.toThrow(StoreError)
    expect(['b', 'c'].map((id) => manager.getTask(id)?.status)).toEqual(['failed', 'failed'])
    expect([clock.pending, clock.nextDue]).toEqual([1, clock.now() + 100])
    state.isBroken = false
    clock.advance(100)
    await manager.stored()
    expect([run.mock.calls.length, clock.pending]).toEqual([0, 0])
    expect(memory.contents().tasks.map(({ id, status }) => [id, status])).toEqual([['a', 'completed']])
  })

  it('K1: whose task has ended before that is stored with its end, later', async () => {
    const { store, state, memory } = breakableStore()
    const clock = createManualClock()
    const manager = managerOn(store, { clock, onError: () => undefined })
    state.isBroken = true
    manager.registerTask(task('a'))
    manager.completeTask('a', OUTPUT)
    await expect(manager.stored()).rejects.toThrow(StoreError)
    expect(manager.getTask('a')).toMatchObject({ status: 'completed', delivery: 'owed' })
    state.isBroken = false
    clock.advance(100)
    expect(memory.contents().tasks).toMatchObject([{ id: 'a', status: 'completed', delivery: 'owed' }])
  })

  it('K1: whose task was cancelled while it was being stored is stored with its end, later', async () => {
    const { store, state, memory } = breakableStore()
    const clock = createManualClock()
    const manager = managerOn(store, { clock, onError: () => undefined })
    const run = vi.fn(() => Promise.resolve(OUTPUT))
    state.isBroken = true
    manager.launch(task('a'), run)
    const stored = manager.stored()
    expect(manager.cancelTask('a')).toBe(true)
    await expect(stored).rejects.toThrow(StoreError)
    expect(manager.getTask('a')).not.toHaveProperty('errorCode')
    state.isBroken = false
    clock.advance(100)
    expect(memory.contents().tasks).toMatchObject([{ id: 'a', status: 'cancelled', delivery: 'none' }])
    expect(run).not.toHaveBeenCalled()
  })

  it('K1, F5: that is refused leaves the tasks of its run to its owner, who gets their results', async () => {
    const { store, state } = breakableStore()
    const manager = managerOn(store, { clock: createManualClock(), onError: () => undefined })
    state.isBroken = true
    manager.registerTask(task('parent'))
    const refused = expect(manager.stored()).rejects.toThrow(StoreError)
    // The write has begun, and the child is in the next one.
    await Promise.resolve()
    state.isBroken = false
    manager.launch({ ...task('child', 'run:parent'), parentId: 'parent' }, () => Promise.resolve(OUTPUT))
    await refused
    expect(manager.getTask('parent')).toMatchObject({ status: 'failed', errorCode: 'NOT_STORED', delivery: 'none' })
    await tick()
    expect(manager.getTask('child')).toMatchObject({ status: 'completed', owner: 'main' })
    expect(manager.getPendingNotifications('main').map(({ id }) => id)).toEqual(['child'])
  })

  it('K1: does not start when its task was cancelled, or everything was disposed, in the same tick', async () => {
    const store = memoryStore()
    const manager = managerOn(store, { maxAsyncTasks: 1 })
    const run = vi.fn(() => Promise.resolve({}))
    manager.launch(task('a'), run)
    manager.cancelTask('a')
    await manager.stored()
    expect(manager.canLaunchAsync().allowed).toBe(true)
    manager.launch(task('b'), run)
    await manager.dispose()
    await tick()
    expect(run).not.toHaveBeenCalled()
    expect(store.contents().tasks.map(({ id, status }) => [id, status])).toEqual([
      ['a', 'cancelled'],
      ['b', 'running'],
    ])
    expect(store.contents().tasks[1]).toMatchObject({ attempt: 1, run: { hasNotBegun: true } })
  })
})

describe('an end', () => {
  it('K2: is stored with what is owed for it, before anyone is notified of it', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    const seen: unknown[] = []
    manager.onTaskCompleted(({ id }) => seen.push([id, store.contents().tasks[0]]))
    manager.registerTask(task('a'))
    expect(manager.completeTask('a', OUTPUT)).toBe(true)
    expect(seen).toEqual([])
    await tick()
    expect(seen).toMatchObject([['a', { status: 'completed', delivery: 'owed', record: { output: OUTPUT } }]])
  })

  it('K2: is written together with the other ends of its tick', async () => {
    const { store, state } = breakableStore()
    const manager = managerOn(store, { maxAsyncTasks: -1 })
    for (let n = 0; n < 100; n += 1) manager.registerTask(task(`task-${n}`))
    state.writes = 0
    for (let n = 0; n < 100; n += 1) manager.completeTask(`task-${n}`, OUTPUT)
    await tick()
    expect(state.writes).toBe(1)
  })

  it('K2: with an output that JSON cannot hold is stored without it', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    const ended: string[] = []
    manager.settled$.subscribe(({ id }) => ended.push(id))
    manager.registerTask(task('a'))
    manager.completeTask('a', { parts: Array.from({ length: 600 }, () => LONG) })
    await tick()
    expect(ended).toEqual(['a'])
    expect(store.contents().tasks[0]?.record).toMatchObject({
      output: { final_message: expect.stringContaining('too large') as string },
    })
  })

  it('K10: is notified once, in order, when a write that failed succeeds', async () => {
    const { store, state } = breakableStore()
    const clock = createManualClock()
    const errors: unknown[] = []
    const manager = managerOn(store, { clock, onError: (error, { source }) => errors.push([source, error]) })
    const seen: string[] = []
    manager.settled$.subscribe(({ id }) => seen.push(id))
    manager.registerTask(task('a'))
    manager.registerTask(task('b'))
    await manager.stored()
    state.isBroken = true
    manager.completeTask('a', OUTPUT)
    await tick()
    manager.failTask('b', 'no luck')
    await tick()
    expect(seen).toEqual([])
    expect(errors).toMatchObject([['store', { code: 'STORE_FULL' }]])
    state.isBroken = false
    clock.advance(100)
    await tick()
    expect(seen).toEqual(['a', 'b'])
  })
})

describe('a cancellation', () => {
  it('K6: is stored before the run is aborted', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    const abortController = new AbortController()
    let stored: string | undefined
    abortController.signal.addEventListener('abort', () => {
      stored = store.contents().tasks[0]?.status
    })
    manager.registerTask({ ...task('a'), abortController })
    expect(manager.cancelTask('a')).toBe(true)
    expect(abortController.signal.aborted).toBe(false)
    await manager.stored()
    expect(stored).toBe('cancelled')
  })

  it('K6: aborts the run also when it cannot be stored', async () => {
    const { store, state } = breakableStore()
    const manager = managerOn(store, { onError: () => undefined })
    const abortController = new AbortController()
    manager.registerTask({ ...task('a'), abortController })
    await manager.stored()
    state.isBroken = true
    expect(manager.cancelTask('a')).toBe(true)
    await expect(manager.stored()).rejects.toThrow(StoreError)
    expect(abortController.signal.aborted).toBe(true)
    state.isBroken = false
  })
})

describe('a message', () => {
  it('K3: says when it is stored with its id, before which nothing of it may be sent', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    manager.registerTask(task('a'))
    manager.completeTask('a', OUTPUT)
    await tick()
    const lease = manager.lease({ owner: 'main' })
    expect(store.contents().deliveries).toEqual([])
    await lease?.stored
    expect(store.contents().deliveries).toMatchObject([
      { id: lease?.deliveryId, owner: 'main', state: 'sent', taskIds: ['a'] },
    ])
    expect(store.contents().tasks).toMatchObject([{ id: 'a', delivery: 'leased' }])
  })

  it('K3: is released when it cannot be stored, and can be leased later', async () => {
    const { store, state } = breakableStore()
    const manager = managerOn(store, { onError: () => undefined })
    manager.registerTask(task('a'))
    manager.completeTask('a', OUTPUT)
    await manager.stored()
    state.isBroken = true
    const refused = manager.lease()
    await expect(refused?.stored).rejects.toMatchObject({
      name: 'StoreError',
      code: 'STORE_FULL',
      message: 'The owed results cannot be delivered now, because their lease cannot be stored: the disk is full',
    })
    expect(manager.getTask('a')?.delivery).toBe('owed')
    refused?.release()
    state.isBroken = false
    expect(manager.lease()?.tasks.map(({ id }) => id)).toEqual(['a'])
  })

  it('K3: is not handed out any more when it was released before it was stored, and cannot have arrived', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    manager.registerTask(task('a'))
    manager.completeTask('a', OUTPUT)
    await manager.stored()
    const released = manager.lease()
    released?.release({ mayHaveArrived: true })
    const next = manager.lease()
    expect(next?.deliveryId).not.toBe(released?.deliveryId)
    expect(next?.tasks[0]).not.toHaveProperty('isRepeat')
    await expect(released?.stored).rejects.toMatchObject({ code: 'LEASE_ENDED' })
    await next?.stored
    next?.release({ mayHaveArrived: true })
    expect(manager.lease()?.tasks).toMatchObject([{ id: 'a', isRepeat: true }])
  })

  it('K3: may be sent when it was accepted before it was stored', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    manager.registerTask(task('a'))
    manager.completeTask('a', OUTPUT)
    await manager.stored()
    const lease = manager.lease()
    lease?.acknowledge()
    await lease?.stored
    expect(manager.getTask('a')?.delivery).toBe('delivered')
  })

  it('K3: is not handed out any more when everything was disposed of before it was stored', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    manager.registerTask(task('a'))
    manager.completeTask('a', OUTPUT)
    await manager.stored()
    const lease = manager.lease()
    const disposal = manager.dispose()
    await expect(lease?.stored).rejects.toThrow(DisposedError)
    await disposal
    expect(store.contents().deliveries).toMatchObject([{ state: 'sent' }])
  })

  it('K5: that was accepted is confirmed by the next one of its owner, and not by that of another', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    const deliver = async (id: string, owner: string): Promise<string | undefined> => {
      manager.registerTask(task(id, owner))
      manager.completeTask(id, OUTPUT)
      const lease = manager.lease({ owner })
      lease?.acknowledge()
      await tick()
      return lease?.deliveryId
    }
    const first = await deliver('a', 'main')
    expect(store.contents().deliveries).toMatchObject([{ id: first, state: 'accepted' }])
    const other = await deliver('b', 'other')
    expect(store.contents().deliveries.map(({ id }) => id)).toEqual([first, other])
    const second = await deliver('c', 'main')
    expect(store.contents().deliveries.map(({ id }) => id)).toEqual([other, second])
    expect(manager.confirm(second ?? '')).toBe(true)
    expect(manager.confirm(second ?? '')).toBe(false)
    await tick()
    expect(store.contents().deliveries.map(({ id }) => id)).toEqual([other])
  })

  it('K5: that was accepted keeps its results in the store until it is confirmed', async () => {
    const store = memoryStore()
    const manager = managerOn(store, { maxAsyncTasks: 0 })
    manager.registerTask(task('a'))
    manager.completeTask('a', OUTPUT)
    const lease = manager.lease()
    lease?.acknowledge()
    await tick()
    expect(store.contents().tasks.map(({ id }) => id)).toEqual(['a'])
    manager.confirm(lease?.deliveryId ?? '')
    await tick()
    expect(manager.getAllTasks()).toEqual([])
    expect((await manager.history()).tasks.map(({ id }) => id)).toEqual(['a'])
    await manager.dispose()
    expect(store.contents().tasks).toEqual([])
  })
})

describe('after a crash', () => {
  async function crashedWithMessage(state: 'sent' | 'accepted'): Promise<{ store: MemoryStore; deliveryId: string }> {
    const store = memoryStore()
    const manager = managerOn(store)
    manager.registerTask(task('a'))
    manager.completeTask('a', OUTPUT)
    const lease = manager.lease({ owner: 'main' })
    await lease?.stored
    if (state === 'accepted') lease?.acknowledge()
    return { store, deliveryId: lease?.deliveryId ?? '' }
  }

  it('K4: what was owed is owed', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    manager.registerTask(task('a'))
    manager.completeTask('a', OUTPUT)
    await tick()
    const next = afterCrash(store)
    expect(next.getPendingNotifications()).toMatchObject([{ id: 'a', status: 'completed', output: OUTPUT }])
    expect(next.getTask('a')?.isRepeat).toBeUndefined()
    expect(await next.recovered).toEqual({ adopted: [], queued: [], retried: [], interrupted: [], uncertain: [] })
  })

  it('K7: what ran has failed, and that is owed and stored', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    manager.registerTask(task('a'))
    await manager.stored()
    const copy = store.copy()
    const next = managerOn(copy)
    expect(await next.recovered).toEqual({ adopted: [], queued: [], retried: [], interrupted: ['a'], uncertain: [] })
    expect(next.getPendingNotifications()).toMatchObject([{ id: 'a', status: 'failed' }])
    await tick()
    expect(copy.contents().tasks).toMatchObject([{ id: 'a', status: 'failed', delivery: 'owed' }])
  })

  for (const state of ['sent', 'accepted'] as const) {
    it(`K4: a message that was ${state} is not sent again when it is in the transcript`, async () => {
      const { store, deliveryId } = await crashedWithMessage(state)
      await tick()
      const asked: string[] = []
      const copy = store.copy()
      const next = managerOn(copy, {
        wasDelivered: (id) => {
          asked.push(id)
          return Promise.resolve(true)
        },
      })
      expect(next.getPendingNotifications()).toEqual([])
      expect(await next.recovered).toEqual({ adopted: [], queued: [], retried: [], interrupted: [], uncertain: [] })
      expect(asked).toEqual([deliveryId])
      expect(next.getTask('a')?.delivery).toBe('delivered')
      await tick()
      expect(copy.contents().deliveries).toEqual([])
    })

    it(`K4: a message that was ${state} is owed again when it is not in the transcript`, async () => {
      const { store } = await crashedWithMessage(state)
      await tick()
      const next = afterCrash(store, { wasDelivered: () => false })
      await next.recovered
      expect(next.getPendingNotifications().map(({ id, isRepeat }) => [id, isRepeat])).toEqual([['a', undefined]])
    })

    it(`K4: a message that was ${state} is a possible repeat when nobody knows`, async () => {
      const { store } = await crashedWithMessage(state)
      await tick()
      const errors: unknown[] = []
      const next = afterCrash(store, {
        wasDelivered: () => {
          throw new Error('the transcript cannot be read')
        },
        onError: (error) => errors.push(error),
      })
      expect(await next.recovered).toEqual({ adopted: [], queued: [], retried: [], interrupted: [], uncertain: ['a'] })
      expect(next.getPendingNotifications()).toMatchObject([{ id: 'a', isRepeat: true }])
      expect(errors).toMatchObject([{ cause: { message: 'the transcript cannot be read' } }])
      expect(String(errors[0])).toMatch(/^Error: wasDelivered\("delivery.*"\) failed: the transcript cannot be read$/)
    })
  }

  it('K4: an answer that is neither a boolean nor undefined is reported, and counts as none', async () => {
    const { store } = await crashedWithMessage('sent')
    const errors: unknown[] = []
    const rowOf = (): unknown => ({ id: 'a row of a database' })
    const next = afterCrash(store, { wasDelivered: rowOf as () => boolean, onError: (error) => errors.push(error) })
    expect((await next.recovered).uncertain).toEqual(['a'])
    expect(next.getPendingNotifications()).toMatchObject([{ id: 'a', isRepeat: true }])
    expect(errors).toEqual([expect.objectContaining({ code: 'INVALID_INPUT' })])
    expect(String(errors[0])).toMatch(/wasDelivered\("delivery.*expected a boolean or undefined/)
  })

  it('K4: an answer that does not come within 30 s is reported, and counts as none', async () => {
    const { store } = await crashedWithMessage('sent')
    const errors: unknown[] = []
    const clock = createManualClock()
    const next = afterCrash(store, {
      clock,
      wasDelivered: () => new Promise(() => undefined),
      onError: (error) => errors.push(error),
    })
    await tick()
    clock.advance(29_999)
    await tick()
    expect(next.getPendingNotifications()).toEqual([])
    clock.advance(1)
    expect((await next.recovered).uncertain).toEqual(['a'])
    expect(next.getPendingNotifications()).toMatchObject([{ id: 'a', isRepeat: true }])
    expect(String(errors[0])).toMatch(/wasDelivered\("delivery.*has not answered within 30 s/)
  })

  it('K4: a message whose answer does not come delays no other', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    const ids = ['a', 'b'].map((owner) => {
      manager.registerTask(task(owner, owner))
      manager.completeTask(owner, OUTPUT)
      return manager.lease({ owner, exclusive: true })!.deliveryId
    })
    await tick()
    const clock = createManualClock()
    const asked: string[] = []
    const next = afterCrash(store, {
      clock,
      wasDelivered: (id) => {
        asked.push(id)
        return id === ids[0] ? new Promise<boolean>(() => undefined) : Promise.resolve(false)
      },
      onError: () => undefined,
    })
    for (let turn = 0; turn < 10; turn += 1) await tick()
    expect(asked).toEqual(ids)
    expect(next.getPendingNotifications('b')).toMatchObject([{ id: 'b' }])
    expect(next.getPendingNotifications('a')).toEqual([])
    await next.dispose()
  })

  it('A9: a host that does not answer leaves no timer, and no task of its messages changes, after dispose', async () => {
    const { store } = await crashedWithMessage('sent')
    const clock = createManualClock()
    const next = afterCrash(store, { clock, wasDelivered: () => new Promise(() => undefined) })
    await next.dispose()
    await next.recovered
    expect(clock.pending).toBe(0)
  })

  it('K4: results wait until it is known whether their message arrived', async () => {
    const { store } = await crashedWithMessage('sent')
    let answer: (isDelivered: boolean) => void = () => undefined
    const next = afterCrash(store, { wasDelivered: () => new Promise((resolve) => (answer = resolve)) })
    expect(next.lease()).toBeUndefined()
    answer(false)
    await next.recovered
    expect(next.lease()?.tasks.map(({ id }) => id)).toEqual(['a'])
  })
})

describe('a store', () => {
  it('K9: belongs to one manager until that one is disposed', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    expect(() => new AsyncTaskManager({ store })).toThrow(StoreInUseError)
    await manager.dispose()
    expect(managerOn(store).getAllTasks()).toEqual([])
  })

  it.each([1, 2, 3])('A9: is not written, and sets no timer, after dispose: write %i fails', async (failing) => {
    const clock = createManualClock()
    const memory = memoryStore()
    const writes: string[] = []
    const store: Store = {
      ...memory,
      write: async (changes) => {
        writes.push('write')
        if (writes.length === failing) throw new StoreError('STORE_FULL', 'the disk is full')
        await memory.write(changes)
      },
      close: () => {
        writes.push('close')
        memory.close()
      },
    }
    // Its record is pruned as soon as it is cancelled.
    const manager = managerOn(store, { clock, maxAsyncTasks: 0, onError: () => undefined })
    manager.registerTask(task('a'))
    if (failing > 1) await manager.stored()
    else await expect(manager.stored()).rejects.toThrow(StoreError)
    await manager.dispose()
    for (let ticks = 0; ticks < 5; ticks += 1) await tick()
    expect({ last: writes.at(-1), pending: clock.pending }).toEqual({ last: 'close', pending: 0 })
  })
})

describe('what is owed to an owner that is gone', () => {
  it('K5: is confirmed with it, and its rows are removed', async () => {
    const store = memoryStore()
    const manager = managerOn(store, { maxAsyncTasks: 0 })
    manager.registerTask(task('a', 'gone'))
    manager.registerTask(task('b', 'other'))
    manager.completeTask('a', OUTPUT)
    manager.completeTask('b', OUTPUT)
    manager.lease({ owner: 'gone' })?.acknowledge()
    const other = manager.lease({ owner: 'other' })
    other?.acknowledge()
    await tick()
    expect(store.contents().deliveries).toHaveLength(2)
    manager.releaseOwner('gone')
    await tick()
    expect(store.contents().deliveries.map(({ id }) => id)).toEqual([other?.deliveryId])
  })

  it('K2: goes to its heir, also on the disk', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    manager.registerTask(task('a', 'gone'))
    manager.completeTask('a', OUTPUT)
    manager.releaseOwner('gone', { to: 'heir' })
    await tick()
    expect(afterCrash(store).getPendingNotifications('heir')).toMatchObject([{ id: 'a' }])
  })
})

describe('a store that cannot be written when its manager is disposed', () => {
  it('K10: is reported, closed, and has what was written before', async () => {
    const { memory, store, state } = breakableStore()
    const errors: unknown[] = []
    const manager = managerOn(store, { onError: (error, { source }) => errors.push([source, error]) })
    manager.registerTask(task('a'))
    await manager.stored()
    state.isBroken = true
    await manager.dispose({ cancel: true })
    expect(errors[0]).toMatchObject(['store', { code: 'STORE_FULL' }])
    expect(memory.contents().tasks).toMatchObject([{ id: 'a', status: 'running' }])
    expect(managerOn(memory.copy()).getTask('a')).toMatchObject({ errorCode: 'INTERRUPTED' })
  })
})

describe('a write that fails with another error', () => {
  it('K10: is reported as a StoreError with its cause', async () => {
    const memory = memoryStore()
    const cause = new Error('the network is down')
    let isBroken = false
    const store: Store = {
      ...memory,
      write: async (changes) => {
        if (isBroken) throw cause
        await memory.write(changes)
      },
    }
    const manager = managerOn(store, { onError: () => undefined })
    isBroken = true
    manager.registerTask(task('a'))
    await expect(manager.stored()).rejects.toMatchObject({ name: 'StoreError', code: 'STORE_FAILED', cause })
    isBroken = false
  })

  it('K10: is repeated less and less often, until it succeeds', async () => {
    const { memory, store, state } = breakableStore()
    const clock = createManualClock()
    const times: number[] = []
    const manager = managerOn(store, { clock, onError: () => times.push(clock.now()) })
    manager.registerTask(task('a'))
    await manager.stored()
    const start = clock.now()
    state.isBroken = true
    manager.completeTask('a', OUTPUT)
    for (let waited = 0; waited < 200_000; waited += 100) {
      await tick()
      clock.advance(100)
    }
    expect(times.map((time) => time - start).slice(0, 5)).toEqual([0, 100, 300, 700, 1500])
    expect((times.at(-1) ?? 0) - (times.at(-2) ?? 0)).toBe(30_000)
    state.isBroken = false
    clock.advance(30_000)
    expect(memory.contents().tasks).toMatchObject([{ status: 'completed' }])
  })
})
