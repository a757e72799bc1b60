/** Waits for tasks, by task: a change of one task costs nothing for those who wait for others (A10). */
import type { TaskEntry } from '../../machines/task-entry.js'
import type { Feature } from './feature.js'

/** Called after the status of a task, its open questions or its place have changed, or when everything is disposed. It must not throw. */
export type TaskWatcher = () => void

export class TaskWatchers implements Feature {
  readonly #byTask = new Map<TaskEntry, Set<TaskWatcher>>()
  #isClosed = false

  /** Whether everything is disposed. */
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
    this.#isClosed = true
    for (const watchers of this.#byTask.values()) for (const watcher of watchers) watcher()
  }
}

/** The watchers of a registry. */
export const taskWatchers = (): TaskWatchers => new TaskWatchers()
