/**
 * The tasks of one pool that wait for a slot, ordered by priority, which rises while they wait, and then by registration (promise F8). A task may also be
 * held for other reasons. It takes no slot until all of them are released.
 */
import { BinaryHeap } from './binary-heap.js'
import type { QueueTicket } from './records.js'
import { byRegistration, type TaskEntry } from './task-entry.js'

export interface QueueLimits {
  /** The maximum of tasks. */
  readonly max: number
  /** The maximum of bytes held for them. */
  readonly maxBytes: number
  /** How long a task may wait for a slot, in ms; undefined for no limit. */
  readonly maxWaitMs: number | undefined
  /** How long a task waits until its priority rises by one, in ms; -1 for never. */
  readonly agingMs: number
}

/**
 * Why a task is held although a slot may be free: the back-off of a retry, tasks that must end first, a pause, or a wait of a run in an earlier
 * process.
 */
export type HoldReason = 'delay' | 'dependencies' | 'pause' | 'wait'

/** A waiting item and its rank. Higher ranks go first. All priorities rise evenly, so ranks never change. */
export interface Ranked {
  readonly entry: TaskEntry
  readonly rank: number
}

interface Place extends Ranked {
  readonly ticket: QueueTicket
}

/** The maximum of stale heap items, in addition to the number of places. */
const MAX_STALE = 64

/** @param since when its wait began, in ms */
export const rankOf = (priority: number, since: number, agingMs: number): number =>
  agingMs === -1 ? priority : priority * agingMs - since

export const isBefore = (a: Ranked, b: Ranked): boolean =>
  a.rank > b.rank || (a.rank === b.rank && byRegistration(a.entry, b.entry) < 0)

export class TaskQueue {
  readonly limits: QueueLimits
  readonly #places = new Map<TaskEntry, Place>()
  readonly #held = new Map<TaskEntry, Set<HoldReason>>()
  #ready = new BinaryHeap<Place>(isBefore)
  #bytes = 0

  constructor(limits: QueueLimits) {
    this.limits = limits
  }

  get size(): number {
    return this.#places.size
  }

  /** The bytes held for the waiting tasks. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether another task with this many bytes may wait. */
  hasRoom(bytes: number): boolean {
    return this.size < this.limits.max && this.#bytes + bytes <= this.limits.maxBytes
  }

  /** @param reasons why it is held, until `release` was called for each */
  add(entry: TaskEntry, ticket: QueueTicket, reasons: readonly HoldReason[] = []): void {
    const { agingMs } = this.limits
    const { priority, bytes, since = 0 } = ticket
    const place = { entry, ticket, rank: rankOf(priority, since, agingMs) }
    this.#places.set(entry, place)
    this.#bytes += bytes
    if (reasons.length > 0) this.#held.set(entry, new Set(reasons))
    else this.#setReady(place)
  }

  /** The place of a task; undefined if it does not wait here. */
  placeOf(entry: TaskEntry): Place | undefined {
    return this.#places.get(entry)
  }

  isHeld(entry: TaskEntry, reason?: HoldReason): boolean {
    const reasons = this.#held.get(entry)
    return reasons !== undefined && (reason === undefined || reasons.has(reason))
  }

  /** Holds a task for a reason. Returns true if it was not held before, and only lacked a slot. */
  hold(entry: TaskEntry, reason: HoldReason): boolean {
    const place = this.#places.get(entry)
    if (place === undefined) return false
    const reasons = this.#held.get(entry)
    if (reasons?.add(reason) !== undefined) return false
    this.#held.set(entry, new Set([reason]))
    // This makes the item in the heap stale.
    this.#places.set(entry, { ...place })
    return true
  }

  /** Removes a reason to hold a task. Returns true if it was the last one, so that only a slot is missing. */
  release(entry: TaskEntry, reason: HoldReason): boolean {
    const reasons = this.#held.get(entry)
    const place = this.#places.get(entry)
    if (place === undefined || reasons?.delete(reason) !== true || reasons.size > 0) return false
    this.#held.delete(entry)
    this.#setReady(place)
    return true
  }

  remove(entry: TaskEntry): void {
    const place = this.#places.get(entry)
    if (place === undefined) return
    this.#places.delete(entry)
    this.#held.delete(entry)
    this.#bytes -= place.ticket.bytes
    // Compacts the heap; an empty queue keeps no references to tasks.
    if (this.size === 0 || this.#ready.size > 2 * this.size + MAX_STALE) this.#dropStale()
  }

  /** Moves a task to another queue. Returns false if it does not wait here. */
  moveTo(other: TaskQueue, entry: TaskEntry): boolean {
    const place = this.#places.get(entry)
    if (place === undefined) return false
    const reasons = [...(this.#held.get(entry) ?? [])]
    this.remove(entry)
    other.add(entry, place.ticket, reasons)
    return true
  }

  /** The next task to take a slot, among those that lack only a slot. */
  peek(): TaskEntry | undefined {
    for (;;) {
      const place = this.#ready.peek()
      if (place === undefined || this.#places.get(place.entry) === place) return place?.entry
      this.#ready.pop()
    }
  }

  /** All waiting tasks in order, without those that wait for other tasks or for an event. */
  inOrder(): TaskEntry[] {
    const order = (a: Place, b: Place): number => (isBefore(a, b) ? -1 : 1)
    const places = [...this.#places.values()].filter(
      ({ entry }) => !this.isHeld(entry, 'dependencies') && !this.isHeld(entry, 'wait'),
    )
    return places.sort(order).map(({ entry }) => entry)
  }

  /** A task that also needs named slots waits in the list of `TaskLimits`. */
  #setReady(place: Place): void {
    if (place.ticket.needs === undefined) this.#ready.push(place)
  }

  #dropStale(): void {
    this.#ready = new BinaryHeap<Place>(isBefore)
    for (const place of this.#places.values()) if (!this.#held.has(place.entry)) this.#setReady(place)
  }
}
