/**
 * What tasks need besides a slot of their pool: named slots (of a key, of a subagent), and a start within the rate of their subagent (F18).
 *
 * A task takes all of its slots in one change, or none, and holds them until its run has ended. What waits for them takes no slot: it is in one list for
 * all pools, in the order of the queues, and the first that can have everything starts. One that has waited for ten times the time of ageing reserves
 * what it needs: nothing after it takes those slots, unless it waits for that task itself.
 */
import { RateWindows } from './rate-windows.js'
import type { NamedSlot, TaskNeeds } from './records.js'
import type { Slots } from './slots.js'
import type { TaskEntry } from './task-entry.js'
import { isBefore, type Ranked } from './task-queue.js'

/** A task that waits for its named slots, or lacks only the slot of its pool. */
interface Waiter extends Ranked {
  slots: Slots
  readonly needs: TaskNeeds
  readonly since: number
}

export interface LookOptions {
  readonly now: number
  /** Whether the first task waits for the second one, over others or by itself. */
  readonly waitsFor: (entry: TaskEntry, other: TaskEntry) => boolean
  /** A task lacks only the slot of its pool, or more than that. */
  readonly onLooked: (entry: TaskEntry, slots: Slots, isOnlySlot: boolean) => void
}

/** A task reserves its slots when it has waited for as many times as long as its priority takes to rise by one. */
const RESERVE_AFTER = 10

const idOf = ({ kind, name }: NamedSlot): string => `${kind} ${name}`

export class TaskLimits {
  readonly rates = new RateWindows()
  /** Nothing starts while what an earlier process left is being restored. */
  isClosed = false
  readonly #holders = new Map<string, Set<TaskEntry>>()
  readonly #held = new Map<TaskEntry, TaskNeeds>()
  readonly #waiting: Waiter[] = []
  #reserving: Waiter | undefined
  #nextStart: { readonly at: number; readonly entry: TaskEntry } | undefined

  get size(): number {
    return this.#held.size + this.#waiting.length
  }

  /** Whether nothing waits, as where no task needs anything but a slot of its pool. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#nextStart === undefined
  }

  /** When the rate of a subagent allows the start of a task that waits, and of which; undefined when none waits for that. */
  get nextStart(): { readonly at: number; readonly entry: TaskEntry } | undefined {
    return this.#nextStart
  }

  holdersOf(slot: NamedSlot): readonly TaskEntry[] {
    return [...(this.#holders.get(idOf(slot)) ?? NONE)]
  }

  takenOf({ slots }: TaskNeeds): readonly NamedSlot[] {
    return slots.filter((slot) => (this.#holders.get(idOf(slot))?.size ?? 0) >= slot.max)
  }

  /** When the rate of its subagent allows a task to start; undefined for now. */
  rateOpensAt({ rate }: TaskNeeds, now: number): number | undefined {
    return rate && this.rates.nextAt(rate.name, rate, now)
  }

  /** Whether a new task can have its named slots, and may start. */
  hasRoom(needs: TaskNeeds, now: number): boolean {
    if (this.isClosed || this.takenOf(needs).length > 0 || this.rateOpensAt(needs, now) !== undefined) return false
    return this.#reserving === undefined || !overlap(this.#reserving.needs, needs)
  }

  take(entry: TaskEntry, needs: TaskNeeds): void {
    const held = this.#held.get(entry)?.slots ?? []
    this.#held.set(entry, { ...needs, slots: [...held, ...needs.slots] })
    for (const slot of needs.slots) {
      const holders = this.#holders.get(idOf(slot))
      if (holders === undefined) this.#holders.set(idOf(slot), new Set([entry]))
      else holders.add(entry)
    }
  }

  release(entry: TaskEntry): void {
    const needs = this.#held.get(entry)
    if (needs === undefined) return
    this.#held.delete(entry)
    this.#free(entry, needs.slots)
  }

  /** The run of a task only waits: it gives back the slots of its subagent, and keeps those of its keys. Returns what it gives back. */
  lend(entry: TaskEntry): TaskNeeds | undefined {
    const { slots = [], ...needs } = this.#held.get(entry) ?? {}
    const lent = slots.filter(({ kind }) => kind === 'subagent')
    if (lent.length === 0) return undefined
    this.#held.set(entry, { ...needs, slots: slots.filter((slot) => !lent.includes(slot)) })
    this.#free(entry, lent)
    return { slots: lent }
  }

  #free(entry: TaskEntry, slots: readonly NamedSlot[]): void {
    for (const slot of slots) {
      const holders = this.#holders.get(idOf(slot))
      holders?.delete(entry)
      if (holders?.size === 0) this.#holders.delete(idOf(slot))
    }
  }

  /** A task waits from now on. @param since since when, in ms: an earlier process may have kept it waiting */
  wait(place: Ranked, slots: Slots, needs: TaskNeeds, since: number): void {
    const waiter = { entry: place.entry, rank: place.rank, slots, needs, since }
    const at = this.#waiting.findIndex((other) => isBefore(waiter, other))
    this.#waiting.splice(at === -1 ? this.#waiting.length : at, 0, waiter)
  }

  move(entry: TaskEntry, slots: Slots): void {
    const waiter = this.#waiting.find((each) => each.entry === entry)
    if (waiter !== undefined) waiter.slots = slots
  }

  leave(entry: TaskEntry): void {
    if (this.#waiting.length === 0) return
    const at = this.#waiting.findIndex((each) => each.entry === entry)
    if (at !== -1) this.#waiting.splice(at, 1)
    if (this.#reserving?.entry === entry) this.#reserving = undefined
  }

  /** The first task that can have its named slots and one of its pool. */
  next({ now, waitsFor, onLooked }: LookOptions): Waiter | undefined {
    this.#reserving = undefined
    this.#nextStart = undefined
    if (this.isClosed) return undefined
    for (const waiter of this.#waiting) {
      const { entry, slots, needs, since } = waiter
      const opensAt = this.rateOpensAt(needs, now)
      if (opensAt !== undefined && opensAt < (this.#nextStart?.at ?? Infinity)) this.#nextStart = { at: opensAt, entry }
      const { agingMs } = slots.queue.limits
      const isReserved =
        this.#reserving !== undefined &&
        overlap(this.#reserving.needs, needs) &&
        !waitsFor(this.#reserving.entry, entry)
      const isFree = opensAt === undefined && this.takenOf(needs).length === 0
      if (isFree && !isReserved && slots.hasRoom()) return waiter
      onLooked(entry, slots, isFree)
      // What waits for its rate would keep slots free that nothing uses.
      const mayReserve = opensAt === undefined && agingMs !== -1 && now - since >= RESERVE_AFTER * agingMs
      if (this.#reserving === undefined && mayReserve) this.#reserving = waiter
    }
    return undefined
  }
}

const NONE: ReadonlySet<TaskEntry> = new Set()

function overlap(one: TaskNeeds, other: TaskNeeds): boolean {
  return one.slots.some((slot) => other.slots.some((each) => idOf(each) === idOf(slot)))
}
