// The progress of tasks of 2025-11-25: what is left of it when a task has ended, or its client is gone.
import { Subject } from 'rxjs'
import { expect, it, vi } from 'vitest'
import { reportProgress } from '../../../src/mcp/progress.js'
import { createTaskProgress } from '../../../src/mcp/task-progress.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

function createSubject() {
  const clock = createManualClock()
  const progress$ = new Subject<{ taskId: string; progress: { progress: number } }>()
  const notification = vi.fn((_sent: { params: { progress: number; progressToken: string; _meta: object } }) =>
    Promise.resolve(),
  )
  const followed: { taskId: string; owner: string; signal: AbortSignal; onEnd: () => void }[] = []
  const output$ = new Subject<{ text: string; cursor: number }>()
  const backend = { clock, manager: { progress$, output$: () => output$ } }
  const app = {
    backend,
    tasks: {
      whenEnded: (taskId: string, owner: string, signal: AbortSignal, onEnd: () => void) =>
        void followed.push({ taskId, owner, signal, onEnd }),
    },
  }
  const taskProgress = createTaskProgress({ notification } as never, app as never, 'alice')
  const report = (taskId: string, progress: number): void => progress$.next({ taskId, progress: { progress } })
  const beforeAnswer = vi.fn()
  /** @param answeredAfterMs how long after the call its answer is sent */
  const follow = (taskId: string, token: string | undefined, answeredAfterMs = 0): void => {
    const ofCall = reportProgress(token, backend as never, beforeAnswer)
    clock.advance(answeredAfterMs)
    taskProgress.follow(taskId, ofCall)
  }
  return { clock, progress$, output$, notification, followed, taskProgress, report, follow, beforeAnswer }
}

it('the progress of each task is sent with its token, until it has ended', () => {
  const { clock, progress$, output$, notification, followed, report, follow } = createSubject()
  follow('t1', 'token 1')
  follow('t2', undefined)
  expect(followed).toMatchObject([{ taskId: 't1', owner: 'alice' }])
  report('t1', 3)
  report('t2', 5)
  expect(notification.mock.calls.map(([{ params }]) => params)).toEqual([
    {
      progressToken: 'token 1',
      progress: 3,
      _meta: { 'io.modelcontextprotocol/related-task': { taskId: 't1' } },
    },
  ])
  followed[0]?.onEnd()
  expect([clock.pending, progress$.observed, output$.observed, followed[0]?.signal.aborted]).toEqual([
    0,
    false,
    false,
    true,
  ])
  clock.advance(60_000)
  expect(notification).toHaveBeenCalledOnce()
})

it('a client that is gone leaves no timer and no subscription of any of its tasks', () => {
  const { clock, progress$, output$, notification, followed, taskProgress, follow } = createSubject()
  for (const taskId of ['t1', 't2', 't3']) follow(taskId, taskId)
  expect(clock.pending).toBe(3)
  taskProgress.close()
  expect([clock.pending, progress$.observed, output$.observed]).toEqual([0, false, false])
  expect(followed.map(({ signal }) => signal.aborted)).toEqual([true, true, true])
  clock.advance(60_000)
  expect(notification).not.toHaveBeenCalled()
})

it('F12: the report of the call goes on after its answer, with increasing values and the output of the task', () => {
  const { clock, output$, notification, follow, beforeAnswer, taskProgress } = createSubject()
  follow('t1', 'token', 10_000)
  expect(beforeAnswer.mock.calls).toEqual([[{ progressToken: 'token', progress: 10, message: 'Waiting for 10 s.' }]])
  output$.next({ text: 'one\ntwo\n', cursor: 8 })
  clock.advance(1000)
  clock.advance(10_000)
  const related = { _meta: { 'io.modelcontextprotocol/related-task': { taskId: 't1' } } }
  expect(notification.mock.calls.map(([{ params }]) => params)).toEqual([
    { progressToken: 'token', progress: 11, message: 'two', ...related },
    { progressToken: 'token', progress: 21, message: 'Waiting for 21 s.', ...related },
  ])
  taskProgress.close()
})
