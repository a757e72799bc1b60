// The progress of tasks of 2025-11-25: what is left of it when a task has ended, or its client is gone.
import { Subject } from 'rxjs'
import { expect, it, vi } from 'vitest'
import { createTaskProgress } from '../../../src/mcp/task-progress.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

function createSubject() {
  const clock = createManualClock()
  const progress$ = new Subject<{ taskId: string; progress: { progress: number } }>()
  const notification = vi.fn((_sent: { params: { progress: number; progressToken: string; _meta: object } }) =>
    Promise.resolve(),
  )
  const followed: { taskId: string; owner: string; signal: AbortSignal; onEnd: () => void }[] = []
  const app = {
    backend: { clock, manager: { progress$ } },
    tasks: {
      whenEnded: (taskId: string, owner: string, signal: AbortSignal, onEnd: () => void) =>
        void followed.push({ taskId, owner, signal, onEnd }),
    },
  }
  const taskProgress = createTaskProgress({ notification } as never, app as never, 'alice')
  const report = (taskId: string, progress: number): void => progress$.next({ taskId, progress: { progress } })
  return { clock, progress$, notification, followed, taskProgress, report }
}

it('the progress of each task is sent with its token, until it has ended', () => {
  const { clock, progress$, notification, followed, taskProgress, report } = createSubject()
  taskProgress.follow('t1', 'token 1')
  taskProgress.follow('t2', undefined)
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
  expect([clock.pending, progress$.observed, followed[0]?.signal.aborted]).toEqual([0, false, true])
  clock.advance(60_000)
  expect(notification).toHaveBeenCalledOnce()
})

it('a client that is gone leaves no timer and no subscription of any of its tasks', () => {
  const { clock, progress$, notification, followed, taskProgress } = createSubject()
  for (const taskId of ['t1', 't2', 't3']) taskProgress.follow(taskId, taskId)
  expect(clock.pending).toBe(3)
  taskProgress.close()
  expect([clock.pending, progress$.observed]).toEqual([0, false])
  expect(followed.map(({ signal }) => signal.aborted)).toEqual([true, true, true])
  clock.advance(60_000)
  expect(notification).not.toHaveBeenCalled()
})
