/** Launches that wait for a slot: F8. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager, type RunFunction } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'
import { InvalidInputError, InvalidSettingError, TaskLimitError } from '../../../src/errors.js'

const waiting = { whenFull: 'queue' } as const

describe('a launch for which no slot is free', () => {
  it('F8: is refused by default, and with whenFull: refuse', async () => {
    const { launch, manager } = limitedTasks()
    await launch('a')
    await expect(launch('b')).rejects.toThrow(TaskLimitError)
    await expect(launch('b', { whenFull: 'refuse' })).rejects.toThrow('Max async tasks (1) reached')
    expect(manager.getAllTasks()).toHaveLength(1)
  })

  it('F8: waits, by the option or by its own input, and takes no slot', async () => {
    const { launch, manager, started } = limitedTasks(waiting)
    await launch('a')
    const queued = await launch('b')
    expect(queued).toMatchObject({ id: 'b', status: 'queued', launchedAt: 1_000 })
    expect(started()).toEqual(['a'])
    expect(manager.getQueuedTasks().map(({ id }) => id)).toEqual(['b'])
    expect(manager.getRunningTasks().map(({ id }) => id)).toEqual(['a'])
    expect(manager.actor.getSnapshot()).toMatchObject({ slots: 1, running: 1 })
    const refusing = limitedTasks()
    await refusing.launch('a')
    expect((await refusing.launch('b', waiting)).status).toBe('queued')
  })

  it('F8: keeps its place when most of those that waited were cancelled', async () => {
    const { launch, manager, runs, started } = limitedTasks({ ...waiting, queue: { max: 300 } })
    await launch('a')
    for (let n = 0; n < 200; n += 1) await launch(`b${n}`)
    for (let n = 0; n < 199; n += 1) manager.cancelTask(`b${n}`)
    expect(manager.getQueuedTasks().map(({ id }) => id)).toEqual(['b199'])
    await runs[0]?.end()
    expect(started()).toEqual(['a', 'b199'])
  })

  it('F8, F9: a repeated run keeps its wait when many that waited with it were cancelled', async () => {
    const { launch, manager, runs, started, pass } = limitedTasks({ ...waiting, queue: { max: 300 } })
    const retry = { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 10_000, jitter: false } } as const
    await launch('a', {}, { retry })
    await runs[0]?.fail(Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' }))
    await launch('b')
    for (let n = 0; n < 200; n += 1) await launch(`c${n}`)
    for (let n = 0; n < 200; n += 1) manager.cancelTask(`c${n}`)
    await runs[1]?.end()
    await pass(9_000)
    expect(started()).toEqual(['a', 'b'])
    await pass(1_000)
    expect(started()).toEqual(['a', 'b', 'a'])
  })

  it('A5, F8: is owed to nobody when its owner was gone before it started', async () => {
    const { launch, manager, runs } = limitedTasks(waiting)
    await launch('a')
    await launch('b', { owner: 'gone' })
    expect(manager.releaseOwner('gone')).toBe(1)
    await runs[0]?.end()
    await runs[1]?.end()
    expect(manager.getTask('b')).toMatchObject({ status: 'completed', delivery: 'none' })
    await manager.onIdle('gone')
  })

  it('F8: starts when the slot is free, in the order of priority and then of registration', async () => {
    const { launch, manager, runs, started, pass } = limitedTasks(waiting)
    await launch('a')
    await launch('b')
    await launch('c', { priority: 1 })
    await launch('d')
    await launch('e', { priority: 1 })
    expect(['b', 'c', 'd', 'e'].map((id) => manager.queuePosition(id))).toEqual([3, 1, 4, 2])
    expect(manager.queuePosition('a')).toBeUndefined()
    await pass(50)
    for (let done = 0; done < 5; done += 1) await runs[done]?.end()
    expect(started()).toEqual(['a', 'c', 'e', 'b', 'd'])
    expect(manager.getTask('c')).toMatchObject({ status: 'completed', launchedAt: 1_000, startedAt: 1_050 })
    expect(manager.getTask('a')).not.toHaveProperty('startedAt')
  })

  it('F8: starts in the batch that frees the slot: by an end, a raised limit, or a reservation that is cancelled or has expired', async () => {
    const { launch, manager, started, pass } = limitedTasks({ ...waiting, maxAsyncTasks: 0 })
    await launch('a')
    await launch('b')
    await launch('c')
    manager.setMaxAsyncTasks(1)
    expect(manager.getTask('a')?.status).toBe('running')
    manager.setMaxAsyncTasks(2)
    await tick()
    expect(started()).toEqual(['a', 'b'])
    expect(manager.tryReserveAsyncSlot()).toBeNull()
    manager.setMaxAsyncTasks(-1)
    manager.setMaxAsyncTasks(4)
    const reserved = manager.tryReserveAsyncSlot({ ttlMs: 100 })
    expect(reserved).not.toBeNull()
    await launch('d')
    await launch('e')
    expect(manager.queuePosition('d')).toBe(1)
    manager.cancelReservation(reserved ?? '')
    expect(manager.getTask('d')?.status).toBe('running')
    manager.setMaxAsyncTasks(6)
    expect(manager.getTask('e')?.status).toBe('running')
    expect(manager.tryReserveAsyncSlot({ ttlMs: 100 })).not.toBeNull()
    await launch('f')
    expect(manager.getTask('f')?.status).toBe('queued')
    await pass(100)
    expect(manager.getTask('f')?.status).toBe('running')
  })

  it('F8: is not overtaken by a reservation or by a launch that does not wait', async () => {
    const { launch, manager, clock } = limitedTasks({ maxAsyncTasks: 2 })
    await launch('a')
    expect(manager.tryReserveAsyncSlot({ ttlMs: 100 })).not.toBeNull()
    await launch('b', waiting)
    expect(manager.getTask('b')?.status).toBe('queued')
    // The reservation has expired, and no timer has said so yet.
    const late = { ...clock, now: () => clock.now() }
    expect(late.now()).toBe(1_000)
    clock.setTimeout(() => {
      expect(manager.tryReserveAsyncSlot()).toBeNull()
      expect(() => manager.launch({ subagentName: 's', goalPrompt: 'g' }, () => ({}))).toThrow(TaskLimitError)
    }, 100)
    clock.advance(100)
    expect(manager.getTask('b')?.status).toBe('running')
  })

  it('F8: never runs when it is cancelled, and leaves no slot and no place', async () => {
    const { launch, manager, runs, started } = limitedTasks(waiting)
    await launch('a')
    const { abortController } = await launch('b')
    await launch('c')
    expect(manager.cancelTask('b')).toBe(true)
    expect(abortController?.signal.aborted).toBe(true)
    expect(manager.getTask('b')).toMatchObject({ status: 'cancelled' })
    expect(manager.queuePosition('c')).toBe(1)
    await runs[0]?.end()
    await runs[1]?.end()
    expect(started()).toEqual(['a', 'c'])
    expect(manager.canLaunchAsync().allowed).toBe(true)
  })

  it('F8: can be failed by its host, but not completed', async () => {
    const { launch, manager } = limitedTasks(waiting)
    await launch('a')
    await launch('b')
    expect(manager.completeTask('b', {})).toBe(false)
    expect(manager.failTask('b', 'not needed')).toBe(true)
    expect(manager.getTask('b')).toMatchObject({ status: 'failed', error: 'not needed', delivery: 'owed' })
  })

  it('F8: fails with a code when it has waited too long', async () => {
    const { launch, manager, pass, started } = limitedTasks({ ...waiting, queue: { maxWaitMs: 500 } })
    await launch('a')
    await launch('b')
    await pass(499)
    expect(manager.getTask('b')?.status).toBe('queued')
    await pass(1)
    expect(manager.getTask('b')).toMatchObject({
      status: 'failed',
      errorCode: 'QUEUE_TIMEOUT',
      error: 'The task waited for a slot for more than 500 ms, which is the limit (queue.maxWaitMs).',
    })
    expect(started()).toEqual(['a'])
  })

  it('F8: has no limit on its wait left once its run has started', async () => {
    const { launch, manager, runs, pass } = limitedTasks({ ...waiting, queue: { maxWaitMs: 1_000 } })
    await launch('a')
    await launch('b')
    await pass(500)
    await runs[0]?.end()
    expect(manager.actor.getSnapshot().nextDeadlineAt).toBeUndefined()
    await pass(10_000)
    expect(manager.getTask('b')?.status).toBe('running')
    expect(runs[1]?.context.signal.aborted).toBe(false)
  })

  it('F8: starts after the end that has freed its slot', async () => {
    const { launch, manager, runs } = limitedTasks(waiting)
    const changes: string[] = []
    manager.transitions$.subscribe(({ kind, taskId, to }) => kind === 'status' && changes.push(`${taskId} ${to}`))
    await launch('a')
    await launch('b')
    await runs[0]?.end()
    expect(changes).toEqual(['a running', 'b queued', 'a completed', 'b running'])
  })

  it('F8: starts when a slot is free at the very end of the longest wait', async () => {
    const { launch, manager, pass } = limitedTasks({ ...waiting, queue: { maxWaitMs: 1_000 } })
    manager.tryReserveAsyncSlot({ ttlMs: 1_000 })
    await launch('a')
    await pass(999)
    expect(manager.getTask('a')?.status).toBe('queued')
    await pass(1)
    expect(manager.getTask('a')?.status).toBe('running')
  })

  it('F8: has its deadline count from the start of its run', async () => {
    const { launch, manager, runs, pass } = limitedTasks(waiting)
    await launch('a')
    await launch('b', { timeoutMs: 200 })
    await pass(1_000)
    expect(manager.getTask('b')?.status).toBe('queued')
    await runs[0]?.end()
    await pass(199)
    expect(manager.getTask('b')?.status).toBe('running')
    await pass(1)
    await tick()
    expect(manager.getTask('b')).toMatchObject({ status: 'failed', startedAt: 2_000 })
  })

  it('F8: is refused when the queue is full, in number or in bytes', async () => {
    const { launch } = limitedTasks({ ...waiting, queue: { max: 1 } })
    await launch('a')
    await launch('b')
    await expect(launch('c')).rejects.toThrow(
      'Max async tasks (1) reached, and the queue is full (1 waiting, queue.max)',
    )
    const small = limitedTasks({ ...waiting, queue: { maxBytes: 1_000 } })
    await small.launch('a', { context: { text: 'x'.repeat(5_000) } })
    await expect(small.launch('b', { context: { text: 'x'.repeat(1_000) } })).rejects.toThrow(TaskLimitError)
    await expect(small.launch('b', { context: { text: 'x'.repeat(2_000) } })).rejects.toThrow(
      /^Max async tasks \(1\) reached, and the queue has no room for 20\d\d bytes \(0 of 1000 bytes are in use, queue\.maxBytes\)$/,
    )
    await small.launch('c', { context: { text: 'x'.repeat(500) } })
    await expect(small.launch('d', { context: { text: 'x'.repeat(500) } })).rejects.toThrow(TaskLimitError)
    small.manager.cancelTask('c')
    await small.launch('d', { context: { text: 'x'.repeat(500) } })
  })

  it('F8: keeps its owner waiting for it, is handed over, and is cancelled on disposal', async () => {
    const { launch, manager, started } = limitedTasks(waiting)
    await launch('a', { owner: 'one' })
    await launch('b', { owner: 'two' })
    let isIdle = false
    void manager.onIdle('two').then(() => (isIdle = true))
    await tick()
    expect(isIdle).toBe(false)
    expect(manager.releaseOwner('two', { to: 'three' })).toBe(1)
    expect(manager.getQueuedTasks('three')).toHaveLength(1)
    await manager.dispose()
    expect(manager.getTask('b')?.status).toBe('cancelled')
    expect(started()).toEqual(['a'])
  })

  it('F8: a wait for it ends with it', async () => {
    const { launch, manager, runs } = limitedTasks(waiting)
    await launch('a')
    await launch('b')
    const wait = manager.waitFor(['b'])
    await runs[0]?.end()
    await runs[1]?.end('b is done')
    expect((await wait).settled).toMatchObject([{ id: 'b', output: { final_message: 'b is done' } }])
  })

  it('F8: wrong options are refused with their names', () => {
    expect(() => new AsyncTaskManager({ whenFull: 'wait' as 'queue' })).toThrow(
      new InvalidInputError('options.whenFull', 'wait', "'refuse' or 'queue'"),
    )
    expect(() => new AsyncTaskManager({ queue: { max: -1 } })).toThrow(InvalidSettingError)
    const { manager, runner } = limitedTasks()
    const input = { subagentName: 'agent', goalPrompt: 'goal' }
    expect(() => manager.launch({ ...input, priority: 0.5 }, runner)).toThrow(/^input\.priority: got 0\.5/)
    expect(() => manager.launch({ ...input, whenFull: 'wait' as 'queue' }, runner)).toThrow(/^input\.whenFull/)
  })
})

describe('a queue in a store', () => {
  const runs: string[] = []
  const findRunner = () => ({
    run: ((input, context) => {
      runs.push(input.id)
      return untilAborted(input, context)
    }) satisfies RunFunction,
  })

  it('F8: is on the disk when launch returns, and waits again after a crash, in its order', async () => {
    const store = memoryStore()
    const { launch, runs: before, manager } = limitedTasks({ ...waiting, store })
    await launch('a')
    await launch('b', { context: { for: 'b' } })
    await launch('c', { priority: 1 })
    await launch('d')
    const next = new AsyncTaskManager({ maxAsyncTasks: 1, store: store.copy(), findRunner, clock: createManualClock() })
    expect(await next.recovered).toMatchObject({ queued: ['b', 'c', 'd'], interrupted: ['a'] })
    await tick()
    expect(runs.splice(0)).toEqual(['c'])
    expect(['b', 'd'].map((id) => next.queuePosition(id))).toEqual([1, 2])
    await next.dispose()
    await before[0]?.end()
    const last = new AsyncTaskManager({ maxAsyncTasks: 5, store: store.copy(), clock: createManualClock() })
    expect(await last.recovered).toMatchObject({ queued: [], interrupted: ['b', 'd', 'c'] })
    expect(last.getTask('b')).toMatchObject({ status: 'failed', errorCode: 'INTERRUPTED' })
    await last.dispose()
    await manager.dispose()
  })

  it('F8: has no deadline in its row before its run starts, and then one that counts from there', async () => {
    const store = memoryStore()
    const { launch, runs: before, pass } = limitedTasks({ ...waiting, store })
    const deadline = () => store.contents().tasks.find(({ id }) => id === 'b')?.deadlineAt
    await launch('a')
    await launch('b', { timeoutMs: 500 })
    expect(deadline()).toBeUndefined()
    await pass(100)
    await before[0]?.end()
    await tick()
    expect(deadline()).toBe(1_600)
  })
})
