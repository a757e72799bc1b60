/** What the features of a host keep for each task. */
import type { TaskEntry } from './task-entry.js'

/** A value that one feature keeps for each task. It goes with the entry of the task. */
export class PerTask<T> {
  /** The value; undefined when the task has none. */
  get(entry: TaskEntry): T | undefined {
    return entry.kept?.get(this) as T | undefined
  }

  set(entry: TaskEntry, value: T): void {
    entry.kept ??= new Map()
    entry.kept.set(this, value)
  }

  /** The value, which is made when the task has none. */
  ensure(entry: TaskEntry, make: () => T): T {
    const present = this.get(entry)
    if (present !== undefined) return present
    const made = make()
    this.set(entry, made)
    return made
  }

  /** Removes the value, and returns it. */
  take(entry: TaskEntry): T | undefined {
    const value = this.get(entry)
    entry.kept?.delete(this)
    return value
  }
}
