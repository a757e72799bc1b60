/**
 * The tasks of one pool that wait for a slot: by priority, which rises while they wait, and within one by registration (F8). A place may be held back
 * for other reasons, too: then its task takes no slot before all of them have been given up.
 */
import { BinaryHeap } from './binary-heap.js'
import type { QueueTicket } from './records.js'
import { byRegistration, type TaskEntry } from './task-entry.js'

/** How much may wait. */
export interface QueueLimits {
  /** The most tasks. */
  readonly max: number
  /** The most bytes of what they hold. */
  readonly maxBytes: number
  /** How long one may wait for a slot, in ms; undefined for as long as it takes. */
  readonly maxWaitMs: number | undefined
  /** How long a task waits until its priority has risen by one, in ms; -1 for never. */
  readonly agingMs: number
}

/**
 * Why a place is held back although a slot may be free: the back-off of a repeated run, tasks that have to end first, a pause, or what the run of an
 * earlier process has waited for.
 */
export type HoldReason = 'delay' | 'dependencies' | 'pause' | 'wait'

/** Something that waits, and its rank: a higher one goes first. Priorities rise evenly, so that ranks never change. */
export interface Ranked {
  readonly entry: TaskEntry
  readonly rank: number
}

interface Place extends Ranked {
  readonly ticket: QueueTicket
}

/** Stale heap items that are kept at most, besides as many as there are places. */
const MAX_STALE = 64

/** @param since since when it waits, in ms */
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

  /** What is held for the tasks that wait. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether one more task with so many bytes may wait. */
  hasRoom(bytes: number): boolean {
    return this.size < this.limits.max && this.#bytes + bytes <= this.limits.maxBytes
  }

  /** @param reasons it takes no slot before `release` was called for each of them */
  add(entry: TaskEntry, ticket: QueueTicket, reasons: readonly HoldReason[] = []): void {
    const { agingMs } = this.limits
    const { priority, bytes, since = 0 } = ticket
    const place = { entry, ticket, rank: rankOf(priority, since, agingMs) }
    this.#places.set(entry, place)
    this.#bytes += bytes
    if (reasons.length > 0) this.#held.set(entry, new Set(reasons))
    else this.#setReady(place)
  }

  /** The place of a task; undefined for one that does not wait here. */
  placeOf(entry: TaskEntry): Place | undefined {
    return this.#places.get(entry)
  }

  isHeld(entry: TaskEntry, reason?: HoldReason): boolean {
    const reasons = this.#held.get(entry)
    return reasons !== undefined && (reason === undefined || reasons.has(reason))
  }

  /** Holds a place back for one more reason. True when it was not held back: until now only a slot was missing. */
  hold(entry: TaskEntry, reason: HoldReason): boolean {
    const place = this.#places.get(entry)
    if (place === undefined) return false
    const reasons = this.#held.get(entry)
    if (reasons?.add(reason) !== undefined) return false
    this.#held.set(entry, new Set([reason]))
    // The item in the heap is stale from now on.
    this.#places.set(entry, { ...place })
    return true
  }

  /** A place is not held back for this reason any longer. True when it was the last one: only a slot is missing now. */
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
    // An empty queue keeps nothing of the tasks that have waited.
    if (this.size === 0 || this.#ready.size > 2 * this.size + MAX_STALE) this.#dropStale()
  }

  /** A task goes on waiting in another queue. False when it does not wait here. */
  moveTo(other: TaskQueue, entry: TaskEntry): boolean {
    const place = this.#places.get(entry)
    if (place === undefined) return false
    const reasons = [...(this.#held.get(entry) ?? [])]
    this.remove(entry)
    other.add(entry, place.ticket, reasons)
    return true
  }

  /** The task that is next to take a slot, of those that need nothing else. */
  peek(): TaskEntry | undefined {
    for (;;) {
      const place = this.#ready.peek()
      if (place === undefined || this.#places.get(place.entry) === place) return place?.entry
      this.#ready.pop()
    }
  }

  /** Everything that waits, the next first, without what waits for other tasks to end, or for something else than time. */
  inOrder(): TaskEntry[] {
    const order = (a: Place, b: Place): number => (isBefore(a, b) ? -1 : 1)
    const places = [...this.#places.values()].filter(
      ({ entry }) => !this.isHeld(entry, 'dependencies') && !this.isHeld(entry, 'wait'),
    )
    return places.sort(order).map(({ entry }) => entry)
  }

  /** What needs named slots as well waits in the list of `TaskLimits`. */
  #setReady(place: Place): void {
    if (place.ticket.needs === undefined) this.#ready.push(place)
  }

  #dropStale(): void {
    this.#ready = new BinaryHeap<Place>(isBefore)
    for (const place of this.#places.values()) if (!this.#held.has(place.entry)) this.#setReady(place)
  }
}
