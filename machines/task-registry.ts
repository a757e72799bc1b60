/**
 * The parent of the actors of all tasks. It registers tasks, keeps their records and the ledger, and prunes.
 *
 * R1  Launched tasks and reservations never exceed the maximum. There are two exceptions: the maximum is lowered while tasks run, or a call no longer
 *     waits for its foreground task, which continues in the background.
 * R2  A task with the id of a kept record is never registered.
 * R3  A task that ends leaves a frozen record in the same transition, and its actor is released.
 * R4  An entry is in at most one lease, and an owner has at most one exclusive lease (ledger.ts).
 * R5  A record is pruned only if its result is not owed and the handlers of its end have run. Such records are pruned in the order in which the tasks
 *     ended.
 * R6  Every change gets a number, and the host is notified in the order of the numbers. No host code runs inside a transition.
 * R7  A disposed registry no longer changes.
 * R8  A free slot goes to the next waiting task in the transition that frees it. New tasks cannot overtake a waiting task.
 *
 * It is custom actor logic rather than a machine, because it has counts but no states. Slots, ledger and history are changed in place. The snapshot
 * is a new frozen object after each event. Tasks are created with `createActor({ parent })`, because `spawn` copies the list of children at every
 * launch.
 */
import { createActor, type ActorLogic, type ActorRefFrom, type AnyActorRef } from 'xstate'
import type { AsyncTaskHost, AsyncTaskInput, AsyncTaskMachine } from './async-task.js'
import type { ActiveTimes } from './active-times.js'
import { DueTimes } from './due-times.js'
import { runOfOwner, type Families } from './families.js'
import type { History } from './history.js'
import type { Journal } from './journal.js'
import type { Ledger } from './ledger.js'
import { PerTask } from './per-task.js'
import type { Pauses } from './pauses.js'
import { BudgetTimes, type TimeBudget } from './budget-times.js'
import type {
  AsyncTaskInfo,
  QueueTicket,
  Settlement,
  StartRate,
  TaskAdmission,
  TaskBudget,
  TaskFailure,
  TaskNeeds,
} from './records.js'
import type {
  Admission,
  AdmissionRefusal,
  Detachment,
  RegistryAnswers,
  RegistryEffect,
  RegistryEvent,
  TaskReport,
  WaitEvent,
} from './registry-events.js'
import type { RegistryPhase, RegistrySnapshot } from './registry-snapshot.js'
import { Slots, type SlotPools } from './slots.js'
import type { TaskLimits } from './task-limits.js'
import { isBefore, type HoldReason } from './task-queue.js'
import { addSpent, budgetMessage, overspent, type Spending } from './spending.js'
import { endedLease, isTerminal, type TaskEntry } from './task-entry.js'
import {
  admittedRecord,
  backgroundRecord,
  changedRecord,
  notedRecord,
  requeuedRecord,
  startedRecord,
  waitingRecord,
  withQuestions,
} from './task-record.js'
import { holdsSlot } from './task-status.js'

/** The events that XState sends to a parent when a child has ended. */
type ChildEnd =
  | { readonly type: `xstate.done.actor.${string}`; readonly actorId: string; readonly output: Settlement }
  | { readonly type: `xstate.error.actor.${string}`; readonly actorId: string; readonly error: unknown }

/** The parts of a registry. They are changed in place, but only in its transitions. */
export interface RegistryParts {
  readonly slots: SlotPools
  readonly limits: TaskLimits
  readonly ledger: Ledger
  readonly history: History
  readonly families: Families
  readonly pauses: Pauses
  /** How long durable tasks have worked. */
  readonly active: ActiveTimes
  readonly journal: Journal
  readonly task: AsyncTaskMachine
  /** Returns the time of the clock for deadlines, in ms. This clock is never set back. */
  readonly elapsed: () => number
  /** Called when a task is registered. */
  readonly onLaunched?: (entry: TaskEntry, admission: TaskAdmission) => void
  /** The error of a task that has waited too long for a slot. */
  readonly expiry: TaskFailure
  /** Called when a task has used something, and when a task with earlier usage is restored. */
  readonly onSpent?: (owner: string, amount: Spending) => void
  /** Called when an owner is released. Its tasks pass to `heir`, or to nobody. */
  readonly onReleased?: (owner: string, heir: string | undefined) => void
  /** Called when a task ends. Its run may still be going on. `apply` changes tasks that wait for it, in the same transition. */
  readonly onEnded?: (entry: TaskEntry, apply: (event: WaitEvent) => void) => void
  /** Called when a task waits for a slot again after a pause. `waitedMs` is how long it had waited before the pause. */
  readonly onWaiting?: (entry: TaskEntry, waitedMs: number) => void
  /** Called when a record has changed without a change of state, for example by a question. Subscribers get no event of it; the store uses this call. */
  readonly onNoted?: (entry: TaskEntry) => void
  /** Whether `entry` cannot continue before `other` has ended. */
  readonly waitsFor?: (entry: TaskEntry, other: TaskEntry) => boolean
  /** Called when a start was counted. `names` are the subagents whose counted starts have changed. */
  readonly onCounted?: (rate: StartRate, names: readonly string[]) => void
  readonly describeError: (error: unknown) => TaskFailure
}

/** The actor logic of the registry, and what its transitions produce. */
export interface RegistryCore {
  readonly logic: RegistryLogic
  /** The effects to run after a transition, in order. Remove each effect before you run it. */
  readonly effects: RegistryEffect[]
  /** Returns and removes the answer to the last event. Undefined if that event has no answer. */
  readonly takeAnswer: () => unknown
}

export type RegistryLogic = ActorLogic<RegistrySnapshot, RegistryEvent | ChildEnd>
export type RegistryRef = ActorRefFrom<RegistryLogic>

const TASK_ACTOR_PREFIX = 'task.'

export function createRegistryLogic(parts: RegistryParts): RegistryCore {
  const { ledger, history, families, pauses, active, journal, task, elapsed, limits } = parts
  const effects: RegistryEffect[] = []
  let answer: RegistryAnswers[keyof RegistryAnswers]
  let host: AsyncTaskHost | undefined
  /** Where tasks that need no slot wait for their next runs. */
  const slotless = new Slots(-1, elapsed, {
    max: Infinity,
    maxBytes: Infinity,
    maxWaitMs: undefined,
    agingMs: parts.slots.task.queue.limits.agingMs,
  })
  const { foreground } = parts.slots
  const pools = (): Slots[] => [...parts.slots.all(), foreground, slotless]
  const slots = parts.slots.task
  /** The deadlines of running tasks, and the wait limits of waiting tasks. */
  const deadlines = new DueTimes<TaskEntry>()
  /** When the back-offs of retries end. */
  const delays = new DueTimes<TaskEntry>()
  /** How long each paused task had waited for a slot before the pause, in ms. */
  const waited = new PerTask<number>()
  const budgets = new BudgetTimes()
  /** The slots that runs have given back while they wait. */
  const lent = new PerTask<LentSlots>()

  const phase = (): RegistryPhase => (slots.isOverLimit() ? 'draining' : slots.hasRoom() ? 'available' : 'full')

  /** Returns the next time limit and its task. There is no task if the limit is the expiry of a reservation. */
  const nextDeadline = (): { readonly at: number | undefined; readonly of: TaskEntry | undefined } => {
    const [limit, spent] = [deadlines.next, budgets.next]
    const ofTask = earliest(limit, spent)
    const at = pools().reduce((first, { nextExpiry }) => earliest(first, nextExpiry), ofTask)
    return { at, of: at !== ofTask ? undefined : at === limit ? deadlines.nextKey : budgets.nextEntry }
  }

  const snapshotOf = (status: 'active' | 'done', present: RegistryPhase): RegistrySnapshot => {
    const next = nextDeadline()
    const retry = nextRetry()
    return Object.freeze({
      status,
      output: undefined,
      error: undefined,
      phase: present,
      max: slots.max,
      running: ledger.countOf('running'),
      slots: slots.inUse,
      reservations: slots.reserved,
      owed: ledger.countOf('owed'),
      leased: ledger.countOf('leased'),
      retained: history.size,
      seq: journal.seq,
      nextDeadlineAt: next.at,
      nextDeadlineOf: next.of?.record.id,
      nextRetryAt: retry?.at,
      nextRetryOf: retry?.entry?.record.id,
    })
  }

  /** Returns the next time at which a back-off ends or a start rate lets a task start, and that task. */
  const nextRetry = (): { readonly at: number; readonly entry: TaskEntry | undefined } | undefined => {
    const { nextStart: ofRate } = limits
    const { next: at, nextKey: entry } = delays
    return at === undefined || (ofRate !== undefined && ofRate.at < at) ? ofRate : { at, entry }
  }

  const refusalOf = (
    { id, ticket }: TaskAdmission,
    reservationId: string | undefined,
    waitsIn: Slots | undefined,
  ): AdmissionRefusal | undefined => {
    if (history.get(id) !== undefined) return 'id-in-use'
    if (reservationId !== undefined && !slots.hasReservation(reservationId)) return 'no-reservation'
    if (waitsIn === undefined) return undefined
    if (ticket === undefined) return 'no-room'
    return waitsIn.queue.hasRoom(ticket.bytes) ? undefined : 'queue-full'
  }

  /** Whether the result of a task can still reach its owner. If the owner is the run of an ended task, it cannot. */
  const hasReader = ({ record: { owner } }: TaskEntry): boolean => {
    const runId = runOfOwner(owner)
    return runId === undefined || history.get(runId)?.ref !== undefined
  }

  /** Starts the time limits of a run. */
  const begin = (entry: TaskEntry, timeoutMs: number | undefined): void => {
    const now = elapsed()
    const ranMs = active.begin(entry, now)
    if (timeoutMs !== undefined) deadlines.set(entry, now + Math.max(0, timeoutMs - ranMs))
    budgets.start(entry, now)
  }

  /** Puts a task into a queue. It waits for a slot as soon as its delay has passed and no other reason holds it. */
  const enqueue = (
    entry: TaskEntry,
    slots: Slots,
    ticket: QueueTicket,
    { delayMs = 0, waitedMs = 0, isHeld = false, isWaiting = false }: EnqueueOptions,
  ): void => {
    const reasons: HoldReason[] = []
    if (isWaiting) reasons.push('wait')
    if (delayMs > 0) reasons.push('delay')
    if (isHeld) reasons.push('dependencies')
    if (pauses.concern(entry.record.owner)) {
      reasons.push('pause')
      waited.set(entry, waitedMs)
    }
    slots.queue.add(entry, ticket, reasons)
    if (delayMs > 0) delays.set(entry, elapsed() + delayMs)
    if (reasons.length === 0) waitForSlots(entry, slots, waitedMs)
  }

  /** Removes a reason to hold a task in the queue. If there is no other reason, the task waits for slots. */
  const releasePlace = (entry: TaskEntry, reason: HoldReason): void => {
    for (const slots of pools()) {
      if (!slots.queue.release(entry, reason)) continue
      const waitedMs = waited.take(entry) ?? 0
      waitForSlots(entry, slots, waitedMs)
      if (reason === 'pause') parts.onWaiting?.(entry, waitedMs)
    }
  }

  /** Holds or releases the queued tasks of an owner, or of all owners, as the pauses say. The time of a pause does not count as waiting for a slot. */
  const applyPauses = (owner?: string): void => {
    for (const entry of ledger.queued(owner)) {
      if (!pauses.concern(entry.record.owner)) {
        releasePlace(entry, 'pause')
        continue
      }
      for (const { queue } of pools()) {
        if (!queue.hold(entry, 'pause')) continue
        const [at, { maxWaitMs = 0 }] = [deadlines.timeOf(entry), queue.limits]
        waited.set(entry, at === undefined ? 0 : maxWaitMs - (at - elapsed()))
        deadlines.delete(entry)
        limits.leave(entry)
      }
    }
  }

  /** Passes the tasks that a run has launched to the owner of its task. That owner may be paused, so the pauses are applied to these tasks. */
  const releaseFamily = (entry: TaskEntry): void => {
    if (families.release(entry)) applyPauses(entry.record.owner)
  }

  /**
   * Lets a task that is not held wait for its slots. If it needs only a slot of its pool, the time limit of that wait begins.
   * @param waitedMs how long it has already waited, in ms
   */
  const waitForSlots = (entry: TaskEntry, slots: Slots, waitedMs: number): void => {
    const place = slots.queue.placeOf(entry)
    const needs = place?.ticket.needs
    if (place === undefined || needs === undefined) limitWait(entry, slots, waitedMs)
    else limits.wait(place, slots, needs, elapsed() - waitedMs)
  }

  /** @param waitedMs how long the task has already waited, in ms */
  const limitWait = (entry: TaskEntry, { queue }: Slots, waitedMs = 0): void => {
    const { maxWaitMs } = queue.limits
    // A durable task that has begun must not fail because of a wait, because its saved work would be lost.
    if (maxWaitMs === undefined || active.hasBegun(entry)) return
    deadlines.set(entry, elapsed() + Math.max(0, maxWaitMs - waitedMs))
  }

  /** Starts waiting tasks while there are slots. Tasks whose back-off ends now take part. */
  const startNext = (scope: Deferring): void => {
    endDelays()
    for (let next = nextStart(); next !== undefined; next = nextStart()) start(next.entry, next.slots, scope)
  }

  /** Returns the next task to start. A task that needs named slots goes before the tasks that follow it in the queue of its pool. */
  const nextStart = (): { readonly entry: TaskEntry; readonly slots: Slots } | undefined => {
    const limited = nextLimited()
    for (const slots of pools()) {
      const entry = nextOf(slots)
      const place = entry && slots.queue.placeOf(entry)
      if (place !== undefined && !(limited?.slots === slots && isBefore(limited, place))) return { ...place, slots }
    }
    return limited
  }

  const nextLimited = () =>
    limits.isIdle
      ? undefined
      : limits.next({
          now: elapsed(),
          waitsFor: (entry, other) => parts.waitsFor?.(entry, other) === true,
          onLooked: (entry, slots, isOnlySlot) => {
            if (!isOnlySlot) deadlines.delete(entry)
            else if (!deadlines.has(entry)) limitWait(entry, slots)
          },
        })

  const takeNamed = (entry: TaskEntry, needs: TaskNeeds | undefined): void => {
    if (needs === undefined) return
    limits.take(entry, needs)
    const { rate } = needs
    if (rate !== undefined) parts.onCounted?.(rate, limits.rates.count(rate.name, rate, elapsed()))
  }

  const start = (entry: TaskEntry, slots: Slots, scope: Deferring): void => {
    const { ref } = entry
    const now = journal.now()
    takeNamed(entry, slots.queue.placeOf(entry)?.ticket.needs)
    limits.leave(entry)
    slots.queue.remove(entry)
    slots.take(entry, true)
    deadlines.delete(entry)
    if (lent.take(entry) !== undefined) {
      work(entry)
      return
    }
    begin(entry, entry.record.timeoutMs)
    ledger.move(entry, startedRecord(entry.record, journal.next(), now), now)
    effects.push({ type: 'started', entry })
    scope.defer(() => ref?.send({ type: 'task.start' }))
  }

  /** Continues a run whose wait is over. Its time limits continue too. */
  const work = (entry: TaskEntry): void => {
    const { graceMs, record } = entry
    // The run may already be working, because an earlier run may have begun the wait that is over now.
    if (graceMs !== undefined && !active.isWorking(entry)) {
      const now = elapsed()
      const ranMs = active.begin(entry, now)
      if (record.timeoutMs !== undefined) deadlines.set(entry, now + Math.max(0, record.timeoutMs - ranMs))
      budgets.resume(entry, now)
    }
    effects.push({ type: 'resumed', entry })
  }

  /** Suspends the time limits of a run that only waits. If it may give back its slots, they are freed. */
  const pauseRun = ({ entry, ticket }: EventOf<'run.waits'>): void => {
    // While a run is being stopped, its grace period must go on.
    if (!holdsSlot(entry.record.status) || entry.graceMs === undefined) return
    const now = elapsed()
    active.stop(entry, now)
    deadlines.delete(entry)
    budgets.pause(entry, now)
    if (ticket === undefined || entry.record.isForeground === true) return
    const [pool] = pools().filter((each) => each.release(entry))
    const needs = limits.lend(entry)
    if (pool !== undefined || needs !== undefined) lent.set(entry, { pool: pool ?? slotless, needs, ticket })
  }

  /**
   * Handles the end of a run's wait. If the run has given back its slots, it waits for them again. The limits of the queue do not apply to that wait.
   */
  const workOn = (entry: TaskEntry): void => {
    const { record } = entry
    if (!holdsSlot(record.status)) {
      releasePlace(entry, 'wait')
      return
    }
    const slots = lent.get(entry)
    if (slots === undefined) {
      work(entry)
      return
    }
    const { pool, needs, ticket } = slots
    if (pool.queue.placeOf(entry) !== undefined) return
    const { needs: _, ...rest } = ticket
    pool.queue.add(entry, needs === undefined ? rest : { ...rest, needs })
    const place = pool.queue.placeOf(entry)
    if (place !== undefined && needs !== undefined) limits.wait(place, pool, needs, elapsed())
  }

  /** Handles the end of a run that another run follows. The task waits for a slot again, at its old position. */
  const requeue = ({ entry, ticket, delayMs, graceMs, error, abortController }: EventOf<'task.requeue'>): void => {
    const given = lent.take(entry)
    for (const { queue } of pools()) queue.remove(entry)
    limits.leave(entry)
    const [slots = given?.pool ?? slotless] = pools().filter((pool) => pool.release(entry))
    limits.release(entry)
    const endedAt = journal.now()
    deadlines.delete(entry)
    countRun(entry)
    entry.graceMs = graceMs
    enqueue(entry, slots, ticket, { delayMs })
    // The children of a durable task belong to its next run too.
    if (!active.has(entry)) releaseFamily(entry)
    const questions = active.has(entry) ? entry.record.questions : undefined
    const change = { seq: journal.next(), endedAt, error, abortController, questions }
    ledger.move(entry, requeuedRecord(entry.record, change), endedAt)
  }

  const countRun = (entry: TaskEntry): void => {
    const now = elapsed()
    active.stop(entry, now)
    const ranMs = budgets.stop(entry, now)
    if (ranMs !== undefined) spend(entry, { seconds: ranMs / 1000 - (entry.record.spent?.seconds ?? 0) })
  }

  const spend = (entry: TaskEntry, amount: Spending): void => {
    entry.record = changedRecord(entry.record, { spent: addSpent(entry.record.spent, amount) })
    parts.onSpent?.(entry.record.owner, amount)
  }

  /** Counts the usage of a restored task for its owner. */
  const restoreSpent = ({ owner, spent }: AsyncTaskInfo): void => {
    if (spent !== undefined) parts.onSpent?.(owner, spent)
  }

  const checkBudget = ({ record, ref }: TaskEntry, scope: Deferring): void => {
    const message = overspent(record.budget, record.spent)
    if (message !== undefined) scope.defer(() => ref?.send({ type: 'budget.exceeded', message }))
  }

  /** Returns the effects of the actors of tasks. Each effect sends an event to the registry, so that each report is a transition of its own. */
  const hostOf = (self: AnyActorRef): AsyncTaskHost => {
    const report = (event: TaskReport): void => self.send(event)
    return (host ??= {
      requestAbort: (taskId, excess) => report({ type: 'task.stopping', taskId, excess }),
      requestWrapUp: (taskId, excess) => report({ type: 'task.wrapping', taskId, excess }),
      setQuestions: (taskId, questions) => report({ type: 'task.questions', taskId, questions }),
    })
  }

  const createTask = (identity: TaskIdentity, parent: AnyActorRef, asked?: AskedBefore): TaskRef => {
    const { id, subagentName, timeoutMs } = identity
    const input = { id, subagentName, host: hostOf(parent), ...(timeoutMs !== undefined && { timeoutMs }), ...asked }
    return createActor(task, { id: TASK_ACTOR_PREFIX + id, input, parent })
  }

  const admit = (
    { admission, isLaunched, reservationId, parent: launching }: EventOf<'task.register'>,
    parent: AnyActorRef,
  ): Admission => {
    const { timeoutMs, graceMs, isForeground, isNote = false, pool, depth, ticket, budget } = admission
    const slots = parts.slots.of(pool, depth)
    const isPaused = isLaunched && pauses.concern(admission.owner)
    const isHeld = admission.waitsFor !== undefined
    const needs = ticket?.needs
    // A command takes a slot of its pool even in the foreground.
    const isSlotless = isNote || (isForeground === true && pool !== 'command')
    const isLimited = isHeld || (needs !== undefined && !limits.hasRoom(needs, elapsed()))
    const waits =
      isLimited ||
      (isPaused && isForeground !== true) ||
      (isLaunched && !isSlotless && reservationId === undefined && !slots.hasRoom())
    const isCounted = isSlotless && !isNote && launching === undefined
    const waitsIn = !isSlotless ? slots : isCounted ? foreground : slotless
    const refusal =
      refusalOf(admission, reservationId, waits ? waitsIn : undefined) ??
      (isPaused && isForeground === true ? 'paused' : undefined) ??
      (isCounted && !foreground.hasRoom() ? 'no-foreground-room' : undefined) ??
      (launching && families.refusalOf(launching))
    if (refusal !== undefined) return { refusal }
    const seq = journal.next()
    const status = waits ? 'queued' : 'running'
    const record = admittedRecord(admission, { status, seq, launchedAt: journal.now() })
    const isDurable = admission.isDurable === true
    const entry = newEntry(record, createTask(admission, parent, isDurable ? { isDurable } : undefined), graceMs)
    if (reservationId !== undefined) parts.slots.task.cancelReservation(reservationId)
    history.add(entry)
    if (isDurable) active.add(entry)
    if (budget !== undefined) budgets.add(entry, timesOf(budget), 0)
    if (waits && ticket !== undefined) {
      enqueue(entry, waitsIn, ticket, { isHeld })
    } else {
      takeNamed(entry, needs)
      if (!isSlotless) slots.take(entry, isLaunched)
      else if (isCounted) foreground.take(entry, isLaunched)
      begin(entry, timeoutMs)
    }
    ledger.add(entry)
    families.add(entry)
    parts.onLaunched?.(entry, admission)
    journal.status(entry, null)
    return { entry }
  }

  const end = (entry: TaskEntry | undefined, settlement: Settlement): void => {
    if (entry === undefined || isTerminal(entry.record)) return
    entry.ref = undefined
    deadlines.delete(entry)
    delays.delete(entry)
    countRun(entry)
    budgets.delete(entry)
    lent.take(entry)
    for (const pool of pools()) {
      pool.end(entry)
      pool.queue.remove(entry)
    }
    limits.leave(entry)
    const isCancelled = settlement.status === 'cancelled'
    ledger.end(entry, settlement, isCancelled ? undefined : families.liveChildren(entry))
    releaseFamily(entry)
    if (isCancelled) effects.push({ type: 'cancelled', entry, reason: settlement.cancelReason })
    parts.onEnded?.(entry, applyWait)
  }

  /** Handles what the actor of a task reports. */
  const note = (report: TaskReport): void => {
    const entry = history.get(report.taskId)
    if (entry === undefined) return
    switch (report.type) {
      case 'task.questions':
        if (isTerminal(entry.record) || !(holdsSlot(entry.record.status) || active.has(entry))) return
        entry.record = withQuestions(entry.record, report.questions)
        journal.questions(entry)
        ledger.questions.update(entry)
        if (active.has(entry)) parts.onNoted?.(entry)
        return
      case 'task.wrapping':
        budgets.wrapUp(entry, elapsed())
        journal.limit(entry, 'wrapping')
        effects.push({ type: 'wrapping', entry, excess: report.excess })
        return
      case 'task.stopping':
        journal.limit(entry, 'stopping')
        effects.push({ type: 'stopping', entry, excess: report.excess })
    }
  }

  const restore = (record: AsyncTaskInfo, deliveryId: string | undefined): void => {
    const entry = newEntry(record, undefined, 0)
    if (deliveryId !== undefined && record.delivery === 'delivered') entry.lease = endedLease(deliveryId)
    entry.pruning = 'handled'
    journal.continueAfter(record.seq)
    history.add(entry)
    ledger.add(entry)
    families.add(entry)
    restoreSpent(record)
  }

  /** Continues a task of an earlier process. */
  const resume = (event: EventOf<'task.resume'>, parent: AnyActorRef): TaskEntry => {
    const { record, graceMs, ranMs, remainingMs, delayMs, waitedMs, pool, ticket, place, prepare } = event
    const { isHeld, isWaiting = false, durable } = event
    const { budget, spent, questions = [] } = record
    const before = durable && { isDurable: true, questions, asked: durable.asked }
    const entry = newEntry(record, createTask(record, parent, before), graceMs, place)
    const slots = parts.slots.of(pool, record.depth)
    journal.continueAfter(record.seq)
    history.add(entry)
    if (durable !== undefined) active.add(entry, durable.activeMs)
    if (budget !== undefined) budgets.add(entry, timesOf(budget), (spent?.seconds ?? 0) * 1000 + ranMs)
    if (record.status === 'queued') {
      enqueue(entry, slots, ticket, { delayMs, waitedMs, isHeld, isWaiting })
    } else {
      slots.take(entry, true)
      if (ticket.needs !== undefined) limits.take(entry, ticket.needs)
      begin(entry, remainingMs)
    }
    ledger.add(entry)
    ledger.questions.update(entry, durable?.standings)
    families.add(entry)
    restoreSpent(record)
    prepare(entry)
    return entry
  }

  /** Moves a foreground task to the background, where it needs a slot of its pool. */
  const detach = ({ entry, mayExceed }: EventOf<'task.detach'>): Detachment => {
    const { record } = entry
    if (isTerminal(record)) return 'ended'
    if (record.isForeground !== true) return 'background'
    const slots = parts.slots.ofTask(record)
    const holdsNone = holdsSlot(record.status) && !slots.holds(entry)
    const exceeds = holdsNone && !slots.hasRoom()
    if (exceeds && !mayExceed) return 'no-room'
    if (holdsNone) slots.take(entry, true)
    // A task that exceeds the maximum of its pool also keeps its foreground slot. So the limit of foreground tasks bounds the number of such tasks.
    if (!exceeds) foreground.release(entry)
    // A task between two runs now waits for a slot of its pool.
    const hasMoved = [foreground, slotless].some(({ queue }) => queue.moveTo(slots.queue, entry))
    if (hasMoved && !slots.queue.isHeld(entry)) limitWait(entry, slots)
    limits.move(entry, slots)
    entry.record = backgroundRecord(record)
    journal.detached(entry)
    return 'detached'
  }

  /** Handles the deadlines that have passed. Free slots are given to waiting tasks before the time limits of waiting tasks are checked. */
  const takeDue = (scope: Deferring): (() => void)[] => {
    const now = elapsed()
    const due: TaskEntry[] = []
    for (let entry = deadlines.take(now); entry !== undefined; entry = deadlines.take(now)) due.push(entry)
    const running = due.filter(({ record }) => holdsSlot(record.status))
    const overdue = due.filter(({ record }) => !holdsSlot(record.status))
    startNext(scope)
    return [
      ...running.map((entry) => {
        const { ref, graceMs } = entry
        budgets.conclude(entry)
        // Even a grace period of 0 ms ends only when the timer fires again, so the run is asked to stop first.
        if (graceMs !== undefined) deadlines.set(entry, now + graceMs)
        entry.graceMs = undefined
        return () => ref?.send({ type: graceMs === undefined ? 'grace.passed' : 'deadline.passed' })
      }),
      ...overdue
        .filter(({ record }) => !holdsSlot(record.status))
        .map(
          ({ ref }) =>
            () =>
              ref?.send({ type: 'task.fail', ...parts.expiry }),
        ),
    ]
  }

  /** Releases the tasks whose back-offs are over, so that they may start. */
  const endDelays = (): void => {
    if (delays.size === 0) return
    const now = elapsed()
    for (let entry = delays.take(now); entry !== undefined; entry = delays.take(now)) releasePlace(entry, 'delay')
  }

  const applyWait = (event: WaitEvent): void => {
    const { entry } = event
    if (entry.record.status !== 'queued') return
    if (event.type === 'task.unmet') {
      effects.push({ type: 'unmet', entry, failure: event.failure })
      return
    }
    entry.record = waitingRecord(entry.record, event.ids)
    parts.onNoted?.(entry)
    if (event.ids.length === 0) releasePlace(entry, 'dependencies')
  }

  /** Returns the events for tasks whose time limit has passed or whose time to conclude is over. */
  const takeSpent = (): (() => void)[] => {
    const now = elapsed()
    const sends: (() => void)[] = []
    for (let due = budgets.take(now); due !== undefined; due = budgets.take(now)) {
      const { entry, isWrapping } = due
      const { ref, graceMs } = entry
      if (!isWrapping) {
        const { budget, spent } = entry.record
        const message = budgetMessage('seconds', budget?.seconds ?? 0, spent)
        sends.push(() => ref?.send({ type: 'budget.exceeded', message }))
      } else if (graceMs !== undefined) {
        entry.graceMs = undefined
        deadlines.set(entry, now + graceMs)
        sends.push(() => ref?.send({ type: 'deadline.passed' }))
      }
    }
    return sends
  }

  const prune = (): void => {
    for (let entry = history.prune(); entry !== undefined; entry = history.prune()) journal.pruned(entry)
  }

  const logic: RegistryLogic = {
    getInitialSnapshot: () => snapshotOf('active', phase()),
    getPersistedSnapshot: (snapshot) => snapshot,
    transition: (snapshot, event, scope) => {
      if (snapshot.status !== 'active') return snapshot
      if ('actorId' in event) {
        const entry = event.actorId.startsWith(TASK_ACTOR_PREFIX)
          ? history.get(event.actorId.slice(TASK_ACTOR_PREFIX.length))
          : undefined
        end(entry, 'output' in event ? event.output : { status: 'failed', ...parts.describeError(event.error) })
        startNext(scope)
        return snapshotOf('active', phase())
      }
      switch (event.type) {
        case 'task.register': {
          startNext(scope)
          const admission = admit(event, scope.self)
          if ('entry' in admission) scope.defer(() => startActor(admission.entry))
          answer = admission
          break
        }
        case 'task.resume': {
          const entry = resume(event, scope.self)
          scope.defer(() => startActor(entry))
          checkBudget(entry, scope)
          answer = entry
          break
        }
        case 'run.waits':
          pauseRun(event)
          break
        case 'run.works':
          workOn(event.entry)
          break
        case 'task.detach':
          startNext(scope)
          answer = detach(event)
          break
        case 'task.note': {
          const { entry, fields } = event
          if (!holdsSlot(entry.record.status)) return snapshot
          entry.record = notedRecord(entry.record, fields)
          parts.onNoted?.(entry)
          return snapshot
        }
        case 'task.spend':
          spend(event.entry, event.amount)
          parts.onNoted?.(event.entry)
          checkBudget(event.entry, scope)
          break
        case 'question.answer': {
          const { entry, questionId } = event
          journal.answer(entry, questionId, event.answer)
          scope.defer(() => entry.ref?.send({ type: 'task.answer', questionId }))
          break
        }
        case 'task.questions':
        case 'task.wrapping':
        case 'task.stopping':
          note(event)
          break
        case 'task.restore':
          restore(event.record, event.deliveryId)
          prune()
          break
        case 'task.withdraw': {
          const { entry, error, errorCode } = event
          // Nobody receives the result, because `stored()` reports the failure to the caller.
          entry.isDisowned = true
          scope.defer(() => entry.ref?.send({ type: 'task.fail', error, errorCode }))
          break
        }
        case 'task.waits':
        case 'task.unmet':
          applyWait(event)
          break
        case 'task.delivered':
          for (const id of event.taskIds) {
            const entry = history.get(id)
            if (entry !== undefined) ledger.markDelivered(entry)
          }
          prune()
          break
        case 'history.prune':
          prune()
          break
        case 'slot.release':
          for (const pool of pools()) pool.release(event.entry)
          limits.release(event.entry)
          break
        case 'task.requeue': {
          const { ref } = event.entry
          requeue(event)
          scope.defer(() => ref?.send({ type: 'task.queue' }))
          break
        }
        case 'reservation.take': {
          startNext(scope)
          const isTaken = slots.hasRoom()
          if (isTaken) slots.reserve(event.reservationId, event.ttlMs)
          answer = isTaken
          break
        }
        case 'reservation.cancel':
          answer = slots.cancelReservation(event.reservationId)
          break
        case 'limit.set':
          parts.slots.of(event.pool).max = event.max
          prune()
          break
        case 'pause.begin':
          pauses.set(event.pause)
          applyPauses(event.pause.owner)
          journal.paused(event.pause.owner)
          break
        case 'pause.end':
          pauses.delete(event.owner)
          applyPauses(event.owner)
          journal.paused(event.owner)
          break
        case 'lease.take':
          answer = ledger.take(event.request)
          break
        case 'lease.restore':
          ledger.take({ ...event.request, isClaim: true })
          break
        case 'lease.acknowledge':
          if (event.late === undefined) ledger.acknowledge(event.deliveryId, event.carried)
          else ledger.acceptLate(event.deliveryId, event.late, event.lateQuestions)
          prune()
          break
        case 'lease.release':
          ledger.release(event.deliveryId, event.isUncertain)
          prune()
          break
        case 'questions.address':
          ledger.questions.address()
          break
        case 'delivery.repeat':
          answer = ledger.repeat(event.deliveryId, [...history.entries()].filter(hasReader))
          break
        case 'claims.drop':
          ledger.dropClaims(event.deliveryId)
          break
        case 'owner.release':
          parts.onReleased?.(event.owner, event.heir)
          ledger.releaseOwner(event.owner, event.heir)
          // The pauses of the released owner no longer apply to these tasks, but those of the heir do.
          applyPauses(event.owner)
          if (event.heir !== undefined) {
            families.setOwner(event.heir)
            applyPauses(event.heir)
          }
          prune()
          break
        case 'text.cut':
          for (const id of event.taskIds) history.keepUnread(id)
          prune()
          break
        case 'text.read':
          history.markRead(event.taskId)
          prune()
          break
        case 'deadlines.due':
          for (const send of [...takeDue(scope), ...takeSpent()]) scope.defer(send)
          break
        case 'retries.due':
          break
        case 'registry.dispose':
          return snapshotOf('done', 'disposed')
      }
      startNext(scope)
      return snapshotOf('active', phase())
    },
  }
  const takeAnswer = (): unknown => {
    const taken = answer
    answer = undefined
    return taken
  }
  return { logic, effects, takeAnswer }
}

type EventOf<Type extends RegistryEvent['type']> = Extract<RegistryEvent, { type: Type }>

type TaskRef = NonNullable<TaskEntry['ref']>

type EnqueueOptions = Partial<Pick<EventOf<'task.resume'>, 'delayMs' | 'waitedMs' | 'isHeld' | 'isWaiting'>>

type AskedBefore = Pick<AsyncTaskInput, 'isDurable' | 'questions' | 'asked'>

/** The slots that a run has given back while it waits, and the conditions under which it waits for them again. */
interface LentSlots {
  readonly pool: Slots
  readonly needs: TaskNeeds | undefined
  readonly ticket: QueueTicket
}

/** The fields of a task that its actor needs. */
type TaskIdentity = Pick<TaskAdmission, 'id' | 'subagentName' | 'timeoutMs'>

/** Returns the next task that waits in the queue of a pool, if a slot is free. */
function nextOf(slots: Slots): TaskEntry | undefined {
  return slots.queue.size > 0 && slots.hasRoom() ? slots.queue.peek() : undefined
}

/** How long a run may take to conclude after a budget is exceeded, in ms. */
const DEFAULT_WRAP_UP_MS = 30_000

function timesOf({ seconds, wrapUpMs = DEFAULT_WRAP_UP_MS }: TaskBudget): TimeBudget {
  return { runMs: seconds === undefined ? undefined : seconds * 1000, wrapUpMs }
}

function earliest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b)
}

/** Starts the actor of a task. If the task is queued, the actor is moved to that state. */
function startActor({ ref, record }: TaskEntry): void {
  ref?.start()
  if (record.status === 'queued') ref?.send({ type: 'task.queue' })
}

/** Collects what must run at the end of a transition. */
interface Deferring {
  readonly defer: (act: () => void) => void
}

function newEntry(record: AsyncTaskInfo, ref: TaskEntry['ref'], graceMs: number, place = record.seq): TaskEntry {
  return {
    record,
    ref,
    graceMs,
    serial: place,
    lease: undefined,
    claims: undefined,
    isDisowned: false,
    isAccepted: false,
    pruning: 'unhandled',
    kept: undefined,
  }
}
