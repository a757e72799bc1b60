/** The slots of a concurrency limit, and the reservations that hold some of them (promise A3). Each pool of tasks has its own limit. */
import { DueTimes } from './due-times.js'
import type { AsyncTaskInfo, SlotPool } from './records.js'
import type { TaskEntry } from './task-entry.js'
import { TaskQueue, type QueueLimits } from './task-queue.js'

const NO_LIMITS: QueueLimits = { max: Infinity, maxBytes: Infinity, maxWaitMs: undefined, agingMs: -1 }

/**
 * The slots of each pool. Tasks launched by runs have a separate pool for each depth. A run that waits for its children thus never holds a slot that
 * these children need.
 */
export class SlotPools {
  readonly task: Slots
  readonly command: Slots
  /** The slots of foreground tasks. Tasks that runs have launched do not count. */
  readonly foreground: Slots
  readonly #children: Slots[] = []
  readonly #newSlots: (pool: SlotPool | 'foreground') => Slots

  /** @param newSlots creates the slots of a pool. For tasks launched by runs it is called once for each depth */
  constructor(newSlots: (pool: SlotPool | 'foreground') => Slots) {
    this.#newSlots = newSlots
    this.task = newSlots('task')
    this.command = newSlots('command')
    this.foreground = newSlots('foreground')
  }

  of(pool: SlotPool = 'task', depth = 1): Slots {
    if (pool !== 'child') return this[pool]
    while (this.#children.length < depth) this.#children.push(this.#newSlots('child'))
    return this.#children[depth - 1] ?? this.task
  }

  /** Returns the slots of the pool that a task needs in the background. */
  ofTask(record: AsyncTaskInfo): Slots {
    return this.of(poolOf(record), record.depth)
  }

  /** Returns the slots of all pools for which background tasks wait. */
  all(): Slots[] {
    return [this.task, ...this.#children, this.command]
  }
}

export const poolOf = ({ kind, parentId }: AsyncTaskInfo): SlotPool =>
  kind ?? (parentId === undefined ? 'task' : 'child')

/** Counts the slots in use against a maximum. */
export class Slots {
  /** How many tasks may run at once; -1 for no limit. */
  max: number
  readonly #now: () => number
  /** The tasks that the caller runs itself. Each holds a slot until it ends. */
  readonly #untilEnd = new Set<TaskEntry>()
  /** The tasks whose runs the manager has started. Each holds a slot until its run has stopped, even if the task ends before that. */
  readonly #untilRelease = new Set<TaskEntry>()
  readonly #reservations = new DueTimes<string>()
  /** The tasks that wait for a slot. */
  readonly queue: TaskQueue

  /** @param now returns the time with which reservations expire, in ms */
  constructor(max: number, now: () => number, limits: QueueLimits = NO_LIMITS) {
    this.max = max
    this.#now = now
    this.queue = new TaskQueue(limits)
  }

  /** When the next reservation expires; undefined if there is none, or if no task waits for its slot. */
  get nextExpiry(): number | undefined {
    if (this.queue.size === 0) return undefined
    this.#dropExpired()
    return this.#reservations.next
  }

  get inUse(): number {
    return this.#untilEnd.size + this.#untilRelease.size
  }

  get reserved(): number {
    this.#dropExpired()
    return this.#reservations.size
  }

  /** How many slots the tasks of an owner hold, including ended tasks whose runs have not settled. */
  countOf(owner: string): number {
    return [...this.#untilEnd, ...this.#untilRelease].filter(({ record }) => record.owner === owner).length
  }

  holds(entry: TaskEntry): boolean {
    return this.#untilEnd.has(entry) || this.#untilRelease.has(entry)
  }

  hasRoom(): boolean {
    return this.max === -1 || this.inUse + this.reserved < this.max
  }

  isOverLimit(): boolean {
    return this.max !== -1 && this.inUse + this.reserved > this.max
  }

  reserve(id: string, ttlMs: number): void {
    this.#reservations.set(id, this.#now() + ttlMs)
  }

  hasReservation(id: string): boolean {
    this.#dropExpired()
    return this.#reservations.has(id)
  }

  cancelReservation(id: string): boolean {
    this.#dropExpired()
    return this.#reservations.delete(id)
  }

  /** @param isLaunched whether the manager starts the run, so that the slot is held until `release`; otherwise until `end` */
  take(entry: TaskEntry, isLaunched: boolean): void {
    ;(isLaunched ? this.#untilRelease : this.#untilEnd).add(entry)
  }

  /** Frees the slot of a task that the caller ran, because the task has ended. */
  end(entry: TaskEntry): void {
    this.#untilEnd.delete(entry)
  }

  /** Frees the slot of a run that has settled or whose grace period has passed. Returns false if it holds no slot here. */
  release(entry: TaskEntry): boolean {
    return this.#untilRelease.delete(entry)
  }

  #dropExpired(): void {
    if (this.#reservations.size === 0) return
    const now = this.#now()
    while (this.#reservations.take(now) !== undefined);
  }
}
