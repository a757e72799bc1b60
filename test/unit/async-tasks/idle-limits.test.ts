/** Limits on how long a run reports nothing: F10. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager, type RunFunction } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'
import { InvalidInputError } from '../../../src/errors.js'

const idle = { idleMs: 60_000 }
const message = 'Task was idle: it reported nothing within its limit of 60 s.'

describe('a run that reports nothing', () => {
  it('F10: is asked to conclude after its idle limit, and may still complete', async () => {
    const { launch, manager, runs, pass } = limitedTasks()
    await launch('a', idle)
    expect(manager.getTask('a')).toMatchObject(idle)
    const { wrapUp, signal } = runs[0]?.context ?? {}
    await pass(59_999)
    expect(wrapUp?.aborted).toBe(false)
    await pass(1)
    expect(wrapUp?.reason).toMatchObject({ name: 'TimeoutError', message, code: 'TASK_IDLE' })
    expect(signal?.aborted).toBe(false)
    await runs[0]?.end('partial')
    expect(manager.getTask('a')).toMatchObject({ status: 'completed', ...idle })
  })

  it('F10: is stopped when it does not conclude, and the task fails with TASK_IDLE', async () => {
    const { launch, manager, runs, pass, clock } = limitedTasks()
    await launch('a', idle)
    await pass(60_000)
    await pass(29_999)
    expect(runs[0]?.context.signal.aborted).toBe(false)
    await pass(1)
    expect(runs[0]?.context.signal.reason).toMatchObject({ name: 'TimeoutError', code: 'TASK_IDLE' })
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', error: message, errorCode: 'TASK_IDLE' })
    expect(clock.pending).toBe(0)
  })

  it('F10: fails after its grace period when it does not stop', async () => {
    const { launch, manager, pass } = limitedTasks()
    await launch('a', { idleMs: 500, budget: { wrapUpMs: 200 } }, { run: () => new Promise(() => undefined) })
    await pass(500)
    await pass(200)
    expect(manager.getTask('a')?.status).toBe('running')
    await pass(100)
    expect(manager.getTask('a')).toMatchObject({
      status: 'failed',
      error: 'Task was idle: it reported nothing within its limit of 500 ms.',
    })
  })
})

describe('the time in which a run is idle', () => {
  it('F10: begins again with its output and its progress', async () => {
    const { launch, runs, pass } = limitedTasks()
    await launch('a', idle)
    const context = runs[0]?.context
    await pass(50_000)
    context?.append('line\n')
    await pass(50_000)
    context?.report(1)
    await pass(59_999)
    expect(context?.wrapUp.aborted).toBe(false)
    await pass(1)
    expect(context?.wrapUp.aborted).toBe(true)
  })

  it('F10: does not count while the run waits for an answer or for a task that it has launched', async () => {
    const { launch, manager, runs, runner, pass } = limitedTasks({ maxChildTasks: 1 })
    await launch('a', idle)
    const { ask, launch: launchChild, wrapUp } = runs[0]?.context ?? {}
    void ask?.('Which?').catch(() => undefined)
    await pass(200_000)
    manager.answerTask('a', 'question-1', 'this')
    await pass(59_999)
    launchChild?.({ id: 'child', subagentName: 'agent', goalPrompt: 'g' }, runner)
    await pass(200_000)
    await runs[1]?.end()
    await pass(59_999)
    expect(wrapUp?.aborted).toBe(false)
    await pass(1)
    expect(wrapUp?.aborted).toBe(true)
  })

  it('F10: does not count while a durable run only waits', async () => {
    const clock = createManualClock(1_000)
    const manager = new AsyncTaskManager({ store: memoryStore(), clock })
    const run: RunFunction = async (_input, { sleep, signal }) => {
      await sleep(200_000)
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return undefined
    }
    manager.launch({ id: 'a', subagentName: 's', goalPrompt: 'g', ...idle }, { run, durable: true })
    await manager.stored()
    for (let passed = 0; passed < 259_000; passed += 1_000) {
      clock.advance(1_000)
      await tick()
    }
    const stateOf = () => manager.reads.history.get('a')?.ref?.getSnapshot().value
    expect(stateOf()).toEqual({ active: 'running' })
    clock.advance(1_000)
    expect(stateOf()).toEqual({ active: 'wrapping' })
    await manager.dispose()
    expect(clock.pending).toBe(0)
  })

  it('F10: belongs to a run: a queued task is not idle, and the next run has the whole limit', async () => {
    const { launch, runs, pass } = limitedTasks({ whenFull: 'queue' })
    await launch('first')
    const retry = { attempts: 2, on: ['timeout'], backoff: { initialMs: 1_000, jitter: false } } as const
    await launch('a', { ...idle, retry, timeoutMs: 90_000 })
    await pass(100_000)
    await runs[0]?.end()
    await pass(50_000)
    runs[1]?.context.append('line')
    await pass(40_000)
    await pass(1_000)
    expect(runs[2]?.context.attempt).toBe(2)
    await pass(59_999)
    expect(runs[2]?.context.wrapUp.aborted).toBe(false)
    await pass(1)
    expect(runs[2]?.context.wrapUp.aborted).toBe(true)
  })
})

describe('an idle limit', () => {
  it('F10: of a subagent counts unless the launch has one, and a continuation has it too', async () => {
    const { launch, manager, runs, runner } = limitedTasks({
      maxAsyncTasks: -1,
      findRunner: () => ({ run: untilAborted, idleMs: 5 }),
    })
    await launch('a', {}, { run: runner, idleMs: 2_000 })
    await launch('b', idle, { run: runner, idleMs: 2_000 })
    await launch('c')
    expect(['a', 'b', 'c'].map((id) => manager.getTask(id)?.idleMs)).toEqual([2_000, 60_000, undefined])
    await runs[1]?.end()
    expect(manager.continueTask('b', 'go on').idleMs).toBe(60_000)
  })

  it.each([0, -1, NaN, '5'])('F10: is refused: %j', async (idleMs) => {
    const { launch, manager } = limitedTasks()
    await expect(launch('a', { idleMs: idleMs as number })).rejects.toThrow(InvalidInputError)
    await expect(launch('a', {}, { idleMs: idleMs as number })).rejects.toThrow('runner.idleMs')
    expect(manager.getTask('a')).toBeUndefined()
  })

  it('F10: has no timer when the tasks have ended', async () => {
    const { launch, manager, runs, pass, clock } = limitedTasks({ maxAsyncTasks: 2 })
    await launch('a', idle)
    await launch('b', { idleMs: 90_000 })
    manager.cancelTask('a')
    await runs[1]?.end()
    await pass(100_000)
    expect(clock.pending).toBe(0)
  })
})
