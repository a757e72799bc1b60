/**
 * What tasks need besides a slot of their pool: slots of a key or a subagent (named slots), and a start within the rate of their subagent (promise
 * F18).
 *
 * A task takes all of its slots in one change or no slot at all, and holds them until its run has ended. While a task waits for named slots, it takes
 * no slot. All such tasks are in one list, in queue order. The first task in the list that can have all its slots starts. A task that has waited for
 * ten ageing periods (of `agingMs`) reserves its named slots: later tasks cannot take them. But a later task may take them if the reserving task
 * itself waits for that task to end.
 */
import { RateWindows } from './rate-windows.js'
import type { NamedSlot, Requirements } from './task-admission.js'
import type { Slots } from './slots.js'
import type { TaskEntry } from './task-entry.js'
import { isBefore, type Ranked } from './task-queue.js'

/** A task in the list: it waits for named slots, for its rate, or only for a slot of its pool. */
interface Waiter extends Ranked {
  slots: Slots
  readonly needs: Requirements
  readonly since: number
}

export interface LookOptions {
  readonly now: number
  /** Whether `entry` cannot continue before `other` has ended. */
  readonly waitsFor: (entry: TaskEntry, other: TaskEntry) => boolean
  /** Called with each task that cannot start. `isOnlySlot`: it lacks only a slot of its pool. */
  readonly onLooked: (entry: TaskEntry, slots: Slots, isOnlySlot: boolean) => void
}

/** After this many ageing periods, a waiting task reserves its named slots. */
const RESERVE_AFTER = 10

const idOf = ({ kind, name }: NamedSlot): string => `${kind} ${name}`

export class TaskLimits {
  readonly rates = new RateWindows()
  /** Whether no task may start, because tasks of an earlier process are being restored. */
  isClosed = false
  readonly #holders = new Map<string, Set<TaskEntry>>()
  readonly #held = new Map<TaskEntry, Requirements>()
  readonly #waiting: Waiter[] = []
  #reserving: Waiter | undefined
  #nextStart: { readonly at: number; readonly entry: TaskEntry } | undefined

  get size(): number {
    return this.#held.size + this.#waiting.length
  }

  /** Whether no task waits here. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#nextStart === undefined
  }

  /** The next time at which a start rate lets a waiting task start, and that task; undefined if no task waits for its rate. */
  get nextStart(): { readonly at: number; readonly entry: TaskEntry } | undefined {
    return this.#nextStart
  }

  holdersOf(slot: NamedSlot): readonly TaskEntry[] {
    return [...(this.#holders.get(idOf(slot)) ?? NONE)]
  }

  takenOf({ slots }: Requirements): readonly NamedSlot[] {
    return slots.filter((slot) => (this.#holders.get(idOf(slot))?.size ?? 0) >= slot.max)
  }

  /** Returns when the start rate lets the task start; undefined if it may start now. */
  rateOpensAt({ rate }: Requirements, now: number): number | undefined {
    return rate && this.rates.nextAt(rate.name, rate, now)
  }

  /** Whether a new task can take its named slots and start at once. */
  hasRoom(needs: Requirements, now: number): boolean {
    if (this.isClosed || this.takenOf(needs).length > 0 || this.rateOpensAt(needs, now) !== undefined) return false
    return this.#reserving === undefined || !overlap(this.#reserving.needs, needs)
  }

  take(entry: TaskEntry, needs: Requirements): void {
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

  /**
   * Takes back the slots of its subagent from a task whose run only waits. The task keeps the slots of its key. Returns what was taken back; undefined
   * if there was nothing.
   */
  yieldSlots(entry: TaskEntry): Requirements | undefined {
    const { slots = [], ...needs } = this.#held.get(entry) ?? {}
    const yielded = slots.filter(({ kind }) => kind === 'subagent')
    if (yielded.length === 0) return undefined
    this.#held.set(entry, { ...needs, slots: slots.filter((slot) => !yielded.includes(slot)) })
    this.#free(entry, yielded)
    return { slots: yielded }
  }

  #free(entry: TaskEntry, slots: readonly NamedSlot[]): void {
    for (const slot of slots) {
      const holders = this.#holders.get(idOf(slot))
      holders?.delete(entry)
      if (holders?.size === 0) this.#holders.delete(idOf(slot))
    }
  }

  /**
   * Adds a waiting task.
   * @param since when its wait began, in ms on the monotonic clock; possibly in an earlier process
   */
  wait(place: Ranked, slots: Slots, needs: Requirements, since: number): void {
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

  /** Returns the first task in the list that can have its named slots and a slot of its pool. Updates `nextStart` and which task reserves its slots. */
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
      if (isFree && !isReserved && slots.hasRoomToStart(entry)) return waiter
      onLooked(entry, slots, isFree)
      // A task that waits for its start rate or for its own owner reserves nothing, because the slots would stay unused until then.
      const isLate = agingMs !== -1 && now - since >= RESERVE_AFTER * agingMs
      const mayReserve = isLate && opensAt === undefined && slots.mayOwnerTake(entry)
      if (this.#reserving === undefined && mayReserve) this.#reserving = waiter
    }
    return undefined
  }
}

const NONE: ReadonlySet<TaskEntry> = new Set()

function overlap(one: Requirements, other: Requirements): boolean {
  return one.slots.some((slot) => other.slots.some((each) => idOf(each) === idOf(slot)))
}
