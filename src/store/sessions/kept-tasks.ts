/** What a process takes over of what an earlier one of its session has left. */
import { hasEnded } from '../../../machines/task-status.js'
import type { PastTask, TaskHistory } from '../history/task-history.js'
import type { StoreContents, StoredTask } from '../store.js'

/** What a store holds without the tasks that are not kept, and these. */
export function withoutOld(
  all: StoreContents,
  isKept: (task: StoredTask) => boolean,
): { readonly kept: StoreContents; readonly dropped: readonly StoredTask[] } {
  const carried = new Set(all.deliveries.flatMap(({ taskIds }) => taskIds))
  const isLeft = (task: StoredTask): boolean => !hasEnded(task.status) || carried.has(task.id) || isKept(task)
  return {
    kept: { ...all, tasks: all.tasks.filter(isLeft) },
    dropped: all.tasks.filter((task) => !isLeft(task)),
  }
}

/** Adds tasks that are not taken over to the history. What cannot be added is not in it: nobody is owed anything of it. */
export function addToHistory(history: TaskHistory | undefined, tasks: readonly StoredTask[]): void {
  if (tasks.length === 0) return
  history?.add(tasks.map(toPastRow)).catch(() => undefined)
}

/** A stored task that has ended, as the history has it. */
export function toPastRow({ id, owner, status, completedAt = 0, record }: StoredTask): PastTask {
  const { subagentName } = record
  const name = typeof subagentName === 'string' ? subagentName : ''
  return { id, kind: 'task', owner, name, status, completedAt, record }
}
