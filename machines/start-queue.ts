/**
 * Where tasks wait to start: the slots and queues of all pools, named slots and start rates, the back-offs of retries, and the time limits of waits.
 *
 * A task starts when its delay has passed, no part of the registry holds it, and all its slots are free. A slot that is freed goes to the next task
 * in the same transition (R8).
 */
import { DueTimes } from './due-times.js'
import { TaskData } from './task-data.js'
import type { QueueTicket, SlotPool, StartRate, TaskAdmission, Requirements } from './task-admission.js'
import { Slots, type SlotPools } from './slots.js'
import type { TaskLimits } from './task-limits.js'
import type { TaskEntry } from './task-entry.js'
import { isBefore, type HoldReason } from './task-queue.js'

export interface StartQueueOptions {
  readonly pools: SlotPools
  /** Named slots and start rates. */
  readonly named: TaskLimits
  /** Returns the time of the clock for deadlines, in ms. */
  readonly elapsed: () => number
  /** Whether a task must not fail because it waits too long. */
  readonly mayWaitOn: (entry: TaskEntry) => boolean
  /** Whether `entry` cannot continue before `other` has ended. */
  readonly waitsFor: (entry: TaskEntry, other: TaskEntry) => boolean
  /** Called when a start was counted. `names` are the subagents whose counted starts have changed. */
  readonly onCounted: ((rate: StartRate, names: readonly string[]) => void) | undefined
}

export interface Joining {
  readonly ticket: QueueTicket
  /** How long it must wait before it may start, in ms. */
  readonly delayMs?: number
  /** How long it has already waited for a slot, in ms. */
  readonly waitedMs?: number
  /** Why it is held. */
  readonly reasons?: readonly HoldReason[]
}

/** The slots that a run has given back while it waits, and how it waits for them again. */
interface YieldedSlots {
  readonly pool: Slots
  readonly needs: Requirements | undefined
  readonly ticket: QueueTicket
}

/** A time and the task to which it belongs, if there is one. */
export interface Due {
  readonly at: number
  readonly entry: TaskEntry | undefined
}

export class StartQueue {
  readonly pools: SlotPools
  readonly named: TaskLimits
  readonly #options: StartQueueOptions
  /** Where tasks that need no slot of a pool wait for their next runs. */
  readonly #slotless: Slots
  readonly #delays = new DueTimes<TaskEntry>()
  /** When tasks have waited too long. */
  readonly #waits = new DueTimes<TaskEntry>()
  /** How long each paused task had waited before the pause, in ms. */
  readonly #waited = new TaskData<number>()
  readonly #yielded = new TaskData<YieldedSlots>()

  constructor(options: StartQueueOptions) {
    const { pools, named, elapsed } = options
    const { agingMs } = pools.task.queue.limits
    this.#options = options
    this.pools = pools
    this.named = named
    this.#slotless = new Slots(-1, elapsed, { max: Infinity, maxBytes: Infinity, maxWaitMs: undefined, agingMs })
  }

  all(): Slots[] {
    return [...this.pools.all(), this.pools.foreground, this.#slotless]
  }

  /** Returns the slots for which a task waits: those of `pool`, those of the foreground, or none. */
  slotsFor(pool: SlotPool | 'foreground' | 'none' | undefined, depth: number | undefined): Slots {
    if (pool === 'none') return this.#slotless
    return pool === 'foreground' ? this.pools.foreground : this.pools.of(pool, depth)
  }

  /** The time limit of the wait that ends first. */
  get nextExpiry(): Due | undefined {
    return dueOf(this.#waits)
  }

  /** The next time at which a back-off ends or a start rate lets a task start. */
  get nextStart(): Due | undefined {
    const { nextStart: ofRate } = this.named
    const ofDelay = dueOf(this.#delays)
    return ofDelay === undefined || (ofRate !== undefined && ofRate.at < ofDelay.at) ? ofRate : ofDelay
  }

  join(entry: TaskEntry, slots: Slots, { ticket, delayMs = 0, waitedMs = 0, reasons = [] }: Joining): void {
    const held = delayMs > 0 ? [...reasons, 'delay' as const] : reasons
    if (held.includes('pause')) this.#waited.set(entry, waitedMs)
    slots.queue.add(entry, ticket, held)
    if (delayMs > 0) this.#delays.set(entry, this.#options.elapsed() + delayMs)
    if (held.length === 0) this.#wait(entry, slots, waitedMs)
  }

  /**
   * Removes a reason to hold a task. If there is no other reason, the task waits for its slots.
   * @returns how long it had waited before it was held, in ms; undefined if it is still held, or does not wait
   */
  release(entry: TaskEntry, reason: HoldReason): number | undefined {
    const slots = this.all().find(({ queue }) => queue.release(entry, reason))
    if (slots === undefined) return undefined
    const waitedMs = this.#waited.take(entry) ?? 0
    this.#wait(entry, slots, waitedMs)
    return waitedMs
  }

  /** Holds a waiting task. The time in which it is held does not count as waiting. */
  hold(entry: TaskEntry, reason: HoldReason): void {
    for (const { queue } of this.all()) {
      if (!queue.hold(entry, reason)) continue
      const [at, { maxWaitMs = 0 }] = [this.#waits.timeOf(entry), queue.limits]
      this.#waited.set(entry, at === undefined ? 0 : maxWaitMs - (at - this.#options.elapsed()))
      this.#waits.delete(entry)
      this.named.leave(entry)
    }
  }

  /** Takes the slots of a task that starts without waiting. */
  take(entry: TaskEntry, slots: Slots | undefined, needs: Requirements | undefined, isLaunched: boolean): void {
    this.#takeNamed(entry, needs)
    slots?.take(entry, isLaunched)
  }

  /** Takes the slots that a running task had in an earlier process. */
  takeAgain(entry: TaskEntry, slots: Slots, needs: Requirements | undefined): void {
    slots.take(entry, true)
    if (needs !== undefined) this.named.take(entry, needs)
  }

  /** Removes and returns the next task that may start. It has its slots. Tasks whose back-off ends now take part. */
  startNext(): TaskEntry | undefined {
    this.#endDelays()
    const next = this.#next()
    if (next === undefined) return undefined
    const { entry, slots } = next
    this.#takeNamed(entry, slots.queue.placeOf(entry)?.ticket.needs)
    this.named.leave(entry)
    slots.queue.remove(entry)
    slots.take(entry, true)
    this.#waits.delete(entry)
    this.#yielded.take(entry)
    return entry
  }

  /** Frees the slots of a run that has settled, or whose grace period has passed. */
  free(entry: TaskEntry): void {
    for (const slots of this.all()) slots.release(entry)
    this.named.release(entry)
  }

  /** Frees the slots of a run that another run follows, and removes the task from the queues. Returns where it waits for its next run. */
  leave(entry: TaskEntry): Slots {
    const yielded = this.#yielded.take(entry)
    for (const { queue } of this.all()) queue.remove(entry)
    this.named.leave(entry)
    const [slots = yielded?.pool ?? this.#slotless] = this.all().filter((each) => each.release(entry))
    this.named.release(entry)
    this.#waits.delete(entry)
    return slots
  }

  /** Removes a task that has ended. The slot of a run that the manager has started is freed later (`free`). */
  end(entry: TaskEntry): void {
    this.#yielded.take(entry)
    this.#waits.delete(entry)
    this.#delays.delete(entry)
    for (const slots of this.all()) {
      slots.end(entry)
      slots.queue.remove(entry)
    }
    this.named.leave(entry)
  }

  /** Gives back the slots of a run that only waits, except the slots of its key. `ticket` is how it waits for them again. */
  yieldSlots(entry: TaskEntry, ticket: QueueTicket): void {
    const [pool] = this.all().filter((slots) => slots.release(entry))
    const needs = this.named.yieldSlots(entry)
    if (pool === undefined && needs === undefined) return
    this.#yielded.set(entry, { pool: pool ?? this.#slotless, needs, ticket })
  }

  /** Lets a run wait for the slots that it has given back. The limits of the queue do not apply. Returns false if it has given back none. */
  requestSlots(entry: TaskEntry): boolean {
    const yielded = this.#yielded.get(entry)
    if (yielded === undefined) return false
    const { pool, needs, ticket } = yielded
    if (pool.queue.placeOf(entry) !== undefined) return true
    const { needs: _, ...rest } = ticket
    pool.queue.add(entry, needs === undefined ? rest : { ...rest, needs })
    const place = pool.queue.placeOf(entry)
    if (place !== undefined && needs !== undefined) this.named.wait(place, pool, needs, this.#options.elapsed())
    return true
  }

  /** Lets a task that waits in the foreground, or needs no slot, wait for a slot of its pool. */
  moveToPool(entry: TaskEntry, slots: Slots): void {
    const hasMoved = [this.pools.foreground, this.#slotless].some(({ queue }) => queue.moveTo(slots.queue, entry))
    if (hasMoved && !slots.queue.isHeld(entry)) this.#limitWait(entry, slots)
    this.named.move(entry, slots)
  }

  takeExpired(): TaskEntry[] {
    return this.#waits.takeAll(this.#options.elapsed())
  }

  /** Lets a task that is not held wait for its slots. If it needs only a slot of its pool, the time limit of that wait begins. */
  #wait(entry: TaskEntry, slots: Slots, waitedMs: number): void {
    const place = slots.queue.placeOf(entry)
    const needs = place?.ticket.needs
    if (place === undefined || needs === undefined) this.#limitWait(entry, slots, waitedMs)
    else this.named.wait(place, slots, needs, this.#options.elapsed() - waitedMs)
  }

  #limitWait(entry: TaskEntry, { queue }: Slots, waitedMs = 0): void {
    const { maxWaitMs } = queue.limits
    if (maxWaitMs === undefined || this.#options.mayWaitOn(entry)) return
    this.#waits.set(entry, this.#options.elapsed() + Math.max(0, maxWaitMs - waitedMs))
  }

  /** Returns the next task to start. A task that needs named slots goes before the tasks that follow it in the queue of its pool. */
  #next(): { readonly entry: TaskEntry; readonly slots: Slots } | undefined {
    const limited = this.#nextNamed()
    for (const slots of this.all()) {
      const entry = nextOf(slots)
      const place = entry && slots.queue.placeOf(entry)
      if (place !== undefined && !(limited?.slots === slots && isBefore(limited, place))) return { ...place, slots }
    }
    return limited
  }

  #nextNamed(): ReturnType<TaskLimits['next']> {
    if (this.named.isIdle) return undefined
    return this.named.next({
      now: this.#options.elapsed(),
      waitsFor: this.#options.waitsFor,
      onLooked: (entry, slots, isOnlySlot) => {
        if (!isOnlySlot) this.#waits.delete(entry)
        else if (!this.#waits.has(entry)) this.#limitWait(entry, slots)
      },
    })
  }

  #takeNamed(entry: TaskEntry, needs: Requirements | undefined): void {
    if (needs === undefined) return
    this.named.take(entry, needs)
    const { rate } = needs
    if (rate === undefined) return
    const names = this.named.rates.count(rate.name, rate, this.#options.elapsed())
    this.#options.onCounted?.(rate, names)
  }

  #endDelays(): void {
    if (this.#delays.size === 0) return
    for (const entry of this.#delays.takeAll(this.#options.elapsed())) this.release(entry, 'delay')
  }
}

/** Returns the first task in the queue of a pool, if a slot is free. */
function nextOf(slots: Slots): TaskEntry | undefined {
  return slots.queue.size > 0 && slots.hasRoom() ? slots.queue.peek() : undefined
}

/** Returns the earliest of these times and its task. */
export function dueOf({ next: at, nextKey: entry }: DueTimes<TaskEntry>): Due | undefined {
  return at === undefined ? undefined : { at, entry }
}

/** Returns the pool whose slot a task needs. `none`: it needs no slot. Foreground tasks that runs have launched do not count. */
export function neededPool(admission: TaskAdmission, isOfRun: boolean): SlotPool | 'foreground' | 'none' | undefined {
  const { isForeground, isNote = false, pool } = admission
  // A command takes a slot of its pool even in the foreground.
  if (!isNote && (isForeground !== true || pool === 'command')) return pool
  return isNote || isOfRun ? 'none' : 'foreground'
}
