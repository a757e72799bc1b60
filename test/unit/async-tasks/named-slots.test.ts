/** Keys, limits of subagents, rates and ageing: F18. */
import { describe, expect, it } from 'vitest'
import type { RunnerDefinition } from '../../../src/index.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'
import { FamilyError, InvalidInputError, InvalidSettingError, TaskLimitError } from '../../../src/errors.js'
import type { LaunchTaskInput } from '../../../src/protocol/async-tasks.js'

const MINUTE = 60_000
const tooFast = Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' })
const again = (initialMs = 0) => ({ attempts: 3, on: ['rate-limited'], backoff: { initialMs, jitter: false } }) as const

/** A manager whose tasks a test ends one by one. */
function keyedTasks(options: Parameters<typeof limitedTasks>[0] = {}) {
  const tasks = limitedTasks({ maxAsyncTasks: 10, ...options })
  const { manager, runs } = tasks
  const { registry } = manager
  const run = (id: string) => {
    const found = runs.findLast((started) => started.id === id)
    if (found === undefined) throw new Error(`${id} has not started.`)
    return found
  }
  /** Launches a child of a run. */
  const child = (
    parent: string,
    id: string,
    input: Partial<LaunchTaskInput> = {},
    more: Partial<RunnerDefinition> = {},
  ) =>
    run(parent).context.launch({ id, subagentName: 'agent', goalPrompt: 'g', ...input }, { run: tasks.runner, ...more })
  return {
    ...tasks,
    run,
    child,
    keyed: (id: string, concurrencyKey: string, input: Partial<LaunchTaskInput> = {}) =>
      tasks.launch(id, { concurrencyKey, ...input }),
    status: (...ids: string[]) => ids.map((id) => manager.getTask(id)?.status),
    /** What nothing may be left of when everything has ended. */
    left: () => ({
      slots: manager.actor.getSnapshot().slots,
      limits: registry.limits.size,
      queued: [...registry.pools.all(), registry.pools.foreground].reduce((sum, { queue }) => sum + queue.size, 0),
    }),
  }
}

const NOTHING_LEFT = { slots: 0, limits: 0, queued: 0 }

describe('tasks with the same key', () => {
  it('F18: run one at a time, in the order of their launches, and others do not wait for them', async () => {
    const { keyed, launch, run, started, status, left, manager } = keyedTasks()
    expect(await keyed('a', 'deploy')).toMatchObject({ status: 'running', concurrencyKey: 'deploy' })
    expect(await keyed('b', 'deploy', { whenFull: 'refuse' })).toMatchObject({
      status: 'queued',
      concurrencyKey: 'deploy',
    })
    await keyed('c', 'deploy')
    await keyed('d', 'other')
    await launch('e')
    expect(started()).toEqual(['a', 'd', 'e'])
    expect([manager.queuePosition('b'), manager.queuePosition('c')]).toEqual([1, 2])
    await run('a').end()
    expect(started()).toEqual(['a', 'd', 'e', 'b'])
    await run('b').fail(new Error('no'))
    expect(status('b', 'c')).toEqual(['failed', 'running'])
    for (const id of ['c', 'd', 'e']) await run(id).end()
    expect(manager.getTask('c')).toMatchObject({ status: 'completed', concurrencyKey: 'deploy' })
    expect(left()).toEqual(NOTHING_LEFT)
  })

  it('F18: as many at once as the option limits says, for that key alone', async () => {
    const { keyed, started, run } = keyedTasks({ limits: { build: 2 } })
    for (const id of ['a', 'b', 'c']) await keyed(id, 'build')
    for (const id of ['d', 'e']) await keyed(id, 'toString')
    expect(started()).toEqual(['a', 'b', 'd'])
    await run('b').end()
    expect(started()).toEqual(['a', 'b', 'd', 'c'])
  })

  it('F18: go by priority, and leave nothing when they are cancelled while they wait', async () => {
    const { keyed, run, started, manager, left } = keyedTasks()
    await keyed('a', 'k')
    await keyed('b', 'k')
    await keyed('c', 'k', { priority: 1 })
    await keyed('d', 'k')
    expect(manager.cancelTask('b')).toBe(true)
    await run('a').end()
    await run('c').end()
    expect(started()).toEqual(['a', 'c', 'd'])
    manager.cancelAll()
    await tick()
    expect(left()).toEqual(NOTHING_LEFT)
  })

  it('F18: hold the key until the run has settled, not only until the task has ended', async () => {
    const { launch, keyed, clock, started, manager } = keyedTasks()
    await launch('a', { concurrencyKey: 'k' }, { run: () => new Promise(() => undefined) })
    await keyed('b', 'k')
    manager.cancelTask('a')
    await tick()
    expect(started()).toEqual([])
    clock.advance(100)
    await tick()
    expect(started()).toEqual(['b'])
  })

  it('F18: are distinguished from other kinds of task: a command and a child may have to wait for a task', async () => {
    const { keyed, launch, child, run, started, status } = keyedTasks()
    await launch('parent')
    await keyed('a', 'k')
    child('parent', 'c', { concurrencyKey: 'k' })
    await keyed('d', 'k', { kind: 'command', command: ['make'] })
    await keyed('e', 'k')
    expect(status('c', 'd', 'e')).toEqual(['queued', 'queued', 'queued'])
    for (const id of ['a', 'c', 'd', 'e']) await run(id).end()
    expect(started()).toEqual(['parent', 'a', 'c', 'd', 'e'])
  })

  it('F18: wait in place too, and only as many as the queue takes', async () => {
    const { keyed, run, started, status, left, manager } = keyedTasks({ queue: { max: 1 }, maxForegroundTasks: 2 })
    await keyed('a', 'k')
    await keyed('b', 'k', { isForeground: true })
    expect(manager.getTask('b')).toMatchObject({ status: 'queued', isForeground: true })
    await expect(keyed('c', 'k', { isForeground: true })).rejects.toThrow(
      'Max foreground tasks (2) reached, and the queue is full (1 waiting, queue.max)',
    )
    await keyed('d', 'k')
    await expect(keyed('e', 'k')).rejects.toThrow(TaskLimitError)
    expect(status('c', 'e')).toEqual([undefined, undefined])
    await run('a').end()
    expect(started()).toEqual(['a', 'b'])
    await run('b').end()
    await run('d').end()
    expect(left()).toEqual(NOTHING_LEFT)
  })

  it('F18: may move to the background while they wait, and take a slot there', async () => {
    const { keyed, launch, run, started, manager } = keyedTasks({ maxAsyncTasks: 2 })
    await keyed('a', 'k')
    await keyed('b', 'k', { isForeground: true })
    expect(manager.detachTask('b')).toEqual({ detached: true })
    await launch('c')
    await run('a').end()
    expect(started()).toEqual(['a', 'c', 'b'])
    expect(manager.actor.getSnapshot().slots).toBe(2)
    await run('b').end()
    expect(manager.actor.getSnapshot().slots).toBe(1)
  })

  it('F18: wait for other tasks first, and then for the key', async () => {
    const { keyed, launch, run, started, status } = keyedTasks()
    await launch('a')
    await keyed('b', 'k')
    await keyed('c', 'k', { after: ['a'] })
    await keyed('d', 'k')
    await run('b').end()
    expect(started()).toEqual(['a', 'b', 'd'])
    await run('a').end()
    expect(status('c')).toEqual(['queued'])
    await run('d').end()
    expect(started()).toEqual(['a', 'b', 'd', 'c'])
  })

  it('F18: use no reservation that was made for one that has to wait', async () => {
    const { keyed, manager } = keyedTasks({ maxAsyncTasks: 2 })
    await keyed('a', 'k')
    const reservation = manager.tryReserveAsyncSlot() ?? undefined
    manager.launch({ id: 'b', subagentName: 's', goalPrompt: 'g', concurrencyKey: 'k' }, untilAborted, reservation)
    expect(manager.actor.getSnapshot()).toMatchObject({ slots: 1, reservations: 0 })
  })

  it('F18: give the key back for the time between two runs, and take it again', async () => {
    const { launch, keyed, run, started, pass, status, left } = keyedTasks()
    await launch('a', { concurrencyKey: 'k' }, { retry: again(1_000) })
    await keyed('b', 'k')
    await run('a').fail(tooFast)
    expect(started()).toEqual(['a', 'b'])
    await pass(1_000)
    expect(status('a', 'b')).toEqual(['queued', 'running'])
    await keyed('c', 'k')
    await run('b').end()
    // It has kept its place.
    expect(started()).toEqual(['a', 'b', 'a'])
    await run('a').end()
    await run('c').end()
    expect(left()).toEqual(NOTHING_LEFT)
  })

  it('F18: refuse malformed keys and limits, with nothing changed', async () => {
    const { keyed, launch, manager } = keyedTasks()
    await expect(keyed('a', '')).rejects.toThrow(/^input\.concurrencyKey: got ""/)
    await expect(keyed('a', 'a\nb')).rejects.toThrow(InvalidInputError)
    await expect(keyed('a', 'k'.repeat(513))).rejects.toThrow(InvalidInputError)
    await expect(launch('a', {}, { maxConcurrent: 0 })).rejects.toThrow(
      'Setting runner.maxConcurrent: got 0, expected an integer >= 1.',
    )
    await expect(launch('a', {}, { rate: { limit: 501, perMs: 1 } })).rejects.toThrow(
      'Setting runner.rate.limit: got 501, expected an integer from 1 to 500.',
    )
    await expect(launch('a', {}, { rate: { limit: 1, perMs: 0 } })).rejects.toThrow('Setting runner.rate.perMs: got 0')
    await expect(launch('a', {}, { rate: { limit: 1 } as never })).rejects.toThrow(/rate\.perMs: got undefined/)
    expect(manager.getAllTasks()).toEqual([])
    expect(() => keyedTasks({ limits: { k: 0 } })).toThrow(InvalidSettingError)
    expect(() => keyedTasks({ queue: { agingMs: 0 } })).toThrow(
      'Setting queue.agingMs: got 0, expected a number >= 1, or -1 for never.',
    )
  })
})

describe('the tasks of a subagent with maxConcurrent', () => {
  it('F18: are as many at once, in every pool, and only those of that subagent', async () => {
    const { launch, run, started, status } = keyedTasks()
    const two = { maxConcurrent: 2 }
    await launch('a', { subagentName: 'scout' }, two)
    await launch('b', { subagentName: 'scout', isForeground: true }, two)
    await launch('c', { subagentName: 'scout' }, two)
    await launch('d', { subagentName: 'writer' }, two)
    expect(started()).toEqual(['a', 'b', 'd'])
    await run('b').end()
    expect(status('c')).toEqual(['running'])
  })

  it('F18: take all they need or nothing: what waits for one of two keeps neither from others', async () => {
    const { launch, keyed, run, started, left } = keyedTasks()
    await keyed('a', 'k')
    const scout = (id: string, input: Partial<LaunchTaskInput> = {}) =>
      launch(id, { subagentName: 'scout', ...input }, { maxConcurrent: 1 })
    await scout('b', { concurrencyKey: 'k' })
    // The place of the subagent is free: `b` does not hold it.
    await scout('c')
    expect(started()).toEqual(['a', 'c'])
    await run('a').end()
    expect(started()).toEqual(['a', 'c'])
    await keyed('d', 'k')
    expect(started()).toEqual(['a', 'c', 'd'])
    await run('c').end()
    await run('d').end()
    expect(started()).toEqual(['a', 'c', 'd', 'b'])
    await run('b').end()
    expect(left()).toEqual(NOTHING_LEFT)
  })

  it('F18: keep no slot of the pool while they wait for a key, nor the key while they wait for that slot', async () => {
    const { launch, keyed, child, run, started } = keyedTasks({ maxAsyncTasks: 2 })
    await keyed('a', 'k')
    await launch('b')
    await keyed('c', 'k')
    await run('b').end()
    await launch('d')
    await run('a').end()
    expect(started()).toEqual(['a', 'b', 'd', 'c'])
    // Both slots are taken now.
    await keyed('e', 'other')
    expect(child('d', 'f', { concurrencyKey: 'other' })).toMatchObject({ status: 'running' })
    await run('c').end()
    expect(started()).toEqual(['a', 'b', 'd', 'c', 'f'])
    await run('f').end()
    expect(started()).toEqual(['a', 'b', 'd', 'c', 'f', 'e'])
  })
})

describe('the time of waiting', () => {
  it('F18: raises the priority of a task by one in queue.agingMs, evenly', async () => {
    for (const agingMs of [undefined, 1_000, -1]) {
      const { launch, run, started, pass } = keyedTasks({
        maxAsyncTasks: 1,
        whenFull: 'queue',
        queue: agingMs === undefined ? {} : { agingMs },
      })
      const unit = agingMs === 1_000 ? 1_000 : MINUTE
      await launch('a')
      await launch('old')
      await launch('middle', { priority: 1 })
      await pass(2 * unit + 1)
      await launch('new', { priority: 2 })
      await run('a').end()
      await run(agingMs === -1 ? 'new' : 'middle').end()
      await run(agingMs === -1 ? 'middle' : 'old').end()
      expect(started()).toEqual(agingMs === -1 ? ['a', 'new', 'middle', 'old'] : ['a', 'middle', 'old', 'new'])
    }
  })

  it('F18: counts for a key as for a slot', async () => {
    const { keyed, launch, run, started, pass } = keyedTasks({ maxAsyncTasks: 1, whenFull: 'queue' })
    await launch('a')
    await keyed('b', 'k')
    await pass(MINUTE + 1)
    await launch('c', { priority: 1 })
    await keyed('d', 'k', { priority: 1 })
    await launch('e', { priority: 2 })
    await run('a').end()
    await run('e').end()
    await run('b').end()
    await run('c').end()
    expect(started()).toEqual(['a', 'e', 'b', 'c', 'd'])
  })

  it('F18: lets the first that has waited for ten times that reserve what becomes free', async () => {
    const { launch, keyed, run, started, pass, status } = keyedTasks({ queue: { agingMs: 1_000 } })
    const scout = (id: string, input: Partial<LaunchTaskInput> = {}) =>
      launch(id, { subagentName: 'scout', ...input }, { maxConcurrent: 1 })
    await scout('s1')
    await keyed('k1', 'k')
    await scout('both', { concurrencyKey: 'k' })
    await pass(9_999)
    await run('s1').end()
    await scout('s2')
    expect(status('s2', 'both')).toEqual(['running', 'queued'])
    await pass(1)
    await run('k1').end()
    // It has waited for 10 s: from now on nothing else takes the key, and what needs neither goes on.
    await keyed('k2', 'k')
    await keyed('other', 'x')
    expect(status('k2', 'both', 'other')).toEqual(['queued', 'queued', 'running'])
    await run('s2').end()
    expect(started().slice(-2)).toEqual(['other', 'both'])
    await run('both').end()
    expect(status('k2')).toEqual(['running'])
  })

  it('F18: a reservation ends with the task that has it, and one that waits for its rate makes none', async () => {
    const { launch, keyed, run, pass, status, manager } = keyedTasks({ queue: { agingMs: 1_000 } })
    const rare = { maxConcurrent: 1, rate: { limit: 1, perMs: 50_000 } }
    await launch('r1', { subagentName: 'rare' }, rare)
    await run('r1').end()
    await launch('r2', { subagentName: 'rare', concurrencyKey: 'k' }, rare)
    await pass(20_000)
    await keyed('k1', 'k')
    expect(status('r2', 'k1')).toEqual(['queued', 'running'])
    await pass(40_000)
    await run('k1').end()
    expect(status('r2')).toEqual(['running'])
    await launch('both', { subagentName: 'one', concurrencyKey: 'k' }, { maxConcurrent: 1 })
    await launch('one', { subagentName: 'one' }, { maxConcurrent: 1 })
    await pass(10_000)
    await launch('two', { subagentName: 'one' }, { maxConcurrent: 1 })
    await run('one').end()
    expect(status('both', 'two')).toEqual(['queued', 'queued'])
    manager.cancelTask('both')
    await tick()
    expect(status('two')).toEqual(['running'])
  })

  it('F18: a reservation does not hold back what its task waits for', async () => {
    const { keyed, launch, child, run, pass, status } = keyedTasks({ queue: { agingMs: 1_000 } })
    await keyed('holder', 'k')
    await launch('one', { subagentName: 'one' }, { maxConcurrent: 1 })
    await launch('both', { subagentName: 'one', concurrencyKey: 'k' }, { maxConcurrent: 1 })
    await pass(10_000)
    await run('one').end()
    expect(child('holder', 'c', { subagentName: 'one' }, { maxConcurrent: 1 })).toMatchObject({ status: 'queued' })
    const waited = run('holder').context.children.waitFor(['c'])
    await tick()
    expect(status('c', 'both')).toEqual(['running', 'queued'])
    await run('c').end()
    await waited
    await run('holder').end()
    expect(status('both')).toEqual(['running'])
  })

  it('F18: maxWaitMs begins when only a slot of the pool is missing, and anew when the key is taken again', async () => {
    const { keyed, launch, child, run, pass, status, manager } = keyedTasks({
      maxAsyncTasks: 2,
      queue: { maxWaitMs: 1_000 },
    })
    await launch('a')
    await keyed('b', 'k')
    await keyed('c', 'k')
    await pass(5_000)
    expect(status('c')).toEqual(['queued'])
    await launch('d', { whenFull: 'queue', priority: 1 })
    await run('b').end()
    // `d` has the slot: only that is missing now.
    await pass(900)
    child('a', 'e', { concurrencyKey: 'k' })
    await pass(900)
    expect(status('c', 'e')).toEqual(['queued', 'running'])
    await run('e').end()
    await pass(999)
    expect(status('c')).toEqual(['queued'])
    await pass(1)
    expect(manager.getTask('c')).toMatchObject({ status: 'failed', errorCode: 'QUEUE_TIMEOUT' })
  })
})

describe('the rate of a subagent', () => {
  const rate = { limit: 2, perMs: 1_000 }

  it('F18: lets as many runs start in any such time, and starts the next when it may', async () => {
    const { launch, run, started, pass, clock, left, manager } = keyedTasks()
    await launch('a', {}, { rate })
    await pass(400)
    await launch('b', {}, { rate })
    expect(await launch('c', {}, { rate, maxConcurrent: 5 })).toMatchObject({ status: 'queued' })
    await launch('d', {}, { rate })
    await launch('x', { subagentName: 'other' }, { rate })
    await run('a').end()
    await pass(599)
    // A change a millisecond too early starts nothing.
    manager.setMaxAsyncTasks(9)
    await tick()
    expect(started()).toEqual(['a', 'b', 'x'])
    await pass(1)
    expect(started()).toEqual(['a', 'b', 'x', 'c'])
    await pass(399)
    expect(started()).toHaveLength(4)
    await pass(1)
    expect(started()).toEqual(['a', 'b', 'x', 'c', 'd'])
    for (const id of ['b', 'x', 'c', 'd']) await run(id).end()
    expect(left()).toEqual(NOTHING_LEFT)
    expect(clock.pending).toBe(0)
    expect(manager.actor.getSnapshot().nextRetryAt).toBeUndefined()
  })

  it('F18: counts the runs of a task that is repeated', async () => {
    const { launch, run, started, pass } = keyedTasks()
    await launch('a', {}, { rate, retry: again() })
    await run('a').fail(tooFast)
    await pass(0)
    await run('a').fail(tooFast)
    await pass(0)
    expect(started()).toEqual(['a', 'a'])
    await launch('b', {}, { rate })
    await pass(1_000)
    expect(started()).toEqual(['a', 'a', 'a', 'b'])
  })

  it('F18: forgets a subagent whose runs do not count any longer', async () => {
    const { launch, pass, manager } = keyedTasks()
    const { rates } = manager.registry.limits
    await launch('a', { subagentName: 'one' }, { rate })
    expect(rates.startsOf('one')).toHaveLength(1)
    await pass(1_000)
    await launch('b', { subagentName: 'two' }, { rate })
    expect([rates.startsOf('one').length, rates.startsOf('two').length]).toEqual([0, 1])
  })

  it('F18: does not start one that was cancelled meanwhile, and leaves no timer for it', async () => {
    const { launch, run, started, pass, manager, clock, left } = keyedTasks()
    const one = { rate: { limit: 1, perMs: 1_000 } }
    await launch('a', {}, one)
    await launch('b', {}, one)
    await run('a').end()
    manager.cancelTask('b')
    await pass(1_000)
    expect(started()).toEqual(['a'])
    expect([left(), clock.pending]).toEqual([NOTHING_LEFT, 0])
  })
})

describe('a wait that would never end', () => {
  it('F18: a child is refused that needs a key or a place that a task above it has', async () => {
    const { keyed, launch, child, run, manager, left } = keyedTasks({ limits: { wide: 5 } })
    const scout = { maxConcurrent: 3 }
    await keyed('a', 'wide')
    await launch('s', { subagentName: 'scout' }, scout)
    const refusal = (act: () => unknown) => {
      try {
        act()
      } catch (error) {
        if (error instanceof FamilyError) return [error.code, error.taskId]
        throw error
      }
      return undefined
    }
    expect(refusal(() => child('a', 'c', { concurrencyKey: 'wide' }))).toEqual(['HELD_BY_PARENT', 'a'])
    child('a', 'c')
    await tick()
    expect(refusal(() => child('c', 'd', { concurrencyKey: 'wide' }))).toEqual(['HELD_BY_PARENT', 'c'])
    expect(refusal(() => child('s', 'e', { subagentName: 'scout' }, scout))).toEqual(['HELD_BY_PARENT', 's'])
    expect(child('s', 'e', { concurrencyKey: 'wide' })).toMatchObject({ status: 'running' })
    await tick()
    expect(['d'].map((id) => manager.getTask(id))).toEqual([undefined])
    await run('a').end()
    // It has ended: what it had launched may have the key.
    expect(refusal(() => child('c', 'd', { concurrencyKey: 'wide' }))).toBeUndefined()
    await tick()
    for (const id of ['c', 'd', 's', 'e']) await run(id).end()
    expect(left()).toEqual(NOTHING_LEFT)
  })

  it('F18: a wait of a run is refused that closes a cycle over keys, and the others go on', async () => {
    const { keyed, child, run, status } = keyedTasks()
    await keyed('a', 'one')
    await keyed('b', 'two')
    child('a', 'a1', { concurrencyKey: 'two' })
    child('b', 'b1', { concurrencyKey: 'one' })
    const first = run('a').context.children.waitFor()
    const second = run('b').context.children.waitFor(['b1'])
    await expect(second).rejects.toMatchObject({ code: 'DEADLOCK', taskId: 'b' })
    await run('b').end()
    await tick()
    expect(status('a1')).toEqual(['running'])
    await run('a1').end()
    expect((await first).settled).toHaveLength(1)
  })

  it('F18: the same over after, over waits of other runs and over places of subagents', async () => {
    const { keyed, launch, child, run } = keyedTasks()
    const scout = { maxConcurrent: 1 }
    await keyed('a', 'one')
    await launch('s', { subagentName: 'scout' }, scout)
    child('s', 's1')
    child('a', 'a1', { subagentName: 'scout' }, scout)
    child('a', 'a2', { after: ['a1'] })
    await tick()
    child('s1', 's2', { concurrencyKey: 'one' })
    const waits = [run('s').context.children.waitFor(['s1']), run('s1').context.children.waitFor(['s2'])]
    await expect(run('a').context.children.waitFor(['a2'])).rejects.toMatchObject({ code: 'DEADLOCK', taskId: 'a' })
    await run('a').end()
    await run('s2').end()
    await run('s1').end()
    await run('s').end()
    await Promise.all(waits)
  })

  it('F18: the same while one of two waits of a run has ended, in any order, and not after both', async () => {
    for (const isFirst of [true, false]) {
      const { keyed, child, run } = keyedTasks()
      await keyed('a', 'one')
      await keyed('b', 'two')
      child('a', 'a1', { concurrencyKey: 'two' })
      child('a', 'a2')
      child('b', 'b1', { concurrencyKey: 'one' })
      await tick()
      const abort = new AbortController()
      const { children } = run('a').context
      const waits = (isFirst ? ['a2', 'a1'] : ['a1', 'a2']).map((id) =>
        children.waitFor([id], { signal: abort.signal }),
      )
      await run('a2').end()
      await waits[isFirst ? 0 : 1]
      await expect(run('b').context.children.waitFor(['b1'])).rejects.toMatchObject({ code: 'DEADLOCK' })
      abort.abort()
      await expect(waits[isFirst ? 1 : 0]).rejects.toBe(abort.signal.reason)
      const waited = run('b').context.children.waitFor(['b1'])
      await run('a').end()
      await run('b1').end()
      expect((await waited).settled).toHaveLength(1)
    }
  })

  it('F18: the same for a task that a run launches in place', async () => {
    const { keyed, child, run, manager } = keyedTasks()
    await keyed('a', 'one')
    await keyed('b', 'two')
    child('b', 'b1', { concurrencyKey: 'one' })
    const waited = run('b').context.children.waitFor()
    expect(() => child('a', 'a1', { concurrencyKey: 'two', isForeground: true })).toThrow(
      /^Task a launches a foreground task/,
    )
    expect(manager.getTask('a1')).toBeUndefined()
    await run('a').end()
    await run('b1').end()
    await waited
    // And it counts as a wait of its run.
    await keyed('c', 'three')
    child('b', 'b2', { concurrencyKey: 'three', isForeground: true })
    child('c', 'c1', { concurrencyKey: 'two' })
    await expect(run('c').context.children.waitFor()).rejects.toMatchObject({ code: 'DEADLOCK' })
  })

  it('F18: a wait is not refused that ends by itself, that another end may end, or that nobody closes', async () => {
    const { keyed, child, run, pass, manager } = keyedTasks({ limits: { one: 2 } })
    await keyed('a', 'one')
    await keyed('x', 'one')
    await keyed('b', 'two')
    child('a', 'a1', { concurrencyKey: 'two' })
    child('a', 'a2')
    child('b', 'b1', { concurrencyKey: 'one' })
    await tick()
    const waits = [
      run('a').context.children.waitFor(['a1'], { timeoutMs: 500 }),
      // Another task holds the key, too.
      run('b').context.children.waitFor(),
      run('a').context.children.waitFor(['a1', 'a2'], { mode: 'any' }),
    ]
    await pass(500)
    expect((await waits[0])?.pending).toHaveLength(1)
    await run('a2').end()
    expect((await waits[2])?.settled).toHaveLength(1)
    await run('x').end()
    await tick()
    await run('b1').end()
    await waits[1]
    // A wait that is over is none.
    await keyed('c', 'three')
    child('c', 'c1')
    await tick()
    const over = run('c').context.children.waitFor(['c1'])
    await run('c1').end()
    await over
    child('b', 'b2', { concurrencyKey: 'three' })
    const last = run('b').context.children.waitFor(['b2'])
    await run('c').end()
    await run('b2').end()
    await last
    manager.cancelAll()
    await tick()
  })

  it('F18: a wait is refused only when all that could end it wait for the run', async () => {
    const { keyed, child, run } = keyedTasks({ limits: { one: 2 } })
    await keyed('a', 'one')
    await keyed('x', 'one')
    await keyed('b', 'two')
    child('a', 'a1', { concurrencyKey: 'two' })
    const first = run('a').context.children.waitFor(['a1'])
    child('b', 'b1', { concurrencyKey: 'one' })
    const second = run('b').context.children.waitFor(['b1'])
    await run('x').end()
    await run('b1').end()
    await second
    // That wait is over: what waits for `b` does not wait for `b1` any longer.
    child('b', 'b2')
    await tick()
    const third = run('b').context.children.waitFor(['b2'])
    await run('b2').end()
    await third
    await run('b').end()
    await run('a1').end()
    await first
  })
})
