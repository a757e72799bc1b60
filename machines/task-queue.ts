/**
 * The tasks of one pool that wait for a slot. They are ordered by priority, which rises while they wait, and then by registration (promise F8). A
 * task may also be held in the queue for other reasons. It takes no slot until all of these reasons are gone.
 *
 * Tasks of an owner that holds as many slots as it may are skipped. They are blocked: when they come first in the queue, they are set aside, and each
 * slot of the owner that becomes free brings back the first of them.
 */
import { BinaryHeap } from './binary-heap.js'
import { CountByOwner, type OwnerLimits } from './owner-limits.js'
import type { QueueTicket } from './task-admission.js'
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
  /** The owner against whose limits the task counts. */
  readonly payer: string
}

/** The limits of each owner, and whether an owner may take another slot. */
export interface QueueOwners extends OwnerLimits {
  readonly mayTake: (payer: string) => boolean
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
  /** Undefined without limits for each owner. */
  readonly owners: QueueOwners | undefined
  readonly #places = new Map<TaskEntry, Place>()
  readonly #held = new Map<TaskEntry, Set<HoldReason>>()
  readonly #counts = new CountByOwner()
  readonly #bytesOf = new CountByOwner()
  #ready = new BinaryHeap<Place>(isBefore)
  /** Tasks that were ready when their owner had no room, by owner. */
  readonly #blocked = new Map<string, BinaryHeap<Place>>()
  /** The number of items in `#blocked`. */
  #blockedSize = 0
  #bytes = 0

  constructor(limits: QueueLimits, owners?: QueueOwners) {
    this.limits = limits
    this.owners = owners
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

  /** Returns how many tasks of an owner wait, and the total size of what is held for them in bytes. */
  useOf(owner: string): { readonly size: number; readonly bytes: number } {
    const payer = this.#payerOf(owner)
    return { size: this.#counts.of(payer), bytes: this.#bytesOf.of(payer) }
  }

  /** Whether a further task of this owner may wait, as far as the limits of the owner go. */
  hasRoomFor(owner: string, bytes: number): boolean {
    const { owners } = this
    if (owners === undefined) return true
    const use = this.useOf(owner)
    return use.size < owners.queued && use.bytes + bytes <= owners.queuedBytes
  }

  /** @param reasons why the task is held; `release` removes one of them */
  add(entry: TaskEntry, ticket: QueueTicket, reasons: readonly HoldReason[] = []): void {
    const { agingMs } = this.limits
    const { priority, bytes, since = 0 } = ticket
    const payer = this.#payerOf(entry.record.owner)
    const place = { entry, ticket, payer, rank: rankOf(priority, since, agingMs) }
    this.#places.set(entry, place)
    this.#count(place, 1)
    this.#bytes += bytes
    if (reasons.length > 0) this.#held.set(entry, new Set(reasons))
    else this.#setReady(place)
  }

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
    if (reasons !== undefined) {
      reasons.add(reason)
      return false
    }
    this.#held.set(entry, new Set([reason]))
    // A new object, so that the item in the heap is outdated and will be skipped.
    this.#places.set(entry, { ...place })
    this.unblock(place.payer)
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
    this.#count(place, -1)
    this.unblock(place.payer)
    // Rebuilds the heaps without outdated items. If the queue is empty, they must not keep tasks in memory.
    if (this.size === 0 || this.#ready.size + this.#blockedSize > 2 * this.size + MAX_STALE) this.refresh()
  }

  /** Counts a waiting task against the limits of its new owner. */
  ownerChanged(entry: TaskEntry): void {
    const place = this.#places.get(entry)
    if (place === undefined) return
    const moved = { ...place, payer: this.#payerOf(entry.record.owner) }
    this.#count(place, -1)
    this.#count(moved, 1)
    this.#places.set(entry, moved)
    if (!this.#held.has(entry)) this.#setReady(moved)
    this.unblock(place.payer)
  }

  /** Brings back the first blocked task of an owner. If the owner still has no room, the task is blocked again when it comes first. */
  unblock(payer: string): void {
    const blocked = this.#blocked.get(payer)
    if (blocked === undefined) return
    for (let place = blocked.pop(); place !== undefined; place = blocked.pop()) {
      this.#blockedSize -= 1
      if (this.#places.get(place.entry) !== place) continue
      this.#ready.push(place)
      break
    }
    if (blocked.size === 0) this.#blocked.delete(payer)
  }

  /** Looks at all waiting tasks again, for example because a limit has changed. */
  refresh(): void {
    this.#ready = new BinaryHeap<Place>(isBefore)
    this.#blocked.clear()
    this.#blockedSize = 0
    for (const place of this.#places.values()) if (!this.#held.has(place.entry)) this.#setReady(place)
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

  /** Returns the next task to receive a slot, among the tasks that are not held and whose owner may take one. */
  peek(): TaskEntry | undefined {
    for (;;) {
      const place = this.#ready.peek()
      if (place === undefined) return undefined
      const isCurrent = this.#places.get(place.entry) === place
      if (isCurrent && this.owners?.mayTake(place.payer) !== false) return place.entry
      this.#ready.pop()
      if (isCurrent) this.#block(place)
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

  #block(place: Place): void {
    const blocked = this.#blocked.get(place.payer) ?? new BinaryHeap<Place>(isBefore)
    this.#blocked.set(place.payer, blocked)
    blocked.push(place)
    this.#blockedSize += 1
  }

  #payerOf(owner: string): string {
    return this.owners?.payerOf(owner) ?? owner
  }

  #count({ payer, ticket }: Place, by: 1 | -1): void {
    if (this.owners === undefined) return
    this.#counts.add(payer, by)
    this.#bytesOf.add(payer, by * ticket.bytes)
  }
}
