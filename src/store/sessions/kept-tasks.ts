/** What a process takes over of what an earlier one of its session has left. */
import { hasEnded } from '../../../machines/task-status.js'
import type { StoreChange, StoreContents, StoredTask } from '../store.js'

/** What a store holds without the tasks that are not kept, and the changes that remove these. */
export function withoutOld(
  all: StoreContents,
  isKept: (task: StoredTask) => boolean,
): { readonly kept: StoreContents; readonly dropped: readonly StoreChange[] } {
  const carried = new Set(all.deliveries.flatMap(({ taskIds }) => taskIds))
  const isLeft = (task: StoredTask): boolean => !hasEnded(task.status) || carried.has(task.id) || isKept(task)
  return {
    kept: { ...all, tasks: all.tasks.filter(isLeft) },
    dropped: all.tasks.flatMap((task) => (isLeft(task) ? [] : [{ table: 'tasks', remove: task.id }])),
  }
}
