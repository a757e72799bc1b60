/** Limits on what the runs of a task may use: F10. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager, type RunContext, type RunFunction } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'
import { spentByOwner } from '../../../src/features/limits/spent-by-owner.js'
import { InvalidInputError } from '../../../src/errors.js'

/** The same run, which does not stop when it is aborted. */
const hanging =
  (run: RunFunction): RunFunction =>
  (...args) => {
    void run(...args)
    return new Promise(() => undefined)
  }

describe('what a run has used', () => {
  it('F10: is added up in the record, per owner and in all', async () => {
    const { launch, manager, runs } = limitedTasks({ maxAsyncTasks: 2 })
    await launch('a', { owner: 'one' })
    await launch('b', { owner: 'two' })
    runs[0]?.context.spend({ tokens: 100, cost: 0.25 })
    runs[0]?.context.spend({ tokens: 50, steps: 1 })
    runs[1]?.context.spend({ tokens: 7 })
    expect(manager.getTask('a')?.spent).toEqual({ tokens: 150, cost: 0.25, steps: 1 })
    expect(manager.spent('one')).toEqual({ tokens: 150, cost: 0.25, steps: 1 })
    expect(manager.spent('three')).toEqual({})
    expect(manager.spent()).toEqual({ tokens: 157, cost: 0.25, steps: 1 })
    await runs[0]?.end()
    runs[0]?.context.spend({ tokens: 1 })
    expect(manager.getTask('a')?.spent).toEqual({ tokens: 150, cost: 0.25, steps: 1 })
  })

  it('F10: is refused with its field when it is no amount', async () => {
    const { launch, manager, runs } = limitedTasks()
    await launch('a')
    for (const [amount, field] of [
      [{ tokens: -1 }, 'amount.tokens'],
      [{ cost: NaN }, 'amount.cost'],
      [{ steps: Infinity }, 'amount.steps'],
      [{ tokens: '5' }, 'amount.tokens'],
      [{ money: 5 }, 'amount.money'],
      [5, 'amount'],
    ] as const) {
      let thrown: unknown
      try {
        runs[0]?.context.spend(amount as never)
      } catch (error) {
        thrown = error
      }
      expect(thrown).toBeInstanceOf(InvalidInputError)
      expect((thrown as InvalidInputError).field).toBe(field)
    }
    expect(manager.getTask('a')).not.toHaveProperty('spent')
  })

  it('F10: stays finite', async () => {
    const { launch, manager, runs } = limitedTasks({ maxAsyncTasks: -1 })
    await launch('a')
    runs[0]?.context.spend({ tokens: Number.MAX_VALUE })
    runs[0]?.context.spend({ tokens: Number.MAX_VALUE })
    expect(manager.getTask('a')?.spent).toEqual({ tokens: Number.MAX_VALUE })
  })

  it('F10: counts for each of 10,000 owners', () => {
    const { manager } = limitedTasks({ maxAsyncTasks: -1 })
    const sums = manager.registry.use(spentByOwner)
    for (let n = 0; n < 10_000; n += 1) sums.spent(`owner-${n}`, { steps: 1 })
    expect([manager.spent('owner-0'), manager.spent('owner-9999')]).toEqual([{ steps: 1 }, { steps: 1 }])
    expect(manager.spent().steps).toBe(10_000)
  })
})

describe('a task over its budget', () => {
  it('F10: is asked to conclude, and may still complete', async () => {
    const { launch, manager, runs } = limitedTasks()
    await launch('a', { budget: { tokens: 100 } })
    const [run] = runs
    run?.context.spend({ tokens: 100 })
    expect(run?.context.wrapUp.aborted).toBe(false)
    run?.context.spend({ tokens: 1 })
    expect(run?.context.wrapUp.aborted).toBe(true)
    expect(run?.context.wrapUp.reason).toMatchObject({ code: 'BUDGET_EXCEEDED' })
    expect(run?.context.signal.aborted).toBe(false)
    expect(manager.getTask('a')?.status).toBe('running')
    await run?.end('what there is')
    expect(manager.getTask('a')).toMatchObject({ status: 'completed', spent: { tokens: 101 } })
  })

  it('F10: is stopped when it does not conclude in time, with a message that names the budget', async () => {
    const { launch, manager, runs, pass } = limitedTasks()
    await launch('a', { budget: { steps: 2 } })
    runs[0]?.context.spend({ steps: 3, cost: 0.1 })
    await pass(29_999)
    expect(manager.getTask('a')?.status).toBe('running')
    await pass(1)
    await tick()
    expect(runs[0]?.context.signal.aborted).toBe(true)
    expect(manager.getTask('a')).toMatchObject({
      status: 'failed',
      errorCode: 'BUDGET_EXCEEDED',
      error: 'Budget exceeded: its limit is 2 steps. Spent: cost 0.1, 3 steps.',
    })
  })

  it('F10: fails after its grace period when its run does not stop', async () => {
    const { launch, manager, pass } = limitedTasks()
    await launch('a', { budget: { seconds: 1, wrapUpMs: 500 } }, { run: () => new Promise<never>(() => undefined) })
    await pass(1_500)
    expect(manager.getTask('a')?.status).toBe('running')
    await pass(100)
    expect(manager.getTask('a')).toMatchObject({
      status: 'failed',
      errorCode: 'BUDGET_EXCEEDED',
      spent: { seconds: 1.6 },
      error: 'Budget exceeded: its limit is 1 seconds.',
    })
  })

  it('F10: has no more time to wrap up than its deadline leaves', async () => {
    const { launch, manager, runs, pass } = limitedTasks()
    await launch('a', { budget: { steps: 0 }, timeoutMs: 1_000 })
    await pass(900)
    runs[0]?.context.spend({ steps: 1 })
    await pass(100)
    await tick()
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', errorCode: 'BUDGET_EXCEEDED' })
  })

  it('F10: has its questions withdrawn, and is not run again', async () => {
    const { launch, manager, runs } = limitedTasks()
    await launch('a', { budget: { steps: 0 }, retry: { attempts: 5, on: ['rate-limited', 'timeout'] } })
    const asked = runs[0]?.context.ask('May I?')
    runs[0]?.context.spend({ steps: 1 })
    await expect(asked).rejects.toMatchObject({ code: 'QUESTION_WITHDRAWN' })
    await runs[0]?.fail(Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' }))
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', error: 'slow down' })
  })

  it('F10: can be cancelled while it wraps up', async () => {
    const { launch, manager, runs, pass, clock } = limitedTasks()
    await launch('a', { budget: { steps: 0 } })
    runs[0]?.context.spend({ steps: 1 })
    await pass(10)
    expect(manager.cancelTask('a')).toBe(true)
    await tick()
    expect(manager.getTask('a')?.status).toBe('cancelled')
    expect(clock.pending).toBe(0)
  })

  it('F10: has no limit but its grace period once it is asked to stop', async () => {
    const { launch, manager, pass } = limitedTasks({ graceMs: 500 })
    const deadline = () => manager.actor.getSnapshot().nextDeadlineAt ?? NaN
    await launch('a', { timeoutMs: 1_000, budget: { seconds: 1.2 } }, { run: hanging(untilAborted) })
    const stopsAt = deadline()
    await pass(1_000)
    expect(deadline()).toBe(stopsAt + 500)
    await pass(500)
  })

  it('F10: has 30 s to conclude by default, and launches nothing once it is asked to stop', async () => {
    const { launch, manager, runs, runner, pass } = limitedTasks()
    await launch('a', { budget: { tokens: 1 } }, { run: hanging(runner) })
    runs[0]?.context.spend({ tokens: 2 })
    await pass(29_999)
    expect(runs[0]?.context.signal.aborted).toBe(false)
    await pass(1)
    expect(runs[0]?.context.signal.aborted).toBe(true)
    expect(() => runs[0]?.context.launch({ subagentName: 'b', goalPrompt: 'g' }, runner)).toThrow('is being stopped')
    manager.cancelTask('a')
    await pass(100)
  })

  it('F10: counts the time of all its runs, and not the time between them', async () => {
    const { launch, manager, runs, pass } = limitedTasks()
    await launch('a', {
      budget: { seconds: 1 },
      retry: { attempts: 2, on: ['rate-limited'], backoff: { initialMs: 5_000, jitter: false } },
    })
    await pass(600)
    await runs[0]?.fail(Object.assign(new Error('slow down'), { code: 'RATE_LIMITED' }))
    expect(manager.getTask('a')?.spent).toEqual({ seconds: 0.6 })
    await pass(5_000)
    await pass(399)
    expect(runs[1]?.context.wrapUp.aborted).toBe(false)
    await pass(1)
    expect(runs[1]?.context.wrapUp.aborted).toBe(true)
    await runs[1]?.end()
    expect(manager.getTask('a')).toMatchObject({ status: 'completed', spent: { seconds: 1 } })
    expect(manager.spent()).toEqual({ seconds: 1 })
  })

  it('F10: the smaller of two budgets counts', async () => {
    const { launch, manager } = limitedTasks({ maxAsyncTasks: 2 })
    await launch('a', { budget: { tokens: 10, steps: 9 } }, { budget: { tokens: 20, cost: 1 } })
    expect(manager.getTask('a')?.budget).toEqual({ tokens: 10, steps: 9, cost: 1 })
    await launch('b', { budget: {} })
    expect(manager.getTask('b')).not.toHaveProperty('budget')
  })

  it('F10: a malformed budget is refused with its field', () => {
    const { manager, runner } = limitedTasks()
    const input = { subagentName: 'agent', goalPrompt: 'goal' }
    expect(() => manager.launch({ ...input, budget: { tokens: -1 } }, runner)).toThrow(/^input\.budget\.tokens: got -1/)
    expect(() => manager.launch(input, { run: runner, budget: { steps: -1 } })).toThrow(/runner|budget/)
  })

  it('F10: a listener of the signal that throws is reported, and disturbs nothing', async () => {
    const { launch, manager, runs, errors } = limitedTasks()
    await launch('a', { budget: { steps: 0 } })
    runs[0]?.context.wrapUp.addEventListener('abort', () => {
      throw new Error('broken listener')
    })
    runs[0]?.context.spend({ steps: 1 })
    await tick()
    expect(errors).toMatchObject([{ message: 'broken listener' }])
    expect(manager.getTask('a')?.status).toBe('running')
  })
})

describe('a budget in a store', () => {
  it('F10: what was spent is stored with the record, and counts for its owner after a crash', async () => {
    const store = memoryStore()
    const { launch, runs } = limitedTasks({ store, maxAsyncTasks: 2 })
    await launch('a', { budget: { tokens: 5 } })
    runs[0]?.context.spend({ tokens: 3 })
    await tick()
    const next = new AsyncTaskManager({ store: store.copy(), clock: createManualClock(2_000) })
    await next.recovered
    expect(next.getTask('a')).toMatchObject({ status: 'failed', budget: { tokens: 5 }, spent: { tokens: 3 } })
    expect(next.spent('main')).toEqual({ tokens: 3 })
    await next.dispose()
  })

  it('F10: a task over its budget is not run again after a crash', async () => {
    const store = memoryStore()
    const { launch, runs } = limitedTasks({ store })
    await launch('a', { budget: { tokens: 5 }, retry: { attempts: 3, on: ['interrupted'] } })
    runs[0]?.context.spend({ tokens: 6 })
    await tick()
    const options = { store: store.copy(), clock: createManualClock(2_000), findRunner: () => untilAborted }
    const next = new AsyncTaskManager(options)
    expect(await next.recovered).toMatchObject({ interrupted: ['a'], retried: [] })
    await next.dispose()
  })

  it('F10: a run that is followed after a crash is asked to conclude, as before', async () => {
    const store = memoryStore()
    const contexts: RunContext[] = []
    const run: RunFunction = (...args) => {
      contexts.push(args[1])
      return untilAborted(...args)
    }
    const { launch } = limitedTasks({ store })
    await launch('a', { budget: { tokens: 5 } }, { run, survivesHost: true })
    contexts[0]?.spend({ tokens: 6 })
    await tick()
    const options = { store: store.copy(), clock: createManualClock(2_000) }
    const next = new AsyncTaskManager({ ...options, findRunner: () => ({ run, survivesHost: true }) })
    expect(await next.recovered).toMatchObject({ adopted: ['a'] })
    await tick()
    expect(contexts.map(({ wrapUp }) => wrapUp.aborted)).toEqual([true, true])
    expect(next.spent('main')).toEqual({ tokens: 6 })
    expect(next.spent()).toEqual({ tokens: 6 })
    await next.dispose()
  })
})
