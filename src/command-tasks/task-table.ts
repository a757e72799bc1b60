/** The tasks of a manager: those that have not ended, and those that ended last (S9). They are found by their ids, and by the keys of their submissions. */
import type { Clock } from '../clock.js'
import { Retention } from '../kernel/retention.js'
import type { Task, TaskStatus } from '../protocol/command-tasks.js'
import type { CommandTask } from './command-task.js'
import type { TaskBudget, TaskByteLimits } from './task-bytes.js'

export interface TaskTableOptions {
  readonly limits: TaskByteLimits
  readonly maxRetained: number
  readonly retentionMs: number
  readonly clock: Clock
  /** Called with each task that is not kept any longer. It must not throw. */
  readonly onForgotten: (task: CommandTask) => void
}

/** How often tasks that are too old are looked for, in ms. */
const SWEEP_MS = { least: 1000, most: 3_600_000 } as const

export class TaskTable implements TaskBudget {
  readonly limits: TaskByteLimits
  readonly #tasks = new Map<string, CommandTask>()
  /** The tasks that were submitted with a key. */
  readonly #keys = new Map<string, CommandTask>()
  /** The tasks that have ended; it counts the bytes of all. */
  readonly #ended: Retention<CommandTask>

  constructor({ limits, maxRetained, retentionMs, clock, onForgotten }: TaskTableOptions) {
    this.limits = limits
    this.#ended = new Retention({
      maxCount: maxRetained,
      maxSize: limits.maxBytes,
      onDropped: (task) => {
        this.#tasks.delete(task.id)
        if (task.request !== undefined) this.#keys.delete(task.request.key)
        onForgotten(task)
      },
      sweep: {
        clock,
        everyMs: Math.max(SWEEP_MS.least, Math.min(SWEEP_MS.most, retentionMs)),
        label: { name: 'removal of old command tasks', kind: 'deadline' },
        isObsolete: (_task, ageMs) => ageMs > retentionMs,
      },
    })
  }

  get(id: string): CommandTask | undefined {
    return this.#tasks.get(id)
  }

  /** The task of an earlier submission with this key. */
  ofKey(key: string): CommandTask | undefined {
    return this.#keys.get(key)
  }

  /** All tasks, in the order of submission. */
  values(): CommandTask[] {
    return [...this.#tasks.values()]
  }

  /** Snapshots, the newest first. */
  list(instanceId: string | undefined, status: TaskStatus | 'all'): Task[] {
    return this.values()
      .reverse()
      .filter((task) => instanceId === undefined || task.instanceId === instanceId)
      .map(({ record }) => record)
      .filter((record) => status === 'all' || record.status === status)
  }

  add(task: CommandTask): void {
    this.#tasks.set(task.id, task)
    if (task.request !== undefined) this.#keys.set(task.request.key, task)
  }

  /** Makes room for bytes of a task that has not ended, by forgetting those that ended first. False, with nothing taken, when there is too little. */
  take(bytes: number): boolean {
    return this.#ended.take(bytes)
  }

  /** Takes what an earlier process or a cluster has accepted, also beyond the limit. */
  hold(bytes: number): void {
    this.#ended.hold(bytes)
  }

  giveBack(bytes: number): void {
    this.#ended.giveBack(bytes)
  }

  /** A submission could not be stored: there was no such task. */
  withdraw(task: CommandTask): void {
    this.#tasks.delete(task.id)
    if (task.request !== undefined) this.#keys.delete(task.request.key)
    this.giveBack(task.bytes)
  }

  /** A task has ended: it may be forgotten, by the next `trim`. @param ageMs how long ago */
  end(task: CommandTask, ageMs = 0): void {
    if (this.#tasks.get(task.id) !== task) return
    this.giveBack(task.bytes)
    this.#ended.add(task, task.bytes, 1, ageMs)
  }

  /** Forgets ended tasks that are too many. */
  trim(): void {
    this.#ended.trim()
  }

  /** Forgets ended tasks that are too many, too large or too old. */
  sweep(): void {
    this.#ended.sweep()
  }

  /** Forgets the tasks that ended longer ago than `maxAgeMs`. Returns how many. */
  forgetOlder(maxAgeMs: number): number {
    return this.#ended.dropWhile((_task, ageMs) => ageMs > maxAgeMs)
  }

  /** Stops looking for tasks that are too old. */
  close(): void {
    this.#ended.close()
  }
}
