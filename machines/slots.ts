/** The slots of a concurrency limit, and the reservations that hold some of them (promise A3). Each pool of tasks has its own limit. */
import { DueTimes } from './due-times.js'
import { CountByOwner, type OwnerLimits } from './owner-limits.js'
import type { AsyncTaskInfo } from './records.js'
import type { SlotPool } from './task-admission.js'
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

  /** Counts a task against the limits of its new owner. */
  ownerChanged(entry: TaskEntry): void {
    for (const slots of [this.task, this.command]) slots.ownerChanged(entry)
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
  readonly #now: () => number
  /** The tasks that the caller runs itself. Each holds a slot until it ends. */
  readonly #untilEnd = new Set<TaskEntry>()
  /** The tasks whose runs the manager has started. Each holds a slot until its run has stopped, even if the task ends before that. */
  readonly #untilRelease = new Set<TaskEntry>()
  readonly #reservations = new DueTimes<string>()
  readonly queue: TaskQueue
  readonly #owners: OwnerLimits | undefined
  /** How many slots each owner holds, including its reservations. */
  readonly #held = new CountByOwner()
  /** For each task that holds a slot, and each reservation with an owner: the owner against whose limit it counts. */
  readonly #payers = new Map<TaskEntry | string, string>()
  #max: number

  /**
   * @param now returns the time with which reservations expire, in ms
   * @param owners the limits of each owner. Default: none
   */
  constructor(max: number, now: () => number, limits: QueueLimits = NO_LIMITS, owners?: OwnerLimits) {
    this.#max = max
    this.#now = now
    this.#owners = owners
    this.queue = new TaskQueue(limits, owners && { ...owners, mayTake: (payer) => this.#mayTake(payer) })
  }

  /** How many tasks may run at once; -1 for no limit. */
  get max(): number {
    return this.#max
  }

  set max(max: number) {
    this.#max = max
    this.queue.refresh()
  }

  /** How many tasks of one owner may run at once; -1 for no limit. */
  get maxOfOwner(): number {
    return this.#owners?.running(this.#max) ?? -1
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

  /** How many slots the tasks of these owners hold, including ended tasks whose runs have not settled. */
  countOf(isCounted: (owner: string) => boolean): number {
    return [...this.#untilEnd, ...this.#untilRelease].filter(({ record }) => isCounted(record.owner)).length
  }

  /** How many slots the tasks and reservations of an owner hold. */
  heldBy(owner: string): number {
    this.#dropExpired()
    return this.#held.of(this.#owners?.payerOf(owner) ?? owner)
  }

  holds(entry: TaskEntry): boolean {
    return this.#untilEnd.has(entry) || this.#untilRelease.has(entry)
  }

  hasRoom(): boolean {
    // The end of a reservation may also give its owner room.
    this.#dropExpired()
    return this.max === -1 || this.inUse + this.reserved < this.max
  }

  /** Whether a slot is free that a new task of this owner may take. */
  hasRoomFor(owner: string): boolean {
    return this.hasRoom() && this.#mayTake(this.#owners?.payerOf(owner) ?? owner)
  }

  /** Whether a slot is free that a waiting task may take. */
  hasRoomToStart(entry: TaskEntry): boolean {
    return this.hasRoom() && this.mayOwnerTake(entry)
  }

  /** Whether the owner of a waiting task may take another slot. */
  mayOwnerTake(entry: TaskEntry): boolean {
    const payer = this.queue.placeOf(entry)?.payer
    return payer === undefined || this.#mayTake(payer)
  }

  isOverLimit(): boolean {
    return this.max !== -1 && this.inUse + this.reserved > this.max
  }

  /** @param owner the owner of the task for which the slot is held; undefined if it does not count for an owner */
  reserve(id: string, ttlMs: number, owner?: string): void {
    this.#reservations.set(id, this.#now() + ttlMs)
    if (owner !== undefined) this.#charge(id, owner)
  }

  hasReservation(id: string): boolean {
    this.#dropExpired()
    return this.#reservations.has(id)
  }

  cancelReservation(id: string): boolean {
    this.#dropExpired()
    this.#refund(id)
    return this.#reservations.delete(id)
  }

  /** @param isLaunched whether the manager starts the run, so that the slot is held until `release`; otherwise until `end` */
  take(entry: TaskEntry, isLaunched: boolean): void {
    ;(isLaunched ? this.#untilRelease : this.#untilEnd).add(entry)
    this.#charge(entry, entry.record.owner)
  }

  /** Frees the slot of a task that the caller ran, because the task has ended. */
  end(entry: TaskEntry): void {
    if (this.#untilEnd.delete(entry)) this.#refund(entry)
  }

  /** Frees the slot of a run that has settled or whose grace period has passed. Returns false if it holds no slot here. */
  release(entry: TaskEntry): boolean {
    if (!this.#untilRelease.delete(entry)) return false
    this.#refund(entry)
    return true
  }

  /** Counts a task against the limits of its new owner. Such a transfer may exceed them. */
  ownerChanged(entry: TaskEntry): void {
    this.queue.ownerChanged(entry)
    if (this.holds(entry)) this.#charge(entry, entry.record.owner)
  }

  #mayTake(payer: string): boolean {
    const { maxOfOwner } = this
    if (maxOfOwner === -1) return true
    this.#dropExpired()
    return this.#held.of(payer) < maxOfOwner
  }

  #charge(what: TaskEntry | string, owner: string): void {
    if (this.#owners === undefined) return
    this.#refund(what)
    const payer = this.#owners.payerOf(owner)
    this.#payers.set(what, payer)
    this.#held.add(payer, 1)
  }

  #refund(what: TaskEntry | string): void {
    const payer = this.#payers.get(what)
    if (payer === undefined) return
    this.#payers.delete(what)
    this.#held.add(payer, -1)
    this.queue.unblock(payer)
  }

  #dropExpired(): void {
    if (this.#reservations.size === 0) return
    const now = this.#now()
    for (let id = this.#reservations.take(now); id !== undefined; id = this.#reservations.take(now)) this.#refund(id)
  }
}
