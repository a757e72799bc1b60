/** The tasks of a manager: the unfinished ones and the last ended ones (promise S9). They can be found by id and by idempotency key. */
import type { Clock } from '../system/clock.js'
import { Retention } from '../store/history/retention.js'
import type { Task, TaskStatus } from '../protocol/command-tasks.js'
import type { CommandTask } from './command-task.js'
import type { TaskBudget, TaskByteLimits } from './task-bytes.js'

export interface TaskTableOptions {
  readonly limits: TaskByteLimits
  readonly maxRetained: number
  readonly retentionMs: number
  readonly clock: Clock
  /** Called with each task that is dropped. Must not throw. */
  readonly onForgotten: (task: CommandTask) => void
}

/** The minimum and maximum interval at which old tasks are dropped, in ms. Between them, the interval is `retentionMs`. */
const SWEEP_MS = { least: 1000, most: 3_600_000 } as const

export class TaskTable implements TaskBudget {
  readonly limits: TaskByteLimits
  readonly #tasks = new Map<string, CommandTask>()
  /** The tasks that were submitted with an idempotency key, by this key. */
  readonly #keys = new Map<string, CommandTask>()
  /** The ended tasks. This object also counts the bytes of the unfinished ones. */
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

  ofKey(key: string): CommandTask | undefined {
    return this.#keys.get(key)
  }

  /** All tasks, in the order of submission. */
  values(): CommandTask[] {
    return [...this.#tasks.values()]
  }

  /** Returns snapshots of the tasks, newest first. */
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

  /**
   * Reserves bytes for an unfinished task, and drops the tasks that ended first if that is necessary. Returns false and changes nothing if there is
   * too little room.
   */
  take(bytes: number): boolean {
    return this.#ended.take(bytes)
  }

  /** Counts bytes that an earlier process or a cluster has accepted, even if they exceed the limit. */
  hold(bytes: number): void {
    this.#ended.hold(bytes)
  }

  giveBack(bytes: number): void {
    this.#ended.giveBack(bytes)
  }

  /** Removes a submitted task that could not be stored. */
  withdraw(task: CommandTask): void {
    this.#tasks.delete(task.id)
    if (task.request !== undefined) this.#keys.delete(task.request.key)
    this.giveBack(task.bytes)
  }

  /**
   * Marks a task as ended, so that the next `trim` may drop it.
   * @param ageMs how long ago the task ended, in ms
   */
  end(task: CommandTask, ageMs = 0): void {
    if (this.#tasks.get(task.id) !== task) return
    this.giveBack(task.bytes)
    this.#ended.add(task, task.bytes, 1, ageMs)
  }

  /** Drops ended tasks above the maximum number. */
  trim(): void {
    this.#ended.trim()
  }

  /** Drops ended tasks above the limits of number, size and age. */
  sweep(): void {
    this.#ended.sweep()
  }

  /** Drops the tasks that ended longer ago than `maxAgeMs`. Returns the number of dropped tasks. */
  forgetOlder(maxAgeMs: number): number {
    return this.#ended.dropWhile((_task, ageMs) => ageMs > maxAgeMs)
  }

  /** Stops the timer. */
  close(): void {
    this.#ended.close()
  }
}
