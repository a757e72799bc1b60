/**
 * The parent of the actors of all tasks. It registers tasks, keeps their records and the ledger, and prunes. What tasks may do besides is divided into
 * parts (`parts/`); slots and queues are in start-queue.ts.
 *
 * R1  Launched tasks and reservations never exceed the maximum. There are two exceptions: the maximum is lowered while tasks run, or a call no longer
 *     waits for its foreground task, which continues in the background.
 * R2  A task with the id of a kept record is never registered.
 * R3  A task that ends leaves a frozen record in the same transition, and its actor is released.
 * R4  An entry is in at most one lease, and an owner has at most one exclusive lease (ledger.ts).
 * R5  A record is pruned only if its result is not owed and the handlers of its end have run. Such records of one owner are pruned in the order in which
 *     the tasks ended.
 * R6  Every change gets a number, and the host is notified in the order of the numbers. No host code runs inside a transition.
 * R7  A disposed registry no longer changes, except that it keeps what suspended runs return and use until it is closed.
 * R8  A free slot goes to the next waiting task whose owner may take it, in the transition that frees it. New tasks cannot overtake such a task.
 *
 * It is custom actor logic rather than a machine, because it has counts but no states. Slots, ledger and history are changed in place. The snapshot
 * is a new frozen object after each event. Tasks are created with `createActor({ parent })`, because `spawn` copies the list of children at every
 * launch.
 */
import type { ActorLogic, ActorRefFrom, AnyActorRef } from 'xstate'
import { Admitter, TASK_ACTOR_PREFIX } from './admission.js'
import type { History } from './history.js'
import type { ChangeFeed } from './change-feed.js'
import type { Ledger } from './ledger.js'
import { BudgetTimes } from './parts/budget-times.js'
import { BudgetsPart } from './parts/budgets.js'
import { DeadlinesPart } from './parts/deadlines.js'
import { DeliveryPart } from './parts/delivery.js'
import { DependenciesPart } from './parts/dependencies.js'
import { DurableWaitsPart } from './parts/durable-waits.js'
import { FamiliesPart } from './parts/families.js'
import { ForegroundPart } from './parts/foreground.js'
import type { EventOf, Handlers, RegistryCore, RegistryPart, Scope } from './parts/part.js'
import { PausesPart } from './parts/pauses.js'
import { QuestionsPart } from './parts/questions.js'
import { ReservationsPart } from './parts/reservations.js'
import { SuspensionPart } from './parts/suspension.js'
import { SlotsPart } from './parts/slots.js'
import type { Settlement } from './records.js'
import type { RegistryAnswers, RegistryEffect, RegistryEvent, TaskReport } from './registry-events.js'
import type { RegistryOptions } from './registry-options.js'
import type { RegistryPhase, RegistrySnapshot } from './registry-snapshot.js'
import { StartQueue, type Due } from './start-queue.js'
import { isTerminal, type TaskEntry } from './task-entry.js'
import { notedRecord, requeuedRecord, startedRecord } from './task-record.js'
import { holdsSlot, wasStopped } from './task-status.js'

/** The events that XState sends to a parent when a child has ended. */
type ChildEnd =
  | { readonly type: `xstate.done.actor.${string}`; readonly actorId: string; readonly output: Settlement }
  | { readonly type: `xstate.error.actor.${string}`; readonly actorId: string; readonly error: unknown }

/** The actor logic of the registry, and what its transitions produce. */
export interface RegistryTransitions {
  readonly logic: RegistryLogic
  /** The effects to run after a transition, in order. Remove each effect before you run it. */
  readonly effects: RegistryEffect[]
  /** Returns and removes the answer to the last event. Undefined if that event has no answer. */
  readonly takeAnswer: () => unknown
  /** Whether the run of a task was asked to stop, and its task is left to the next process. */
  readonly isSuspended: (entry: TaskEntry) => boolean
}

export type RegistryLogic = ActorLogic<RegistrySnapshot, RegistryEvent | ChildEnd>
export type RegistryRef = ActorRefFrom<RegistryLogic>

export function createRegistryLogic(options: RegistryOptions): RegistryTransitions {
  const registry = new Registry(options)
  const logic: RegistryLogic = {
    getInitialSnapshot: () => registry.snapshot(),
    getPersistedSnapshot: (snapshot) => snapshot,
    transition: (snapshot, event, scope) => registry.transition(snapshot, event, scope),
  }
  return {
    logic,
    effects: registry.effects,
    takeAnswer: () => registry.takeAnswer(),
    isSuspended: (entry) => registry.isSuspended(entry),
  }
}

/** Events that change nothing that a snapshot contains, and after which no task starts. */
const QUIET: ReadonlySet<string> = new Set(['registry.suspend', 'task.note'] satisfies RegistryEvent['type'][])

type Answer = RegistryAnswers[keyof RegistryAnswers]

type OwnEvent = 'deadlines.due' | 'history.prune' | 'registry.dispose' | 'retries.due' | 'task.note' | 'task.requeue'

class Registry implements RegistryCore {
  readonly ledger: Ledger
  readonly history: History
  readonly changes: ChangeFeed
  readonly queue: StartQueue
  readonly elapsed: () => number
  readonly effects: RegistryEffect[] = []
  readonly #options: RegistryOptions
  readonly #admitter: Admitter
  readonly #parts: readonly RegistryPart[]
  readonly #suspension: SuspensionPart
  readonly #handlers: Handlers<RegistryEvent['type']>
  #answer: Answer
  #isDisposed = false

  constructor(options: RegistryOptions) {
    const { active, elapsed, families, onNoted, onSpent, task, onLaunched } = options
    this.#options = options
    this.ledger = options.ledger
    this.history = options.history
    this.changes = options.changes
    this.elapsed = elapsed
    this.queue = new StartQueue({
      pools: options.slots,
      named: options.limits,
      elapsed,
      // A durable task that has begun must not fail because of a wait, because its saved work would be lost.
      mayWaitOn: (entry) => active.hasBegun(entry),
      waitsFor: (entry, other) => options.waitsFor?.(entry, other) === true,
      onCounted: options.onCounted,
    })
    const times = new BudgetTimes()
    const deadlines = new DeadlinesPart(this, { times, active, onNoted })
    const budgets = new BudgetsPart(this, { times, deadlines, onSpent, onNoted })
    const pauses = new PausesPart(this, options.pauses, options.onWaiting)
    const foreground = new ForegroundPart(this)
    const family = new FamiliesPart(this, { families, active })
    const dependencies = new DependenciesPart(this, { onEnded: options.onEnded, onNoted })
    const questions = new QuestionsPart(this, active, onNoted)
    const reservations = new ReservationsPart(this)
    const slots = new SlotsPart(this, options.expiry)
    this.#suspension = new SuspensionPart(this, onNoted)
    this.#parts = [pauses, foreground, family, deadlines, slots, budgets, dependencies, questions, reservations]
    this.#admitter = new Admitter({
      core: this,
      parts: this.#parts,
      active,
      task,
      onLaunched,
      report: (self, report) => this.#report(self, report),
      begin: (entry, timeoutMs) => this.#begin(entry, timeoutMs),
    })
    this.#handlers = {
      ...this.#on,
      ...this.#admitter.on,
      ...pauses.on,
      ...foreground.on,
      ...family.on,
      ...deadlines.on,
      ...slots.on,
      ...budgets.on,
      ...dependencies.on,
      ...questions.on,
      ...reservations.on,
      ...this.#suspension.on,
      ...new DeliveryPart(this).on,
      ...new DurableWaitsPart(this).on,
    }
  }

  readonly #on: Handlers<OwnEvent> = {
    'task.note': ({ entry, fields }) => {
      if (!holdsSlot(entry.record.status)) return
      entry.record = notedRecord(entry.record, fields)
      this.#options.onNoted?.(entry)
    },
    'task.requeue': (event, { defer }) => {
      const { ref } = event.entry
      this.#requeue(event)
      defer(() => ref?.send({ type: 'task.queue' }))
    },
    'history.prune': () => {
      this.prune()
    },
    'deadlines.due': (_event, scope) => {
      const now = this.elapsed()
      for (const part of this.#parts) part.due?.(now, scope)
    },
    'retries.due': () => undefined,
    'registry.dispose': () => {
      this.#isDisposed = true
    },
  }

  transition(snapshot: RegistrySnapshot, event: RegistryEvent | ChildEnd, scope: Scope): RegistrySnapshot {
    if (snapshot.status !== 'active') return snapshot
    if ('actorId' in event) {
      if (this.#isDisposed) return snapshot
      this.#endTask(event)
    } else {
      if (!this.#suspension.accepts(event, this.#isDisposed)) return snapshot
      this.#handle(event, scope)
    }
    if (QUIET.has(event.type)) return snapshot
    if (!this.#isDisposed) this.startNext(scope)
    return this.snapshot()
  }

  isSuspended(entry: TaskEntry): boolean {
    return this.#suspension.has(entry)
  }

  takeAnswer(): unknown {
    const answer = this.#answer
    this.#answer = undefined
    return answer
  }

  snapshot(): RegistrySnapshot {
    const { history, changes, ledger, queue } = this
    const slots = queue.pools.task
    const deadline = this.#nextDeadline()
    const start = queue.nextStart
    return Object.freeze({
      status: this.#isDisposed && !this.#suspension.isOpen ? 'done' : 'active',
      output: undefined,
      error: undefined,
      phase: this.#phase(),
      max: slots.max,
      running: ledger.countOf('running'),
      slots: slots.inUse,
      reservations: slots.reserved,
      owed: ledger.countOf('owed'),
      leased: ledger.countOf('leased'),
      retained: history.size,
      seq: changes.seq,
      nextDeadlineAt: deadline?.at,
      nextDeadlineOf: deadline?.entry?.record.id,
      nextRetryAt: start?.at,
      nextRetryOf: start?.entry?.record.id,
    })
  }

  startNext(scope: Scope): void {
    for (let entry = this.queue.startNext(); entry !== undefined; entry = this.queue.startNext()) {
      // A run that has given back its slots is still running while it waits for them.
      if (holdsSlot(entry.record.status)) this.proceed(entry)
      else this.#start(entry, scope)
    }
  }

  waits(entry: TaskEntry): void {
    const now = this.elapsed()
    this.#options.active.stop(entry, now)
    for (const part of this.#parts) part.waits?.(entry, now)
  }

  proceed(entry: TaskEntry): void {
    const { active } = this.#options
    // The run may already be working, because an earlier run may have begun the wait that is over now.
    if (entry.graceMs !== undefined && !active.isWorking(entry)) {
      const now = this.elapsed()
      const limitMs = leftOf(entry.record.timeoutMs, active.begin(entry, now))
      for (const part of this.#parts) part.proceed?.(entry, now, limitMs)
    }
    this.effects.push({ type: 'resumed', entry })
  }

  ownerChanged(owner: string): void {
    for (const part of this.#parts) part.ownerChanged?.(owner)
  }

  prune(): void {
    for (let entry = this.history.prune(); entry !== undefined; entry = this.history.prune()) this.changes.pruned(entry)
  }

  #handle(event: RegistryEvent, scope: Scope): void {
    const handle = this.#handlers[event.type] as (event: RegistryEvent, scope: Scope) => Answer
    const answer = handle(event, scope)
    // An event without an answer may come between a question and the call that takes its answer.
    if (answer !== undefined) this.#answer = answer
  }

  #phase(): RegistryPhase {
    const { task } = this.queue.pools
    if (this.#isDisposed) return 'disposed'
    return task.isOverLimit() ? 'draining' : task.hasRoom() ? 'available' : 'full'
  }

  /** Returns the next time limit and its task. There is no task if the limit is the expiry of a reservation. */
  #nextDeadline(): Due | undefined {
    let first: Due | undefined
    for (const part of this.#parts) {
      const next = part.next?.()
      if (next !== undefined && (first === undefined || next.at < first.at)) first = next
    }
    return first
  }

  /** Starts the time limits of a run. */
  #begin(entry: TaskEntry, timeoutMs: number | undefined): void {
    const now = this.elapsed()
    const limitMs = leftOf(timeoutMs, this.#options.active.begin(entry, now))
    for (const part of this.#parts) part.begin?.(entry, now, limitMs)
  }

  #start(entry: TaskEntry, { defer }: Scope): void {
    const { ref, record } = entry
    const now = this.changes.now()
    this.#begin(entry, record.timeoutMs)
    this.ledger.move(entry, startedRecord(entry.record, this.changes.next(), now), now)
    this.effects.push({ type: 'started', entry })
    defer(() => ref?.send({ type: 'task.start' }))
  }

  stop(entry: TaskEntry, isLast: boolean): void {
    const now = this.elapsed()
    this.#options.active.stop(entry, now)
    for (const part of this.#parts) part.stop?.(entry, now, isLast)
  }

  /** Handles the end of a run that another run follows. The task waits for a slot again, at its old position. */
  #requeue(event: EventOf<'task.requeue'>): void {
    const { entry, ticket, delayMs, graceMs, error, abortController, keepsAttempt = false } = event
    const slots = this.queue.leave(entry)
    const endedAt = this.changes.now()
    this.stop(entry, false)
    entry.graceMs = graceMs
    this.queue.join(entry, slots, { ticket, delayMs, reasons: this.#admitter.holdReasons(entry.record) })
    const questions = this.#options.active.has(entry) ? entry.record.questions : undefined
    const change = { seq: this.changes.next(), endedAt, error, abortController, questions, keepsAttempt }
    this.ledger.move(entry, requeuedRecord(entry.record, change), endedAt)
  }

  #endTask(event: ChildEnd): void {
    const { actorId } = event
    if (!actorId.startsWith(TASK_ACTOR_PREFIX)) return
    const entry = this.history.get(actorId.slice(TASK_ACTOR_PREFIX.length))
    if (entry === undefined || isTerminal(entry.record)) return
    const settlement: Settlement =
      'output' in event ? event.output : { status: 'failed', ...this.#options.describeError(event.error) }
    entry.ref = undefined
    this.stop(entry, true)
    this.queue.end(entry)
    const isStopped = wasStopped(settlement.status)
    this.ledger.end(entry, settlement, isStopped ? undefined : this.#options.families.liveChildren(entry))
    if (isStopped) this.effects.push({ type: 'cancelled', entry, reason: entry.record.cancelReason })
    for (const part of this.#parts) part.ended?.(entry, settlement)
  }

  #report(self: AnyActorRef, report: TaskReport): void {
    // The actors of tasks that the next process continues are not stopped.
    if (!this.#isDisposed) self.send(report)
  }
}

/** Returns the time that is left of a limit, in ms. */
function leftOf(limitMs: number | undefined, ranMs: number): number | undefined {
  return limitMs === undefined ? undefined : Math.max(0, limitMs - ranMs)
}
