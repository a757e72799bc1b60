/** Watches single tasks. A change of a task costs nothing for the watchers of other tasks (promise A10). */
import type { TaskEntry } from '../../machines/task-entry.js'
import type { Feature } from './feature.js'

/** Called when the status or questions of the task have changed, when the task has moved to the background, and on `close`. Must not throw. */
export type TaskWatcher = () => void

export class TaskWatchers implements Feature {
  readonly #byTask = new Map<TaskEntry, Set<TaskWatcher>>()
  #isClosed = false

  /** Whether no further change is published, because the manager was disposed or its store is lost. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  add(entry: TaskEntry, watcher: TaskWatcher): void {
    const watchers = this.#byTask.get(entry)
    if (watchers === undefined) this.#byTask.set(entry, new Set([watcher]))
    else watchers.add(watcher)
  }

  remove(entry: TaskEntry, watcher: TaskWatcher): void {
    const watchers = this.#byTask.get(entry)
    if (watchers?.delete(watcher) === true && watchers.size === 0) this.#byTask.delete(entry)
  }

  changed(entry: TaskEntry): void {
    for (const watcher of this.#byTask.get(entry) ?? []) watcher()
  }

  ended(entry: TaskEntry): void {
    this.changed(entry)
  }

  disposed(): void {
    this.close()
  }

  close(): void {
    this.#isClosed = true
    for (const watchers of this.#byTask.values()) for (const watcher of watchers) watcher()
  }
}

export const taskWatchers = (): TaskWatchers => new TaskWatchers()
