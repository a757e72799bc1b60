/** Ends the tasks of a server before the server closes. */
import { clearLongTimeout, setLongTimeout, withTimeLimit, type Clock } from '../../system/clock.js'
import type { TaskManager } from '../../command-tasks/task-manager.js'

/**
 * With a store, queued tasks stay in it for the next process; without one, they are cancelled at once. Waits up to `drainMs` for running tasks. Those
 * that still run then are cancelled, or with a store left to `TaskManager.dispose`, which interrupts them. Each task that has ended has emitted `complete`.
 * @param drainMs how long running tasks may take, in ms; Infinity for no limit
 */
export async function drainTasks(tasks: TaskManager, clock: Clock, drainMs: number): Promise<void> {
  const isKept = tasks.holdQueue()
  if (!isKept) cancelAll(tasks, 'queued')
  const isIdle = (): boolean => !tasks.hasRunning
  if (!isIdle() && drainMs > 0) await untilIdle(tasks, isIdle, clock, drainMs)
  if (!isKept) cancelAll(tasks, 'running')
}

function cancelAll(tasks: TaskManager, status: 'queued' | 'running'): void {
  for (const { id } of tasks.listTasks(undefined, status).reverse()) tasks.cancelTask(id, 'the server is shutting down')
}

function untilIdle(tasks: TaskManager, isIdle: () => boolean, clock: Clock, drainMs: number): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearLongTimeout(clock, timer)
      tasks.off('complete', finishIfIdle)
      resolve()
    }
    const finishIfIdle = (): void => {
      if (isIdle()) finish()
    }
    const timer = setLongTimeout(clock, finish, drainMs)
    tasks.on('complete', finishIfIdle)
  })
}

/** Whether a promise settles within `ms` milliseconds. */
export function settledWithin(promise: Promise<unknown>, clock: Clock, ms: number): Promise<boolean> {
  const settled = (): boolean => true
  return withTimeLimit(promise.then(settled, settled), { clock, ms, late: () => false })
}
