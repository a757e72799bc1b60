/** A foreground task that moves to the background: the slots of each pool, what is refused, and what the next process has of it. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { leaveInBackground } from '../../../src/features/foreground/detaching.js'
import { registryOf } from '../../../src/async-tasks/manager.js'
import { AsyncTaskManager, type AsyncTaskManagerOptions } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'
import { TaskLimitError } from '../../../src/errors.js'
import type { RetryPolicy } from '../../../src/protocol/retry-policy.js'

const foreground = { isForeground: true }
const command = { kind: 'command', command: ['node'], isForeground: true } as const
const rateLimit = Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' })
const retry: RetryPolicy = { attempts: 3, on: ['rate-limited'], backoff: { initialMs: 100, factor: 1, jitter: false } }

/** How many slots of each pool are in use. */
function slotsOf(manager: AsyncTaskManager) {
  const { task, command, foreground } = registryOf(manager).pools
  return { task: task.inUse, command: command.inUse, foreground: foreground.inUse }
}

const none = { task: 0, command: 0, foreground: 0 }

function setUp(options: AsyncTaskManagerOptions = {}) {
  const host = limitedTasks({ maxAsyncTasks: 1, ...options })
  return { ...host, slots: () => slotsOf(host.manager), detach: (id: string) => host.manager.detachTask(id) }
}

describe('a foreground task that is detached', () => {
  it('F14: leaves the slots of the foreground, takes one of the background, and frees it when its run has settled', async () => {
    const { launch, runs, slots, detach, manager } = setUp({ maxForegroundTasks: 1 })
    await launch('a', foreground)
    expect(manager.getTask('a')?.isForeground).toBe(true)
    expect(slots()).toEqual({ ...none, foreground: 1 })
    expect(detach('a')).toEqual({ detached: true })
    expect(manager.getTask('a')).not.toHaveProperty('isForeground')
    expect(slots()).toEqual({ ...none, task: 1 })
    await launch('b', foreground)
    expect(() => detach('b')).toThrow(TaskLimitError)
    await runs[0]?.end()
    expect(slots()).toEqual({ ...none, foreground: 1 })
    expect(manager.getTask('a')).toMatchObject({ status: 'completed', delivery: 'owed' })
  })

  it('F14: is refused with the limit of its pool when no slot is free, and nothing changes', async () => {
    const { launch, slots, detach, manager } = setUp()
    await launch('in-background')
    await launch('a', foreground)
    const before = [slots(), manager.getTask('a'), manager.actor.getSnapshot().seq]
    expect(() => detach('a')).toThrow(new TaskLimitError(1))
    expect([slots(), manager.getTask('a'), manager.actor.getSnapshot().seq]).toEqual(before)
  })

  it('F14: takes no slot for which another task waits', async () => {
    const { launch, runs, slots, detach, started } = setUp({ whenFull: 'queue' })
    await launch('in-background')
    await launch('waits')
    await launch('a', foreground)
    expect(() => detach('a')).toThrow(TaskLimitError)
    await runs[0]?.end()
    expect(started()).toContain('waits')
    expect(() => detach('a')).toThrow(TaskLimitError)
    expect(slots()).toEqual({ ...none, task: 1, foreground: 1 })
  })

  it('F14: has one answer each for a task that is unknown, has ended, or is in the background', async () => {
    const { launch, runs, detach } = setUp({ maxAsyncTasks: 2 })
    await launch('a', foreground)
    await launch('b')
    expect(detach('nobody')).toEqual({ detached: false, reason: 'There is no task "nobody".' })
    expect(detach('b')).toEqual({ detached: false, reason: 'Task "b" is in the background already.' })
    expect(detach('a').detached).toBe(true)
    expect(detach('a')).toEqual({ detached: false, reason: 'Task "a" is in the background already.' })
    await runs[0]?.end()
    expect(detach('a')).toEqual({ detached: false, reason: 'Task "a" has ended: it is completed.' })
  })

  it('F14: takes a slot of children where the run of a task has launched it', async () => {
    const { launch, runs, runner, slots, detach, manager } = setUp({ maxChildTasks: 1 })
    await launch('p')
    const child = (id: string, more: object = {}) =>
      runs[0]?.context.launch({ id, subagentName: 'agent', goalPrompt: 'g', ...more }, runner)
    child('c', foreground)
    await tick()
    const children = registryOf(manager).pools.of('child', 1)
    expect([children.inUse, slots()]).toEqual([0, { ...none, task: 1 }])
    expect(detach('c')).toEqual({ detached: true })
    expect([children.inUse, slots()]).toEqual([1, { ...none, task: 1 }])
    expect(() => child('d')).toThrow('Max child tasks (1) reached')
    child('e', foreground)
    expect(() => detach('e')).toThrow('Max child tasks (1) reached')
    await runs[1]?.end()
    expect(children.inUse).toBe(0)
  })

  it('F14: keeps its slot where it is a command, which has had one from its launch on', async () => {
    const { launch, runs, slots, detach } = setUp({ maxCommands: 1 })
    await launch('a', command)
    expect(slots()).toEqual({ ...none, command: 1 })
    await expect(launch('b', command)).rejects.toThrow('Max command tasks (1) reached')
    expect(detach('a')).toEqual({ detached: true })
    expect(slots()).toEqual({ ...none, command: 1 })
    await runs[0]?.end()
    expect(slots()).toEqual(none)
  })

  it('F14: between two runs goes on waiting, for a slot of the background', async () => {
    const { launch, runs, pass, slots, detach, started } = setUp({ queue: { maxWaitMs: 1_000 } })
    await launch('in-background')
    await launch('a', { ...foreground, retry })
    await runs[1]?.fail(rateLimit)
    expect(detach('a')).toEqual({ detached: true })
    await pass(100)
    expect(started()).toEqual(['in-background', 'a'])
    await runs[0]?.end()
    expect(started()).toEqual(['in-background', 'a', 'a'])
    expect(slots()).toEqual({ ...none, task: 1 })
  })

  it('F14: that waits for a slot between two runs does so for no longer than the queue allows', async () => {
    const { launch, runs, pass, detach, manager } = setUp({ queue: { maxWaitMs: 1_000 } })
    await launch('in-background')
    await launch('a', { ...foreground, retry })
    await runs[1]?.fail(rateLimit)
    detach('a')
    await pass(100)
    await pass(1_000)
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', errorCode: 'QUEUE_TIMEOUT' })
  })

  it('F14: that waited for a place in the foreground waits for a slot from then on, as long as the queue allows', async () => {
    const { launch, runs, pass, detach, manager } = setUp({ maxForegroundTasks: 1, queue: { maxWaitMs: 1_000 } })
    await launch('in-background')
    await launch('a', { ...foreground, retry })
    await runs[1]?.fail(rateLimit)
    await launch('b', foreground)
    await pass(5_000)
    expect(manager.getTask('a')?.status).toBe('queued')
    detach('a')
    await pass(999)
    expect(manager.getTask('a')?.status).toBe('queued')
    await pass(1)
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', errorCode: 'QUEUE_TIMEOUT' })
  })

  it('F14: holds its slot, when it is cancelled, until its run has stopped', async () => {
    const { launch, runs, slots, detach, manager } = setUp()
    await launch('a', foreground)
    detach('a')
    manager.cancelTask('a')
    expect(slots()).toEqual({ ...none, task: 1 })
    await runs[0]?.end()
    expect(slots()).toEqual(none)
  })

  it('F14: ends no wait that its caller makes itself, which takes its result', async () => {
    const { launch, runs, detach, manager } = setUp()
    await launch('a', foreground)
    const wait = manager.waitFor(['a'])
    detach('a')
    await tick()
    await runs[0]?.end()
    expect((await wait).settled).toMatchObject([{ id: 'a' }])
    expect(manager.getPendingNotifications()).toEqual([])
  })

  it('F14: can be detached by one who is notified of it, and is over when the manager is disposed', async () => {
    const { launch, manager, detach } = setUp()
    const seen: unknown[] = []
    manager.transitions$.subscribe(({ kind, taskId }) => {
      if (kind === 'status') seen.push(manager.detachTask(taskId).detached)
    })
    await launch('a', foreground)
    expect(seen).toEqual([true])
    await manager.dispose()
    expect(detach('a').detached).toBe(false)
  })
})

describe('a foreground task whose call stops waiting for it', () => {
  it('F14: above the limit counts as one of the foreground, too, until its run has settled', async () => {
    const { launch, runs, slots, manager } = setUp({ maxForegroundTasks: 1 })
    await launch('in-background')
    await launch('a', foreground)
    leaveInBackground(manager, 'a')
    expect(manager.getTask('a')).not.toHaveProperty('isForeground')
    expect(slots()).toEqual({ ...none, task: 2, foreground: 1 })
    await expect(launch('b', foreground)).rejects.toThrow('Max foreground tasks (1) reached')
    manager.cancelTask('a')
    expect(slots()).toEqual({ ...none, task: 2, foreground: 1 })
    await runs[1]?.end()
    expect(slots()).toEqual({ ...none, task: 1 })
    await launch('b', foreground)
  })

  it('F14: waits for its next run without any slot', async () => {
    const { launch, runs, slots, manager } = setUp()
    await launch('in-background')
    await launch('a', { ...foreground, retry })
    leaveInBackground(manager, 'a')
    await runs[1]?.fail(rateLimit)
    expect(slots()).toEqual({ ...none, task: 1 })
    leaveInBackground(manager, 'a')
    leaveInBackground(manager, 'nobody')
    expect(slots()).toEqual({ ...none, task: 1 })
  })
})

describe('a foreground task in a store', () => {
  async function crashed(prepare: (host: ReturnType<typeof setUp>) => Promise<void>) {
    const store = memoryStore()
    const host = setUp({ store, maxAsyncTasks: 2 })
    await prepare(host)
    await tick()
    const copy = store.copy()
    const next = new AsyncTaskManager({
      store: copy,
      clock: createManualClock(9_000),
      graceMs: 0,
      maxAsyncTasks: 2,
      findRunner: () => ({ run: untilAborted }),
    })
    onTestFinished(() => next.dispose())
    await next.recovered
    await tick()
    return { next, rows: store.contents().tasks }
  }
  const repeated: RetryPolicy = { attempts: 3, on: ['interrupted'] }

  it.each(['detached', 'not detached'])('F14: is recovered in the background after a crash: %s', async (how) => {
    const { next, rows } = await crashed(async ({ launch, detach }) => {
      await launch('a', { ...foreground, retry: repeated })
      if (how === 'detached') detach('a')
    })
    expect(rows.find(({ id }) => id === 'a')?.record).not.toHaveProperty('isForeground')
    expect(next.getTask('a')).toMatchObject({ status: 'running', attempt: 2 })
    expect(next.getTask('a')).not.toHaveProperty('isForeground')
    expect(slotsOf(next)).toEqual({ ...none, task: 1 })
  })

  it('F14: is recovered in the pool that its row names', async () => {
    const { next, rows } = await crashed(async ({ launch, runs, runner, detach }) => {
      await launch('p', { retry: repeated })
      const child = { id: 'c', subagentName: 'agent', goalPrompt: 'g', isForeground: true, retry: repeated }
      runs[0]?.context.launch(child, runner)
      await tick()
      detach('c')
      await launch('cmd', { ...command, retry: repeated })
      detach('cmd')
    })
    expect(rows.map(({ id, run }) => [id, run?.['pool']])).toEqual([
      ['p', undefined],
      ['c', 'child'],
      ['cmd', 'command'],
    ])
    expect(registryOf(next).pools.of('child', 1).inUse).toBe(1)
    expect(slotsOf(next)).toEqual({ ...none, task: 1, command: 1 })
  })

  it('F14: is restored from its record as one whose run was lost', async () => {
    const { launch, manager } = setUp()
    await launch('a', foreground)
    const restored = AsyncTaskManager.restore(manager.getAllTasks(), { clock: createManualClock() })
    onTestFinished(() => restored.dispose())
    expect(restored.getTask('a')).toMatchObject({ status: 'failed', errorCode: 'INTERRUPTED' })
    expect(restored.getTask('a')).not.toHaveProperty('isForeground')
  })
})
