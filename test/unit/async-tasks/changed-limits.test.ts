/** A deadline that is changed while a run works, and runs that are asked to conclude: F10. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager, type RunContext, type RunFunction } from '../../../src/index.js'
import { runCommandLine } from '../../../src/index.js'
import { createTaskCommands } from '../../../src/parts.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { limitedTasks, tick, untilAborted } from '../../support/limited-tasks.js'

const timedOut = (limit: string) => ({
  status: 'failed',
  errorCode: 'TASK_TIMEOUT',
  error: `Task timed out: it did not end within its limit of ${limit}.`,
})

describe('a changed deadline', () => {
  it('F10: is later: the run goes on after the first one, and the error has the new limit', async () => {
    const { launch, manager, runs, pass, clock } = limitedTasks()
    await launch('a', { timeoutMs: 60_000 })
    await pass(50_000)
    expect(manager.changeDeadline('a', 30_000)).toEqual({ changed: true })
    expect(manager.getTask('a')).toMatchObject({ status: 'running', timeoutMs: 80_000 })
    await pass(29_999)
    expect(runs[0]?.context.signal.aborted).toBe(false)
    await pass(1)
    expect(runs[0]?.context.signal.reason).toMatchObject({ name: 'TimeoutError' })
    expect(manager.getTask('a')).toMatchObject(timedOut('80 s'))
    expect(clock.pending).toBe(0)
  })

  it('F10: is earlier, or given to a task that had none, or taken away', async () => {
    const { launch, manager, pass } = limitedTasks({ maxAsyncTasks: 3 })
    await launch('earlier', { timeoutMs: 60_000 })
    await launch('given')
    await launch('taken', { timeoutMs: 60_000 })
    manager.changeDeadline('earlier', 1_000)
    manager.changeDeadline('given', 2_000)
    expect(manager.changeDeadline('taken', null)).toEqual({ changed: true })
    expect(manager.getTask('taken')).not.toHaveProperty('timeoutMs')
    await pass(1_000)
    await pass(1_000)
    expect(manager.getTask('earlier')).toMatchObject(timedOut('1 s'))
    expect(manager.getTask('given')).toMatchObject(timedOut('2 s'))
    await pass(1e9)
    expect(manager.getTask('taken')?.status).toBe('running')
  })

  it('F10: counts the time in which a durable run works, and not its waits', async () => {
    const contexts: RunContext[] = []
    const run: RunFunction = async (_input, context) => {
      contexts.push(context)
      await context.sleep(100_000)
      return untilAborted({} as never, context)
    }
    const { launch, manager, pass } = limitedTasks({ store: memoryStore() })
    await launch('a', { timeoutMs: 10_000 }, { run, durable: true })
    await tick()
    await pass(50_000)
    expect(manager.changeDeadline('a', 20_000)).toEqual({ changed: true })
    await pass(50_000)
    await tick()
    await pass(19_000)
    expect(contexts[0]?.signal.aborted).toBe(false)
    await pass(1_000)
    expect(contexts[0]?.signal.aborted).toBe(true)
  })

  it('F10: is stored, and counts in the next process', async () => {
    const store = memoryStore()
    const first = limitedTasks({ store })
    await first.launch('a', { timeoutMs: 5_000 })
    first.manager.changeDeadline('a', 100_000)
    await first.manager.stored()
    const next = new AsyncTaskManager({
      store: store.copy(),
      clock: createManualClock(61_000),
      findRunner: () => ({ run: untilAborted, retry: { attempts: 2, on: ['interrupted'] } }),
    })
    await next.recovered
    expect(next.getTask('a')).toMatchObject({ timeoutMs: 100_000 })
    await next.dispose()
  })

  it('F10: is refused, with the reason, where it cannot count', async () => {
    const { launch, manager, runs, pass } = limitedTasks({ whenFull: 'queue', store: memoryStore() })
    await launch('a', { timeoutMs: 1_000 }, { run: () => new Promise(() => undefined) })
    await launch('b')
    const reasonOf = (id: string) => manager.changeDeadline(id, 1)
    expect(reasonOf('none')).toEqual({ changed: false, reason: 'There is no task "none".' })
    expect(reasonOf('b')).toEqual({ changed: false, reason: 'Task "b" has not started.' })
    await pass(1_000)
    expect(reasonOf('a')).toEqual({ changed: false, reason: 'Task "a" is being stopped.' })
    await pass(100)
    expect(reasonOf('a')).toEqual({ changed: false, reason: 'Task "a" has ended: it is failed.' })
    await runs[0]?.end()
    await launch('c', { timeoutMs: 1_000 }, { survivesHost: true })
    expect(reasonOf('c')).toMatchObject({
      changed: false,
      reason: expect.stringContaining('keeps the deadline') as string,
    })
    expect(() => manager.changeDeadline('c', -1)).toThrow('inMs: got -1, expected at least 0')
  })
})

describe('a task that is asked to conclude', () => {
  it('F10: may complete, and its run has the reason', async () => {
    const { launch, manager, runs, pass } = limitedTasks()
    await launch('a')
    void runs[0]?.context.ask('Which?').catch(() => undefined)
    expect(manager.concludeTask('a', { reason: 'the meeting begins' })).toEqual({ changed: true })
    const message = 'Task was asked to conclude. Reason: the meeting begins'
    expect(runs[0]?.context.wrapUp.reason).toMatchObject({ message, code: 'TASK_CONCLUDED' })
    expect(manager.getTask('a')).not.toHaveProperty('questions')
    expect(manager.concludeTask('a')).toEqual({ changed: false, reason: 'Task "a" is concluding already.' })
    expect(manager.sendToTask('a', 'x')).toMatchObject({ sent: false })
    await pass(20_000)
    await runs[0]?.end('so far')
    expect(manager.getTask('a')).toMatchObject({ status: 'completed', output: { final_message: 'so far' } })
  })

  it('F10: is stopped after the time to wrap up, fails with TASK_CONCLUDED, and is not run again', async () => {
    const { launch, manager, runs, pass, clock } = limitedTasks()
    const retry = { attempts: 3, on: ['timeout' as const, 'rate-limited' as const] }
    await launch('a', { retry, budget: { wrapUpMs: 500 } })
    manager.concludeTask('a')
    await pass(499)
    expect(runs[0]?.context.signal.aborted).toBe(false)
    await pass(1)
    const error = 'Task was asked to conclude.'
    expect(manager.getTask('a')).toMatchObject({ status: 'failed', errorCode: 'TASK_CONCLUDED', error })
    expect([runs.length, clock.pending]).toEqual([1, 0])
  })

  it('F10: completes with what it has offered', async () => {
    const { launch, manager, runs, pass } = limitedTasks()
    await launch('a', { budget: { wrapUpMs: 10 } })
    runs[0]?.context.offer({ final_message: 'half' })
    manager.concludeTask('a')
    await pass(10)
    const output = { final_message: 'half', terminate_reason: 'TASK_CONCLUDED' }
    expect(manager.getTask('a')).toMatchObject({ status: 'completed', output })
  })

  it('F10: receives a message, if it takes messages', async () => {
    const { launch, manager, runs } = limitedTasks()
    await launch('a', {}, { takesMessages: true })
    manager.concludeTask('a', { reason: 'late' })
    const next = await runs[0]?.context.messages[Symbol.asyncIterator]().next()
    expect(next?.value).toBe('Conclude now: stop working, and return what you have. Reason: late')
  })

  it('F10: is not asked because of an option that does not exist', async () => {
    const { launch, manager } = limitedTasks()
    await launch('a')
    expect(() => manager.concludeTask('a', { why: 1 } as never)).toThrow('options.why')
    expect(manager.concludeTask('a')).toEqual({ changed: true })
  })
})

describe('/deadline and /conclude', () => {
  it('F10: change the deadline, and ask to conclude, with the words of a person', async () => {
    const { launch, manager } = limitedTasks({ maxAsyncTasks: 2 })
    const commands = createTaskCommands({ getAsyncTaskManager: () => manager })
    const type = (line: string) => runCommandLine(commands, line)
    await launch('task-a', { timeoutMs: 5_000 })
    expect(type('/deadline task-a 90')).toEqual({ type: 'info', text: 'Task task-a must end within 90 s.' })
    expect(manager.getTask('task-a')).toMatchObject({ timeoutMs: 90_000 })
    expect(type('/deadline task-a none')).toEqual({ type: 'info', text: 'Task task-a has no deadline.' })
    expect(type('/deadline task-a soon')).toEqual({ type: 'error', text: 'Usage: /deadline <task_id> <seconds|none>' })
    expect(type('/deadline other 1')).toEqual({ type: 'error', text: 'Task not found: other' })
    expect(type('/conclude')).toEqual({ type: 'error', text: 'Usage: /conclude <task_id> [reason]' })
    expect(type('/conclude task the demo')).toEqual({ type: 'info', text: 'Asked task task-a to conclude.' })
    expect(type('/conclude task-a')).toEqual({ type: 'error', text: 'Task "task-a" is concluding already.' })
  })
})
