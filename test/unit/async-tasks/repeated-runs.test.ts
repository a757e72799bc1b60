/** Runs that are repeated by the policy of their task: F9. */
import { describe, expect, it, vi } from 'vitest'
import { AsyncTaskManager } from '../../../src/index.js'
import { processRunner } from '../../../src/runners/process-runner.js'
import { memoryStore } from '../../../src/store/index.js'
import { createControllableEngine } from '../../support/controllable-engine.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'
import { InvalidInputError, InvalidSettingError } from '../../../src/errors.js'
import type { RetryPolicy } from '../../../src/protocol/retry-policy.js'

const rateLimit = (more: object = {}): Error => Object.assign(new Error('slow down'), { code: 'RATE_LIMITED', ...more })
const fail = (message: string): never => {
  throw new Error(message)
}
const exit = (exitCode: number): Error => Object.assign(new Error(`exited with ${exitCode}`), { exitCode })
const policy = (more: Partial<RetryPolicy> = {}): { retry: RetryPolicy } => ({
  retry: { attempts: 3, on: ['rate-limited'], ...more },
})

describe('a run that has failed', () => {
  it('F9: is never repeated by default', async () => {
    const { launch, manager, runs } = limitedTasks()
    await launch('a')
    await runs[0]?.fail(rateLimit())
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', error: 'slow down' })
    expect(manager.getTask('a')).not.toHaveProperty('attempts')
  })

  it.each([
    ['a symbol', { status: Symbol('busy') }],
    ['an object without a text', { status: Object.create(null) as unknown }],
    ['a getter that throws', Object.defineProperty({}, 'status', { get: () => fail('no status') })],
  ])('F9: fails its task when its status is %s', async (_what, more) => {
    const { launch, manager, runs } = limitedTasks()
    await launch('a', {}, policy())
    await runs[0]?.fail(Object.defineProperties(new Error('odd'), Object.getOwnPropertyDescriptors(more)))
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', error: 'odd' })
  })

  it('F9: is repeated at once with an initial back-off of 0', async () => {
    const { launch, runs, pass, started } = limitedTasks()
    await launch('a', {}, policy({ backoff: { initialMs: 0, factor: 1e308 } }))
    await runs[0]?.fail(rateLimit({ status: 429 }))
    await pass(0)
    await runs[1]?.fail(rateLimit())
    await pass(0)
    expect(started()).toHaveLength(3)
  })

  it('F9: is repeated after a back-off that grows, and its owner hears of the last run only', async () => {
    const { launch, manager, runs, pass, started } = limitedTasks()
    await launch('a', {}, policy({ backoff: { initialMs: 100, factor: 3, maxMs: 250, jitter: false } }))
    await runs[0]?.fail(rateLimit())
    expect(manager.getTask('a')).toMatchObject({ status: 'queued', attempt: 2, delivery: 'none' })
    expect(manager.canLaunchAsync().allowed).toBe(true)
    await pass(99)
    expect(started()).toHaveLength(1)
    await pass(1)
    expect(started()).toHaveLength(2)
    expect(runs[1]?.context.attempt).toBe(2)
    await runs[1]?.fail(rateLimit())
    await pass(249)
    expect(started()).toHaveLength(2)
    await pass(1)
    await runs[2]?.fail(new Error('for good'))
    expect(manager.getTask('a')).toMatchObject({
      status: 'failed',
      error: 'for good',
      attempt: 3,
      startedAt: 1_350,
      attempts: [
        { number: 1, startedAt: 1_000, endedAt: 1_000, error: 'slow down' },
        { number: 2, startedAt: 1_100, endedAt: 1_100, error: 'slow down' },
      ],
    })
    expect(manager.getPendingNotifications()).toHaveLength(1)
  })

  it('F9: has as many runs as its policy says, and fails with the error of the last', async () => {
    const { launch, manager, runs, pass, started } = limitedTasks()
    await launch('a', policy({ attempts: 2, backoff: { initialMs: 0 } }))
    await runs[0]?.fail(rateLimit())
    await pass(0)
    await runs[1]?.fail(rateLimit({ message: 'still' }))
    await pass(1_000_000)
    expect(started()).toHaveLength(2)
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', error: 'still', attempt: 2 })
  })

  it('F9: waits as long as a rate limit says', async () => {
    const { launch, runs, pass, started } = limitedTasks()
    await launch('a', {}, policy({ backoff: { jitter: false } }))
    await runs[0]?.fail(Object.assign(new Error('429'), { status: 429, retryAfterMs: 5_000 }))
    await pass(4_999)
    expect(started()).toHaveLength(1)
    await pass(1)
    expect(started()).toHaveLength(2)
  })

  it.each([
    ['start-failed', { code: 'PROCESS_NOT_STARTED' }],
    ['start-failed', { code: 'START_FAILED' }],
    ['exit-code', { exitCode: 3 }],
    ['rate-limited', { code: 'RATE_LIMITED' }],
    ['rate-limited', { status: 429 }],
  ] as const)('F9: is repeated for %s only where its policy says so (%o)', async (reason, fields) => {
    for (const on of ['start-failed', 'exit-code', 'timeout', 'rate-limited', 'interrupted'] as const) {
      const { launch, manager, runs } = limitedTasks()
      await launch('a', {}, policy({ on: [on] }))
      await runs[0]?.fail(Object.assign(new Error('no'), fields))
      expect(manager.getTask('a')?.status, on).toBe(on === reason ? 'queued' : 'failed')
    }
  })

  it('F9: is repeated for the exit codes that its policy names', async () => {
    for (const [code, status] of [
      [2, 'queued'],
      [3, 'failed'],
    ] as const) {
      const { launch, manager, runs } = limitedTasks()
      await launch('a', {}, policy({ on: ['exit-code'], exitCodes: [1, 2] }))
      await runs[0]?.fail(exit(code))
      expect(manager.getTask('a')?.status).toBe(status)
    }
  })

  it('F9: is repeated when the engine could not start it', async () => {
    const engine = createControllableEngine()
    engine.refuseNext(new Error('no process is left'))
    const { launch, manager, pass } = limitedTasks({ engine })
    await launch('a', {}, policy({ on: ['start-failed'] }))
    expect(manager.getTask('a')).toMatchObject({ status: 'queued', attempts: [{ error: 'no process is left' }] })
    await pass(1_000)
    expect(engine.runs).toHaveLength(1)
    engine.runs[0]?.finish({ type: 'returned', value: {} })
    await tick()
  })

  it('F9: is repeated after its deadline when it stops in time, with a whole deadline and a signal of its own', async () => {
    const { launch, manager, runs, pass, started } = limitedTasks()
    await launch('a', { timeoutMs: 500 }, policy({ on: ['timeout'], backoff: { jitter: false } }))
    await pass(500)
    await tick()
    expect(manager.getTask('a')).toMatchObject({
      status: 'queued',
      attempts: [{ error: 'Task timed out: it did not end within its limit of 500 ms.' }],
    })
    await pass(1_000)
    expect(started()).toHaveLength(2)
    expect(runs[1]?.context.signal.aborted).toBe(false)
    expect(manager.getTask('a')?.abortController?.signal.aborted).toBe(false)
    await pass(499)
    expect(manager.getTask('a')?.status).toBe('running')
    manager.getTask('a')?.abortController?.abort()
    expect(manager.getTask('a')?.status).toBe('cancelled')
    expect(runs[1]?.context.signal.aborted).toBe(true)
  })

  it('F9: is not repeated when it does not stop in time', async () => {
    const engine = createControllableEngine()
    const { launch, manager, pass } = limitedTasks({ engine })
    await launch('a', { timeoutMs: 500 }, policy({ on: ['timeout'], backoff: { jitter: false } }))
    engine.runs[0]?.begin()
    await pass(500)
    engine.runs[0]?.abandon()
    await tick()
    await pass(10_000)
    expect(manager.getTask('a')?.status).toBe('failed')
    expect(engine.runs).toHaveLength(1)
  })

  it('F9: can be cancelled while it waits, and is not repeated then', async () => {
    const { launch, manager, runs, pass, started } = limitedTasks()
    await launch('a', {}, policy())
    await runs[0]?.fail(rateLimit())
    expect(manager.cancelTask('a')).toBe(true)
    await pass(100_000)
    expect(started()).toHaveLength(1)
    expect(manager.getTask('a')?.status).toBe('cancelled')
  })

  it('F9: takes its original place among those that wait', async () => {
    const { launch, runs, pass, started } = limitedTasks({ whenFull: 'queue' })
    await launch('a', {}, policy({ backoff: { initialMs: 10, jitter: false } }))
    await launch('b')
    await launch('c')
    await runs[0]?.fail(rateLimit())
    expect(started()).toEqual(['a', 'b'])
    await pass(10)
    await runs[1]?.end()
    expect(started()).toEqual(['a', 'b', 'a'])
    await runs[2]?.end()
    expect(started()).toEqual(['a', 'b', 'a', 'c'])
  })

  it('F9: in place waits for no slot', async () => {
    const { launch, manager, runs, pass, started } = limitedTasks({ maxAsyncTasks: 0 })
    await launch('a', { isForeground: true }, policy())
    await runs[0]?.fail(rateLimit())
    await pass(1_000)
    expect(started()).toHaveLength(2)
    await runs[1]?.end()
    expect(manager.getTask('a')?.status).toBe('completed')
    expect(manager.actor.getSnapshot().slots).toBe(0)
  })

  it('F9: what an earlier run reports changes nothing', async () => {
    const { launch, manager, runs, pass } = limitedTasks()
    await launch('a', {}, policy())
    const [first] = runs
    const asked = first?.context.ask('Which one?')
    await first?.fail(rateLimit())
    await expect(asked).rejects.toMatchObject({ code: 'QUESTION_WITHDRAWN' })
    const report = async () => {
      first?.context.append('old')
      first?.context.report(1)
      first?.context.spend({ steps: 1 })
      await expect(first?.context.ask('Which one?')).rejects.toMatchObject({ code: 'QUESTION_WITHDRAWN' })
      expect(manager.readOutput('a')?.text).toBe('')
      expect(manager.getTask('a')).not.toHaveProperty('spent')
      expect(manager.getTask('a')).not.toHaveProperty('progress')
      expect(manager.getTask('a')).not.toHaveProperty('questions')
    }
    await report()
    await pass(1_000)
    expect(manager.getTask('a')?.status).toBe('running')
    await report()
    await runs[1]?.end()
    await report()
    expect(manager.getTask('a')).toMatchObject({ status: 'completed' })
  })

  it('F9: keeps the last ten of its earlier runs, with the beginning of their errors', async () => {
    const { launch, manager, runs, pass } = limitedTasks()
    await launch('a', {}, policy({ attempts: 20, backoff: { initialMs: 0 } }))
    for (let n = 0; n < 12; n += 1) {
      await runs[n]?.fail(rateLimit({ message: 'x'.repeat(1_000) }))
      await pass(0)
    }
    const attempts = manager.getTask('a')?.attempts
    expect(attempts?.map(({ number }) => number)).toEqual([3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
    expect(attempts?.every(({ error }) => error.length === 500)).toBe(true)
  })

  it('F9: a program that exits with a code is run again, as a program', async () => {
    const manager = new AsyncTaskManager({ onError: () => undefined })
    const script = 'process.exitCode = Number(process.env.ATTEMPT_FILE === undefined)'
    const run = processRunner({ command: process.execPath, args: ['-e', script] })
    const retry = { attempts: 2, on: ['exit-code'], backoff: { initialMs: 1, jitter: false } } as const
    const { id } = manager.launch({ subagentName: 'agent', goalPrompt: 'goal' }, { run, retry })
    const { settled } = await manager.waitFor([id])
    expect(settled).toMatchObject([{ status: 'failed', attempt: 2, attempts: [{ number: 1 }] }])
    expect(settled[0]?.error).toContain('exited with code 1')
    await manager.dispose()
  })

  it('F9: a malformed policy is refused with its field', () => {
    const { manager, runner } = limitedTasks()
    const input = { subagentName: 'agent', goalPrompt: 'goal' }
    expect(() => manager.launch(input, { run: runner, retry: { attempts: 0, on: ['timeout'] } })).toThrow(
      InvalidSettingError,
    )
    expect(() => manager.launch({ ...input, retry: { attempts: 1, on: ['no' as 'timeout'] } }, runner)).toThrow(
      /^input\.retry\.on\[0\]: got "no"/,
    )
    expect(() => manager.launch({ ...input, retry: { attempts: 2, on: [] } }, runner)).toThrow(
      'input.retry.on: got an empty array, expected an array of at least one value.',
    )
    expect(() => manager.launch({ ...input, retry: 'always' as never }, runner)).toThrow(InvalidInputError)
    expect(() => manager.launch(input, 5 as never)).toThrow(/^runner: got 5/)
    expect(manager.getAllTasks()).toEqual([])
  })
})

describe('repeated runs in a store', () => {
  it('F9: an attempt is stored before it starts, and counts together with those that died', async () => {
    const store = memoryStore()
    const { launch, runs, pass, started } = limitedTasks({ store })
    const retry = { attempts: 3, on: ['rate-limited', 'interrupted'] } as const
    await launch('a', { retry })
    await runs[0]?.fail(rateLimit())
    await tick()
    const waiting = store.copy()
    await pass(1_000)
    expect(started()).toHaveLength(2)
    const running = store.copy()

    const run = vi.fn(untilAborted)
    const open = (copy: typeof store) =>
      new AsyncTaskManager({ store: copy, findRunner: () => run, graceMs: 0, clock: createManualClock(5_000) })
    // It died while it waited for its second run.
    const second = open(waiting)
    expect(await second.recovered).toMatchObject({ queued: ['a'] })
    await tick()
    expect(run).toHaveBeenCalledTimes(1)
    expect(second.getTask('a')).toMatchObject({ status: 'running', attempt: 2 })
    await second.dispose()
    // It died in its second run: the third is the last.
    const third = open(running)
    expect(await third.recovered).toMatchObject({ retried: ['a'] })
    expect(third.getTask('a')).toMatchObject({ attempt: 3, attempts: [{ number: 1 }, { number: 2 }] })
    const last = open(store.copy())
    await last.dispose()
    await third.dispose()
  })

  it('F9: a run does not start before that is stored', async () => {
    const store = memoryStore()
    let isBroken = false
    const write = store.write.bind(store)
    store.write = async (changes) => {
      if (isBroken) throw new Error('disk full')
      await write(changes)
    }
    const { launch, runs, pass, started } = limitedTasks({ store })
    await launch('a', {}, policy())
    await runs[0]?.fail(rateLimit())
    isBroken = true
    await pass(1_000)
    expect(started()).toHaveLength(1)
    isBroken = false
    await pass(10_000)
    expect(started()).toHaveLength(2)
  })

  it('F9: the deadline of a run that has failed does not end the wait for the next one', async () => {
    const { launch, manager, runs, pass, started } = limitedTasks()
    await launch('a', { timeoutMs: 1_000 }, policy({ backoff: { initialMs: 5_000, jitter: false } }))
    await runs[0]?.fail(rateLimit())
    await pass(4_999)
    expect(manager.getTask('a')).toMatchObject({ status: 'queued', attempt: 2 })
    await pass(1)
    expect(started()).toEqual(['a', 'a'])
  })

  it('F9: each run that has timed out is asked to stop, and has its own grace', async () => {
    const { launch, manager, runs, pass } = limitedTasks()
    await launch('a', { timeoutMs: 100, graceMs: 50 }, policy({ on: ['timeout'], backoff: { initialMs: 0 } }))
    for (const run of [0, 1, 2]) {
      await pass(99)
      expect(runs[run]?.context.signal.aborted).toBe(false)
      await pass(1)
      expect(runs[run]?.context.signal.aborted).toBe(true)
      await pass(0)
    }
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', attempt: 3, errorCode: 'TASK_TIMEOUT' })
  })

  it('F9: a task that is cancelled in its back-off leaves no timer', async () => {
    const { launch, manager, runs, clock } = limitedTasks()
    await launch('a', {}, policy())
    await runs[0]?.fail(rateLimit())
    expect(manager.actor.getSnapshot()).toMatchObject({ nextRetryAt: expect.any(Number) as number, nextRetryOf: 'a' })
    manager.cancelTask('a')
    expect(manager.actor.getSnapshot()).toMatchObject({ nextRetryAt: undefined, nextRetryOf: undefined })
    expect(clock.pending).toBe(0)
  })

  it('F8, F9: the longest wait for a slot counts from the end of a back-off', async () => {
    const { launch, manager, runs, pass } = limitedTasks({ queue: { maxWaitMs: 1_000 } })
    await launch('a', {}, policy({ backoff: { initialMs: 5_000, jitter: false } }))
    await runs[0]?.fail(rateLimit())
    await launch('b')
    await pass(5_999)
    expect(manager.getTask('a')?.status).toBe('queued')
    await pass(1)
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', errorCode: 'QUEUE_TIMEOUT' })
  })
})
