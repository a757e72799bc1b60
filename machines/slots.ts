/** The slots of a concurrency limit, and the reservations that hold some of them (promise A3). Each pool of tasks has its own limit. */
import { DueTimes } from './due-times.js'
import type { AsyncTaskInfo, SlotPool } from './records.js'
import type { TaskEntry } from './task-entry.js'
import { TaskQueue, type QueueLimits } from './task-queue.js'

const NO_LIMITS: QueueLimits = { max: Infinity, maxBytes: Infinity, maxWaitMs: undefined, agingMs: -1 }

/**
 * The slots of each pool. Children have a pool for each depth. A task then waits only for tasks below it, so the slots of a pool never all wait for
 * each other.
 */
export class SlotPools {
  readonly task: Slots
  readonly command: Slots
  /** The slots of foreground tasks, except those that runs have launched. */
  readonly foreground: Slots
  readonly #children: Slots[] = []
  readonly #newSlots: (pool: SlotPool | 'foreground') => Slots

  /** @param newSlots creates the slots of a pool, and for children those of each depth */
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

  /** The slots that limit a background task. */
  ofTask(record: AsyncTaskInfo): Slots {
    return this.of(poolOf(record), record.depth)
  }

  /** The slots for which launches may wait, including those of children by depth. */
  all(): Slots[] {
    return [this.task, ...this.#children, this.command]
  }
}

export const poolOf = ({ kind, parentId }: AsyncTaskInfo): SlotPool =>
  kind ?? (parentId === undefined ? 'task' : 'child')

/** Counts running tasks against a maximum. */
export class Slots {
  /** How many tasks may run at once; -1 for no limit. */
  max: number
  readonly #now: () => number
  /** Slots held until their task ends. */
  readonly #untilEnd = new Set<TaskEntry>()
  /** Slots of launched runs, which may outlive their tasks. */
  readonly #untilRelease = new Set<TaskEntry>()
  readonly #reservations = new DueTimes<string>()
  /** The tasks that wait for a slot. */
  readonly queue: TaskQueue

  /** @param now the time for the expiry of reservations, in ms */
  constructor(max: number, now: () => number, limits: QueueLimits = NO_LIMITS) {
    this.max = max
    this.#now = now
    this.queue = new TaskQueue(limits)
  }

  /** When a reserved slot may become free; undefined if no task waits for it. */
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

  /** @param isLaunched whether the slot is held until `release` rather than until the task ends */
  take(entry: TaskEntry, isLaunched: boolean): void {
    ;(isLaunched ? this.#untilRelease : this.#untilEnd).add(entry)
  }

  /** Frees the slot of a task that has ended. */
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
