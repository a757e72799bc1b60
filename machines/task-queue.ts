/**
 * The tasks of one pool that wait for a slot. They are ordered by priority, which rises while they wait, and then by registration (promise F8). A
 * task may also be held in the queue for other reasons. It takes no slot until all of these reasons are gone.
 */
import { BinaryHeap } from './binary-heap.js'
import type { QueueTicket } from './records.js'
import { byRegistration, type TaskEntry } from './task-entry.js'

export interface QueueLimits {
  /** The maximum number of waiting tasks. */
  readonly max: number
  /** The maximum total size of what is held for the waiting tasks, in bytes. */
  readonly maxBytes: number
  /** How long a task may wait for a slot, in ms; undefined for no limit. */
  readonly maxWaitMs: number | undefined
  /** How long a task must wait until its priority rises by one, in ms; -1 for never. */
  readonly agingMs: number
}

/**
 * Why a task is held in the queue even if a slot is free. `delay`: the back-off of a retry. `dependencies`: other tasks must end first. `pause`: the
 * owner is paused. `wait`: its run in an earlier process was waiting, and that wait is not over.
 */
export type HoldReason = 'delay' | 'dependencies' | 'pause' | 'wait'

/** A waiting task and its rank. Tasks with a higher rank go first. The rank never changes, because all priorities rise at the same speed. */
export interface Ranked {
  readonly entry: TaskEntry
  readonly rank: number
}

interface Place extends Ranked {
  readonly ticket: QueueTicket
}

/** How many outdated items the heap may contain, in addition to the number of waiting tasks, before it is rebuilt. */
const MAX_STALE = 64

/** @param since when the task began to wait, in ms */
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

  /** The total size of what is held for the waiting tasks, in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /** Whether a further task of this size may wait. */
  hasRoom(bytes: number): boolean {
    return this.size < this.limits.max && this.#bytes + bytes <= this.limits.maxBytes
  }

  /** @param reasons why the task is held; `release` removes one of them */
  add(entry: TaskEntry, ticket: QueueTicket, reasons: readonly HoldReason[] = []): void {
    const { agingMs } = this.limits
    const { priority, bytes, since = 0 } = ticket
    const place = { entry, ticket, rank: rankOf(priority, since, agingMs) }
    this.#places.set(entry, place)
    this.#bytes += bytes
    if (reasons.length > 0) this.#held.set(entry, new Set(reasons))
    else this.#setReady(place)
  }

  /** Returns the place of a task; undefined if the task does not wait in this queue. */
  placeOf(entry: TaskEntry): Place | undefined {
    return this.#places.get(entry)
  }

  isHeld(entry: TaskEntry, reason?: HoldReason): boolean {
    const reasons = this.#held.get(entry)
    return reasons !== undefined && (reason === undefined || reasons.has(reason))
  }

  /** Holds a task for a reason. Returns true if the task only lacked a slot before. */
  hold(entry: TaskEntry, reason: HoldReason): boolean {
    const place = this.#places.get(entry)
    if (place === undefined) return false
    const reasons = this.#held.get(entry)
    if (reasons?.add(reason) !== undefined) return false
    this.#held.set(entry, new Set([reason]))
    // A new object, so that the item in the heap is outdated and will be skipped.
    this.#places.set(entry, { ...place })
    return true
  }

  /** Removes a reason to hold a task. Returns true if there is no other reason, so that the task needs only a slot. */
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
    // Rebuilds the heap without outdated items. If the queue is empty, the heap must not keep tasks in memory.
    if (this.size === 0 || this.#ready.size > 2 * this.size + MAX_STALE) this.#dropStale()
  }

  /** Moves a task to another queue. Returns false if the task does not wait in this queue. */
  moveTo(other: TaskQueue, entry: TaskEntry): boolean {
    const place = this.#places.get(entry)
    if (place === undefined) return false
    const reasons = [...(this.#held.get(entry) ?? [])]
    this.remove(entry)
    other.add(entry, place.ticket, reasons)
    return true
  }

  /** Returns the next task to receive a slot, among the tasks that are not held. */
  peek(): TaskEntry | undefined {
    for (;;) {
      const place = this.#ready.peek()
      if (place === undefined || this.#places.get(place.entry) === place) return place?.entry
      this.#ready.pop()
    }
  }

  /** Returns the waiting tasks in the order of the queue. Tasks that wait for other tasks or for the end of a run's wait are left out. */
  inOrder(): TaskEntry[] {
    const order = (a: Place, b: Place): number => (isBefore(a, b) ? -1 : 1)
    const places = [...this.#places.values()].filter(
      ({ entry }) => !this.isHeld(entry, 'dependencies') && !this.isHeld(entry, 'wait'),
    )
    return places.sort(order).map(({ entry }) => entry)
  }

  /** Adds a task to the heap, unless it needs named slots. Such a task is in the list of `TaskLimits` instead. */
  #setReady(place: Place): void {
    if (place.ticket.needs === undefined) this.#ready.push(place)
  }

  #dropStale(): void {
    this.#ready = new BinaryHeap<Place>(isBefore)
    for (const place of this.#places.values()) if (!this.#held.has(place.entry)) this.#setReady(place)
  }
}
