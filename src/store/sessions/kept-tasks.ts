/** Decides which tasks of an earlier process the next process of the session takes over. */
import { hasEnded } from '../../../machines/task-status.js'
import type { PastTask, TaskHistory } from '../history/task-history.js'
import type { StoreContents, StoredTask } from '../store.js'

/**
 * Splits the content of a store into the rows to keep and the tasks to drop. A task is dropped if it has ended, no stored message carries its result,
 * and `isKept` returns false.
 */
export function withoutOld(
  all: StoreContents,
  isKept: (task: StoredTask) => boolean,
): { readonly kept: StoreContents; readonly dropped: readonly StoredTask[] } {
  const carried = new Set(all.deliveries.flatMap(({ taskIds }) => taskIds))
  const isTakenOver = (task: StoredTask): boolean => !hasEnded(task.status) || carried.has(task.id) || isKept(task)
  return {
    kept: { ...all, tasks: all.tasks.filter(isTakenOver) },
    dropped: all.tasks.filter((task) => !isTakenOver(task)),
  }
}

/** Adds the dropped tasks to the history. A failure is ignored, because their results have been delivered. */
export function addToHistory(history: TaskHistory | undefined, tasks: readonly StoredTask[]): void {
  if (tasks.length === 0) return
  history?.add(tasks.map(toPastRow)).catch(() => undefined)
}

export function toPastRow({ id, owner, status, completedAt = 0, record }: StoredTask): PastTask {
  const { subagentName } = record
  const name = typeof subagentName === 'string' ? subagentName : ''
  return { id, kind: 'task', owner, name, status, completedAt, record }
}
