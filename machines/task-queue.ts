/** The tasks of one pool that wait for a slot: by priority, and within one by registration (F8). */
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
}

interface Place extends QueueTicket {
  readonly entry: TaskEntry
}

/** Stale heap items that are kept at most, besides as many as there are places. */
const MAX_STALE = 64

const isBefore = (a: Place, b: Place): boolean =>
  a.priority > b.priority || (a.priority === b.priority && byRegistration(a.entry, b.entry) < 0)

export class TaskQueue {
  readonly limits: QueueLimits
  readonly #places = new Map<TaskEntry, Place>()
  /** Places that are waiting for the time of their next attempt. */
  readonly #delayed = new Set<TaskEntry>()
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

  /** @param isDelayed it takes no slot before `setReady` */
  add(entry: TaskEntry, ticket: QueueTicket, isDelayed = false): void {
    const place = { entry, priority: ticket.priority, bytes: ticket.bytes }
    this.#places.set(entry, place)
    this.#bytes += place.bytes
    if (isDelayed) this.#delayed.add(entry)
    else this.#ready.push(place)
  }

  isDelayed(entry: TaskEntry): boolean {
    return this.#delayed.has(entry)
  }

  setReady(entry: TaskEntry): void {
    const place = this.#places.get(entry)
    if (this.#delayed.delete(entry) && place !== undefined) this.#ready.push(place)
  }

  remove(entry: TaskEntry): void {
    const place = this.#places.get(entry)
    if (place === undefined) return
    this.#places.delete(entry)
    this.#delayed.delete(entry)
    this.#bytes -= place.bytes
    // An empty queue keeps nothing of the tasks that have waited.
    if (this.size === 0 || this.#ready.size > 2 * this.size + MAX_STALE) this.#dropStale()
  }

  /** A task goes on waiting in another queue. False when it does not wait here. */
  moveTo(other: TaskQueue, entry: TaskEntry): boolean {
    const place = this.#places.get(entry)
    if (place === undefined) return false
    const isDelayed = this.isDelayed(entry)
    this.remove(entry)
    other.add(entry, place, isDelayed)
    return true
  }

  /** The task that is next to take a slot. */
  peek(): TaskEntry | undefined {
    for (;;) {
      const place = this.#ready.peek()
      if (place === undefined || this.#places.get(place.entry) === place) return place?.entry
      this.#ready.pop()
    }
  }

  /** Everything that waits, the next first. */
  inOrder(): TaskEntry[] {
    const order = (a: Place, b: Place): number => (isBefore(a, b) ? -1 : 1)
    return [...this.#places.values()].sort(order).map(({ entry }) => entry)
  }

  #dropStale(): void {
    this.#ready = new BinaryHeap(isBefore)
    for (const place of this.#places.values()) if (!this.#delayed.has(place.entry)) this.#ready.push(place)
  }
}
