/** The tasks that the page knows. */
import type { PageTask } from '../../wire.js'

export interface TaskList {
  get(key: string): PageTask | undefined
  /** Finds a task by its key, or by its id if only one task has it. */
  find(name: string): PageTask | undefined
  /** Returns the tasks, newest first. The array stays the same until a task changes. */
  newestFirst(): readonly PageTask[]
  put(tasks: readonly PageTask[]): void
  remove(keys: readonly string[]): void
}

/** @param tasks the initial tasks */
export function createTaskList(tasks: Iterable<PageTask> = []): TaskList {
  const byKey = new Map<string, PageTask>()
  let sorted: readonly PageTask[] | undefined
  const put = (changed: Iterable<PageTask>): void => {
    for (const task of changed) {
      // After a reconnection, an older change may arrive again. It must not replace a later change.
      if ((byKey.get(task.key)?.seq ?? -1) <= task.seq) byKey.set(task.key, task)
    }
    sorted = undefined
  }
  put(tasks)
  const newestFirst = (): readonly PageTask[] => (sorted ??= [...byKey.values()].sort(byNewest))
  return {
    get: (key) => byKey.get(key),
    find: (name) => {
      const named = byKey.get(name)
      if (named) return named
      const [only, other] = newestFirst().filter(({ id }) => id === name)
      return other ? undefined : only
    },
    newestFirst,
    put,
    remove: (keys) => {
      for (const key of keys) byKey.delete(key)
      sorted = undefined
    },
  }
}

function byNewest(a: PageTask, b: PageTask): number {
  return b.createdAt - a.createdAt || (a.key < b.key ? 1 : -1)
}
