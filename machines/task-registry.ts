/**
 * The parent of every task: it admits tasks, keeps their records and the ledger of what is owed, and prunes.
 *
 * R1  Launched tasks and live reservations never exceed the maximum, unless the maximum is lowered while they run.
 * R2  An id that a retained record holds is never admitted again.
 * R3  A task that ends leaves a frozen record in the same transition, and its actor is let go.
 * R4  An entry is in at most one lease, and an owner has at most one exclusive lease (ledger.ts).
 * R5  Only records that owe nothing and whose handlers have run are pruned, the earliest ended first; one that is owed is
 *     passed over.
 * R6  Every change is numbered and queued for the host in that order; no host code runs inside a transition.
 * R7  A disposed registry changes nothing more.
 * R8  A free slot goes to the next task that waits, in the transition that frees it: nothing else takes it while one does.
 *
 * It is actor logic rather than a machine: it has no states to move between, only counts. Slots, ledger and history change in
 * place; the snapshot is new after each event, and frozen. Tasks are made with `createActor({ parent })`: `spawn` copies the list
 * of children at every launch.
 */
import { createActor, type ActorLogic, type ActorRefFrom, type AnyActorRef } from 'xstate'
import type { AsyncTaskHost, AsyncTaskMachine } from './async-task.js'
import { DueTimes } from './due-times.js'
import { runOfOwner, type Families, type FamilyRefusal } from './families.js'
import type { History } from './history.js'
import type { Journal } from './journal.js'
import type { Ledger, LeaseRequest } from './ledger.js'
import { BudgetTimes, type TimeBudget } from './budget-times.js'
import type {
  ActiveTaskInfo,
  AsyncTaskInfo,
  QueueTicket,
  Settlement,
  SlotPool,
  TaskAdmission,
  TaskBudget,
  TaskFailure,
} from './records.js'
import type { RegistryPhase, RegistrySnapshot } from './registry-snapshot.js'
import { Slots, type SlotPools } from './slots.js'
import { endedLease, isTerminal, type Lease, type OwedQuestion, type TaskEntry } from './task-entry.js'
import { admittedRecord, requeuedRecord, startedRecord } from './task-record.js'
import { holdsSlot } from './task-status.js'

/** Why a task was not admitted. */
export type AdmissionRefusal =
  'id-in-use' | 'no-reservation' | 'no-room' | 'no-foreground-room' | 'queue-full' | FamilyRefusal

/** The answer to `task.register`. */
export type Admission =
  | { readonly entry: TaskEntry }
  | { readonly refusal: AdmissionRefusal }
  /** The launch could not be stored. */
  | { readonly failure: unknown }

/** An event with an answer: `reply` is called inside the transition. */
type Command<Type extends string, Payload, Answer> = Payload & {
  readonly type: Type
  readonly reply: (answer: Answer) => void
}

/** The events of the registry; each is one transition of the ledger. */
export type RegistryEvent =
  | Command<
      'task.register',
      {
        readonly admission: TaskAdmission
        /** Bound by the maximum; its slot is held until `slot.release`. */
        readonly isLaunched: boolean
        readonly reservationId: string | undefined
        /** The task whose run launches it. */
        readonly parent: TaskEntry | undefined
      },
      Admission
    >
  | Command<'reservation.take', { readonly reservationId: string; readonly ttlMs: number }, boolean>
  | Command<'reservation.cancel', { readonly reservationId: string }, boolean>
  | Command<'lease.take', { readonly request: LeaseRequest }, Lease | undefined>
  | {
      readonly type: 'lease.acknowledge'
      readonly deliveryId: string
      /** The entries that the message carried; all of the lease when absent. */
      readonly carried?: ReadonlySet<TaskEntry>
      /** Accepted after its lease had ended, or while another message holds them. */
      readonly late?: readonly TaskEntry[]
      /** The questions of such a message. */
      readonly lateQuestions?: readonly OwedQuestion[]
    }
  | { readonly type: 'lease.release'; readonly deliveryId: string }
  | Command<'delivery.repeat', { readonly deliveryId: string }, boolean>
  | { readonly type: 'claims.drop'; readonly deliveryId: string }
  | {
      readonly type: 'task.restore'
      readonly record: AsyncTaskInfo
      /** The message that delivered it. */
      readonly deliveryId?: string
    }
  | Command<
      'task.resume',
      {
        readonly record: ActiveTaskInfo
        readonly graceMs: number
        /** For how long its run has gone on in earlier processes, in ms. */
        readonly ranMs: number
        /** What is left until its deadline. */
        readonly remainingMs: number | undefined
        /** How long one that is queued waits before it may start, in ms. */
        readonly delayMs: number
        /** How long it has waited for a slot since then, in ms. */
        readonly waitedMs: number
        readonly pool: SlotPool
        /** How it waits; needed for one that is queued. */
        readonly ticket: QueueTicket
        /** Its place among all tasks; undefined for the one that its record has. */
        readonly place: number | undefined
      },
      TaskEntry
    >
  | {
      /** The run of a task has failed, and is repeated. */
      readonly type: 'task.requeue'
      readonly entry: TaskEntry
      readonly ticket: QueueTicket
      /** How long it waits before it may start, in ms. */
      readonly delayMs: number
      readonly graceMs: number
      /** What the run failed with, in words. */
      readonly error: string
      /** Replaces one that has aborted. */
      readonly abortController: AbortController | undefined
    }
  | { readonly type: 'wrapUp.begin'; readonly entry: TaskEntry }
  | { readonly type: 'lease.restore'; readonly deliveryId: string; readonly taskIds: readonly string[] }
  | { readonly type: 'task.delivered'; readonly taskIds: readonly string[] }
  | { readonly type: 'slot.release'; readonly entry: TaskEntry }
  | { readonly type: 'limit.set'; readonly max: number; readonly pool?: SlotPool }
  | { readonly type: 'owner.release'; readonly owner: string; readonly heir: string | undefined }
  | { readonly type: 'text.cut'; readonly taskIds: readonly string[] }
  | { readonly type: 'text.read'; readonly taskId: string }
  | { readonly type: 'history.prune' }
  | { readonly type: 'deadlines.due' }
  | { readonly type: 'retries.due' }
  | { readonly type: 'registry.dispose' }

/** The events that XState sends a parent when a child has ended. */
type ChildEnd =
  | { readonly type: `xstate.done.actor.${string}`; readonly actorId: string; readonly output: Settlement }
  | { readonly type: `xstate.error.actor.${string}`; readonly actorId: string; readonly error: unknown }

/** The parts of a registry. They change in place, and only in its transitions. */
export interface RegistryParts {
  readonly slots: SlotPools
  /** The slots of the tasks whose callers wait for them, besides those that runs have launched. */
  readonly foreground: Slots
  readonly ledger: Ledger
  readonly history: History
  readonly families: Families
  readonly journal: Journal
  /** The machine that each task runs. */
  readonly task: AsyncTaskMachine
  /** The effects of the tasks. */
  readonly host: AsyncTaskHost
  /** The time that deadlines are kept by, in ms; it is never set back. */
  readonly elapsed: () => number
  /** Stores the launch of a task that is about to be admitted. If it throws, the task is not admitted. */
  readonly storeLaunch?: (entry: TaskEntry, admission: TaskAdmission) => void
  /** Starts the run of a task that has waited. It calls no host code. */
  readonly startRun: (entry: TaskEntry) => void
  /** A task that has waited could not start in time. */
  readonly expiry: TaskFailure
  /** Says in words that the runs of a task took longer than its budget allows. */
  readonly describeOverrun: (entry: TaskEntry) => string
  /** The run time of a task was counted. */
  readonly onRan?: (entry: TaskEntry, seconds: number) => void
  /** Describes what the actor of a task failed with. */
  readonly describeError: (error: unknown) => TaskFailure
}

/** The logic of the registry's actor. */
export type RegistryLogic = ActorLogic<RegistrySnapshot, RegistryEvent | ChildEnd>
/** The registry's actor. */
export type RegistryRef = ActorRefFrom<RegistryLogic>

const TASK_ACTOR_PREFIX = 'task.'

/** Makes the logic of one registry. */
export function createRegistryLogic(parts: RegistryParts): RegistryLogic {
  const { ledger, history, families, journal, task, host, elapsed } = parts
  /** The tasks that take no slot wait for their next runs here. */
  const slotless = new Slots(-1, elapsed)
  const { foreground } = parts
  const pools = (): Slots[] => [...parts.slots.all(), foreground, slotless]
  const slots = parts.slots.task
  /** The deadlines of what runs, and until when what waits may wait. */
  const deadlines = new DueTimes<TaskEntry>()
  /** When the back-offs of what is retried end. */
  const delays = new DueTimes<TaskEntry>()
  const budgets = new BudgetTimes()

  const phase = (): RegistryPhase => (slots.isOverLimit() ? 'draining' : slots.hasRoom() ? 'available' : 'full')

  /** When the next limit on time is reached, and of which task; a reservation has none. */
  const nextDeadline = (): { readonly at: number | undefined; readonly of: TaskEntry | undefined } => {
    const [limit, spent] = [deadlines.next, budgets.next]
    const ofTask = earliest(limit, spent)
    const at = pools().reduce((first, { nextExpiry }) => earliest(first, nextExpiry), ofTask)
    return { at, of: at !== ofTask ? undefined : at === limit ? deadlines.nextKey : budgets.nextEntry }
  }

  const snapshotOf = (status: 'active' | 'done', present: RegistryPhase): RegistrySnapshot => {
    const next = nextDeadline()
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
      nextRetryAt: delays.next,
      nextRetryOf: delays.nextKey?.record.id,
    })
  }

  const refusalOf = (
    { id, ticket, pool, depth }: TaskAdmission,
    reservationId: string | undefined,
    waits: boolean,
  ): AdmissionRefusal | undefined => {
    if (history.get(id) !== undefined) return 'id-in-use'
    if (reservationId !== undefined) return slots.hasReservation(reservationId) ? undefined : 'no-reservation'
    if (waits && ticket === undefined) return 'no-room'
    if (waits && ticket !== undefined && !parts.slots.of(pool, depth).queue.hasRoom(ticket.bytes)) return 'queue-full'
    return undefined
  }

  /** Whether something can still deliver to its owner: the run of a task that has ended takes nothing. */
  const hasReader = ({ record: { owner } }: TaskEntry): boolean => {
    const runId = runOfOwner(owner)
    return runId === undefined || history.get(runId)?.ref !== undefined
  }

  /** The limits on the time of a run count from its start. */
  const begin = (entry: TaskEntry, timeoutMs: number | undefined): void => {
    const now = elapsed()
    if (timeoutMs !== undefined) deadlines.set(entry, now + timeoutMs)
    budgets.start(entry, now)
  }

  /** It waits for a slot, from the end of its delay on. */
  const enqueue = (entry: TaskEntry, slots: Slots, ticket: QueueTicket, delayMs: number, waitedMs = 0): void => {
    slots.queue.add(entry, ticket, delayMs > 0)
    if (delayMs > 0) delays.set(entry, elapsed() + delayMs)
    else limitWait(entry, slots, waitedMs)
  }

  /** @param waitedMs how long it has waited in an earlier process */
  const limitWait = (entry: TaskEntry, { queue }: Slots, waitedMs = 0): void => {
    const { maxWaitMs } = queue.limits
    if (maxWaitMs !== undefined) deadlines.set(entry, elapsed() + Math.max(0, maxWaitMs - waitedMs))
  }

  /** Starts what waits, as long as there are slots: also what has waited for the end of a back-off until now. */
  const startNext = (scope: Deferring): void => {
    endDelays()
    for (const slots of pools()) {
      for (let entry = nextOf(slots); entry !== undefined; entry = nextOf(slots)) start(entry, slots, scope)
    }
  }

  const start = (entry: TaskEntry, slots: Slots, scope: Deferring): void => {
    const { ref } = entry
    const now = journal.now()
    slots.queue.remove(entry)
    slots.take(entry, true)
    deadlines.delete(entry)
    begin(entry, entry.record.timeoutMs)
    ledger.move(entry, startedRecord(entry.record, journal.next(), now), now)
    parts.startRun(entry)
    scope.defer(() => ref?.send({ type: 'task.start' }))
  }

  /** The run of a task has ended, and another one follows: it keeps its place, and waits without a slot. */
  const requeue = ({
    entry,
    ticket,
    delayMs,
    graceMs,
    error,
    abortController,
  }: Extract<RegistryEvent, { type: 'task.requeue' }>): void => {
    const slots = pools().find((pool) => pool.release(entry)) ?? slotless
    const endedAt = journal.now()
    deadlines.delete(entry)
    countRun(entry)
    entry.graceMs = graceMs
    enqueue(entry, slots, ticket, delayMs)
    families.release(entry)
    ledger.move(entry, requeuedRecord(entry.record, { seq: journal.next(), endedAt, error, abortController }), endedAt)
  }

  const countRun = (entry: TaskEntry): void => {
    const ranMs = budgets.stop(entry, elapsed())
    if (ranMs !== undefined) parts.onRan?.(entry, ranMs / 1000)
  }

  const admit = (
    {
      admission,
      isLaunched,
      reservationId,
      parent: launching,
      reply,
    }: Extract<RegistryEvent, { type: 'task.register' }>,
    parent: AnyActorRef,
  ): TaskEntry | undefined => {
    const { id, subagentName, timeoutMs, graceMs, isForeground, pool, depth, ticket, budget } = admission
    const slots = parts.slots.of(pool, depth)
    const waits = isLaunched && isForeground !== true && reservationId === undefined && !slots.hasRoom()
    const isCounted = isForeground === true && launching === undefined
    const refusal =
      refusalOf(admission, reservationId, waits) ??
      (isCounted && !foreground.hasRoom() ? 'no-foreground-room' : undefined) ??
      (launching && families.refusalOf(launching))
    if (refusal !== undefined) {
      reply({ refusal })
      return undefined
    }
    const input = { id, subagentName, host, ...(timeoutMs !== undefined && { timeoutMs }) }
    const ref = createActor(task, { id: TASK_ACTOR_PREFIX + id, input, parent })
    const seq = journal.next()
    const status = waits ? 'queued' : 'running'
    const entry = newEntry(admittedRecord(admission, { status, seq, launchedAt: journal.now() }), ref, graceMs)
    try {
      parts.storeLaunch?.(entry, admission)
    } catch (failure) {
      reply({ failure })
      return undefined
    }
    if (reservationId !== undefined) parts.slots.task.cancelReservation(reservationId)
    history.add(entry)
    if (budget !== undefined) budgets.add(entry, timesOf(budget), 0)
    if (waits && ticket !== undefined) {
      enqueue(entry, slots, ticket, 0)
    } else {
      if (isForeground !== true) slots.take(entry, isLaunched)
      else if (isCounted) foreground.take(entry, isLaunched)
      begin(entry, timeoutMs)
    }
    ledger.add(entry)
    families.add(entry)
    journal.status(entry, null)
    reply({ entry })
    return entry
  }

  const end = (entry: TaskEntry | undefined, settlement: Settlement): void => {
    if (entry === undefined || isTerminal(entry.record)) return
    entry.ref = undefined
    deadlines.delete(entry)
    delays.delete(entry)
    countRun(entry)
    budgets.delete(entry)
    for (const pool of pools()) {
      pool.end(entry)
      pool.queue.remove(entry)
    }
    ledger.end(entry, settlement, settlement.status === 'cancelled' ? undefined : families.liveChildren(entry))
    families.release(entry)
  }

  const restore = (record: AsyncTaskInfo, deliveryId: string | undefined): void => {
    const entry = newEntry(record, undefined, 0)
    if (deliveryId !== undefined && record.delivery === 'delivered') entry.lease = endedLease(deliveryId)
    entry.pruning = 'handled'
    journal.continueAfter(record.seq)
    history.add(entry)
    ledger.add(entry)
    families.add(entry)
  }

  /** A task of an earlier process whose run goes on. */
  const resume = (
    {
      record,
      graceMs,
      ranMs,
      remainingMs,
      delayMs,
      waitedMs,
      pool,
      ticket,
      place,
      reply,
    }: Extract<RegistryEvent, { type: 'task.resume' }>,
    parent: AnyActorRef,
  ): TaskEntry => {
    const { id, subagentName, timeoutMs, budget, spent } = record
    const input = { id, subagentName, host, ...(timeoutMs !== undefined && { timeoutMs }) }
    const ref = createActor(task, { id: TASK_ACTOR_PREFIX + id, input, parent })
    const entry = newEntry(record, ref, graceMs, place)
    const slots = parts.slots.of(pool, record.depth)
    journal.continueAfter(record.seq)
    history.add(entry)
    if (budget !== undefined) budgets.add(entry, timesOf(budget), (spent?.seconds ?? 0) * 1000 + ranMs)
    if (record.status === 'queued') {
      enqueue(entry, slots, ticket, delayMs, waitedMs)
    } else {
      slots.take(entry, true)
      begin(entry, remainingMs)
    }
    ledger.add(entry)
    families.add(entry)
    reply(entry)
    return entry
  }

  /** What is due now. A slot that is free goes to what waits before its longest wait is over. */
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
        // A grace period of 0 ms ends with the next timer: the run is asked to stop first.
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

  /** The back-offs that are over: what was in one may start. */
  const endDelays = (): void => {
    if (delays.size === 0) return
    const now = elapsed()
    for (let entry = delays.take(now); entry !== undefined; entry = delays.take(now)) {
      for (const slots of pools()) if (slots.queue.isDelayed(entry)) makeReady(entry, slots)
    }
  }

  const makeReady = (entry: TaskEntry, slots: Slots): void => {
    slots.queue.setReady(entry)
    limitWait(entry, slots)
  }

  /** The tasks whose run time, or whose time to wrap up, is used up. */
  const takeSpent = (): (() => void)[] => {
    const now = elapsed()
    const sends: (() => void)[] = []
    for (let due = budgets.take(now); due !== undefined; due = budgets.take(now)) {
      const { entry, isWrapping } = due
      const { ref, graceMs } = entry
      if (!isWrapping) {
        const message = parts.describeOverrun(entry)
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

  return {
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
          const entry = admit(event, scope.self)
          if (entry !== undefined) scope.defer(() => startActor(entry))
          break
        }
        case 'task.resume': {
          const entry = resume(event, scope.self)
          scope.defer(() => startActor(entry))
          break
        }
        case 'task.restore':
          restore(event.record, event.deliveryId)
          prune()
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
          break
        case 'task.requeue': {
          const { ref } = event.entry
          requeue(event)
          scope.defer(() => ref?.send({ type: 'task.queue' }))
          break
        }
        case 'wrapUp.begin':
          budgets.wrapUp(event.entry, elapsed())
          break
        case 'reservation.take': {
          startNext(scope)
          const isTaken = slots.hasRoom()
          if (isTaken) slots.reserve(event.reservationId, event.ttlMs)
          event.reply(isTaken)
          break
        }
        case 'reservation.cancel':
          event.reply(slots.cancelReservation(event.reservationId))
          break
        case 'limit.set':
          parts.slots.of(event.pool).max = event.max
          prune()
          break
        case 'lease.take':
          event.reply(ledger.take(event.request))
          break
        case 'lease.restore':
          ledger.take({ deliveryId: event.deliveryId, taskIds: event.taskIds, isClaim: true })
          break
        case 'lease.acknowledge':
          if (event.late === undefined) ledger.acknowledge(event.deliveryId, event.carried)
          else ledger.acceptLate(event.deliveryId, event.late, event.lateQuestions)
          prune()
          break
        case 'lease.release':
          ledger.release(event.deliveryId)
          prune()
          break
        case 'delivery.repeat':
          event.reply(ledger.repeat(event.deliveryId, [...history.entries()].filter(hasReader)))
          break
        case 'claims.drop':
          ledger.dropClaims(event.deliveryId)
          break
        case 'owner.release':
          ledger.releaseOwner(event.owner, event.heir)
          if (event.heir !== undefined) families.setOwner(event.heir)
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
}

/** The next task that waits and may start now. */
function nextOf(slots: Slots): TaskEntry | undefined {
  return slots.queue.size > 0 && slots.hasRoom() ? slots.queue.peek() : undefined
}

/** How long a run may take to conclude once a budget is exceeded, in ms. */
const DEFAULT_WRAP_UP_MS = 30_000

function timesOf({ seconds, wrapUpMs = DEFAULT_WRAP_UP_MS }: TaskBudget): TimeBudget {
  return { runMs: seconds === undefined ? undefined : seconds * 1000, wrapUpMs }
}

function earliest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b)
}

/** Starts the actor of a task, which waits if it has no slot. */
function startActor({ ref, record }: TaskEntry): void {
  ref?.start()
  if (record.status === 'queued') ref?.send({ type: 'task.queue' })
}

/** Where a transition puts what follows it. */
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
