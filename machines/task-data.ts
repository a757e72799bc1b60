/** Values that features keep for each task. */
import type { TaskEntry } from './task-entry.js'

/** A value that a feature keeps for each task. It is removed when the record of the task is pruned. */
export class TaskData<T> {
  /** Returns undefined if the task has no value. */
  get(entry: TaskEntry): T | undefined {
    return entry.data?.get(this) as T | undefined
  }

  set(entry: TaskEntry, value: T): void {
    entry.data ??= new Map()
    entry.data.set(this, value)
  }

  /** Returns the value of a task. Creates it if the task has none. */
  ensure(entry: TaskEntry, make: () => T): T {
    const present = this.get(entry)
    if (present !== undefined) return present
    const made = make()
    this.set(entry, made)
    return made
  }

  take(entry: TaskEntry): T | undefined {
    const value = this.get(entry)
    entry.data?.delete(this)
    if (entry.data?.size === 0) entry.data = undefined
    return value
  }
}
