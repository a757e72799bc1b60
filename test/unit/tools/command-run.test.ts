// A command task as a run, on a manager of command tasks that the test drives: what it reports, and what it leaves behind.
import { Subject } from 'rxjs'
import { expect, it, vi } from 'vitest'
import type { TaskManager } from '../../../src/command-tasks/task-manager.js'
import type { RunContext, RunInput } from '../../../src/engine/runner.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../../../src/protocol/command-tasks.js'
import { submitCommandTask } from '../../../src/tools/command-run.js'

function createSubject(accepted?: Promise<boolean>) {
  const [progress$, complete$] = [new Subject<TaskProgressMessage>(), new Subject<TaskCompleteMessage>()]
  const cancelTask = vi.fn()
  const task = { id: 't1', name: 'a task', instanceId: 'calc', commands: [{ tool_name: 'act', intention: '' }] }
  const run = submitCommandTask(
    {
      submitTask: () => ({ taskId: 't1', queuePosition: 1 }),
      getTask: () => task,
      accepted: () => accepted,
      cancelTask,
      progress$,
      complete$,
    } as unknown as TaskManager,
    { type: 'task_submit', task_name: 'a task', commands: [] },
  )
  if ('error' in run) throw new Error(run.error)
  const reports: unknown[] = []
  const context = { append: vi.fn(), report: ({ progress }: { progress: number }) => reports.push(progress) }
  const start = () => run.runner.run({} as RunInput, context as unknown as RunContext)
  const report = (more: Partial<TaskProgressMessage>, taskId = 't1'): void =>
    progress$.next({
      taskId,
      commandIndex: 0,
      totalCommands: 3,
      status: 'running',
      tool_name: 'act',
      intention: '',
      ...more,
    } as never)
  const complete = (status: string, taskId = 't1'): void =>
    complete$.next({ type: 'task_complete', taskId, status, instanceId: 'calc', results: [], summary: {} } as never)
  const observed = () => [progress$.observed, complete$.observed]
  return { run, cancelTask, reports, start, report, complete, observed }
}

it('the progress of a command is at most the whole of it, at least none, and that of a run never decreases', async () => {
  const { start, report, reports, complete } = createSubject()
  const ended = start()
  report({ progress: -1, total: 4 })
  report({ progress: 5, total: 4 })
  report({ progress: 3, total: 0 })
  report({ progress: 3 })
  report({ commandIndex: 1, status: 'success' })
  report({ commandIndex: 1 })
  expect(reports).toEqual([0, 1, 1, 1, 2, 2])
  complete('completed')
  await ended
})

it('what is reported before the run begins is reported once, in order, and nothing of other tasks is', async () => {
  const { start, report, reports, complete } = createSubject()
  report({ progress: 1, total: 4 })
  report({ progress: 3, total: 4 }, 'other')
  report({ progress: 2, total: 4 })
  expect(reports).toEqual([])
  const ended = start()
  report({ commandIndex: 0, status: 'success' })
  expect(reports).toEqual([0.25, 0.5, 1])
  complete('completed')
  await ended
})

it('the end of its command task leaves no subscription, and an abort after it cancels nothing', async () => {
  const { run, start, complete, observed, cancelTask } = createSubject()
  const ended = start()
  complete('completed', 'other')
  expect(observed()).toEqual([true, true])
  complete('completed')
  expect(observed()).toEqual([false, false])
  expect(await ended).toMatchObject({ command_task_id: 't1', instance_id: 'calc' })
  run.abortController.abort()
  expect(cancelTask).not.toHaveBeenCalled()
})

it('an abort cancels its command task once, whose end is no result then', async () => {
  const { run, start, complete, cancelTask } = createSubject()
  const ended = start()
  run.abortController.abort()
  expect(cancelTask.mock.calls).toEqual([['t1']])
  complete('completed')
  await expect(ended).rejects.toMatchObject({ name: 'AbortError' })
  expect(cancelTask).toHaveBeenCalledOnce()
})

it('a command task that could not be stored leaves no subscription', async () => {
  const refused = createSubject(Promise.resolve(false))
  expect(await refused.run.accepted).toBe(false)
  expect(refused.observed()).toEqual([false, false])
  const stored = createSubject(Promise.resolve(true))
  expect(await stored.run.accepted).toBe(true)
  expect(stored.observed()).toEqual([true, true])
  stored.complete('completed')
})
