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
 *
 * It is actor logic rather than a machine: it has no states to move between, only counts. Slots, ledger and history change in
 * place; the snapshot is new after each event, and frozen. Tasks are made with `createActor({ parent })`: `spawn` copies the list
 * of children at every launch.
 */
import { createActor, type ActorLogic, type ActorRefFrom, type AnyActorRef } from 'xstate'
import type { AsyncTaskHost, AsyncTaskMachine } from './async-task.js'
import { DueTimes } from './due-times.js'
import type { History } from './history.js'
import type { Journal } from './journal.js'
import type { Ledger, LeaseRequest } from './ledger.js'
import type { AsyncTaskInfo, RunningTaskInfo, Settlement, SlotPool, TaskAdmission, TaskFailure } from './records.js'
import type { RegistryPhase, RegistrySnapshot } from './registry-snapshot.js'
import type { SlotPools, Slots } from './slots.js'
import { isTerminal, type Lease, type TaskEntry } from './task-entry.js'
import { runningRecord } from './task-record.js'

/** Why a task was not admitted. */
export type AdmissionRefusal = 'id-in-use' | 'no-reservation' | 'no-room'

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
    }
  | { readonly type: 'lease.release'; readonly deliveryId: string }
  | { readonly type: 'claims.drop'; readonly deliveryId: string }
  | { readonly type: 'task.restore'; readonly record: AsyncTaskInfo }
  | Command<
      'task.resume',
      {
        readonly record: RunningTaskInfo
        readonly graceMs: number
        readonly remainingMs: number | undefined
        readonly pool: SlotPool
      },
      TaskEntry
    >
  | { readonly type: 'lease.restore'; readonly deliveryId: string; readonly taskIds: readonly string[] }
  | { readonly type: 'task.delivered'; readonly taskIds: readonly string[] }
  | { readonly type: 'slot.release'; readonly entry: TaskEntry }
  | { readonly type: 'limit.set'; readonly max: number; readonly pool?: SlotPool }
  | { readonly type: 'owner.release'; readonly owner: string; readonly heir: string | undefined }
  | { readonly type: 'text.cut'; readonly taskIds: readonly string[] }
  | { readonly type: 'text.read'; readonly taskId: string }
  | { readonly type: 'history.prune' }
  | { readonly type: 'deadlines.due' }
  | { readonly type: 'registry.dispose' }

/** The events that XState sends a parent when a child has ended. */
type ChildEnd =
  | { readonly type: `xstate.done.actor.${string}`; readonly actorId: string; readonly output: Settlement }
  | { readonly type: `xstate.error.actor.${string}`; readonly actorId: string; readonly error: unknown }

/** The parts of a registry. They change in place, and only in its transitions. */
export interface RegistryParts {
  readonly slots: SlotPools
  readonly ledger: Ledger
  readonly history: History
  readonly journal: Journal
  /** The machine that each task runs. */
  readonly task: AsyncTaskMachine
  /** The effects of the tasks. */
  readonly host: AsyncTaskHost
  /** The time that deadlines are kept by, in ms; it is never set back. */
  readonly elapsed: () => number
  /** Stores the launch of a task that is about to be admitted. If it throws, the task is not admitted. */
  readonly storeLaunch?: (entry: TaskEntry, admission: TaskAdmission) => void
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
  const { ledger, history, journal, task, host, elapsed } = parts
  const pools = Object.values(parts.slots)
  const slots = parts.slots.task
  const deadlines = new DueTimes<TaskEntry>()

  const phase = (): RegistryPhase => (slots.isOverLimit() ? 'draining' : slots.hasRoom() ? 'available' : 'full')

  const snapshotOf = (status: 'active' | 'done', present: RegistryPhase): RegistrySnapshot =>
    Object.freeze({
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
      nextDeadlineAt: deadlines.next,
    })

  const refusalOf = (
    id: string,
    reservationId: string | undefined,
    limited: Slots | undefined,
  ): AdmissionRefusal | undefined => {
    if (history.get(id) !== undefined) return 'id-in-use'
    if (reservationId !== undefined) return slots.hasReservation(reservationId) ? undefined : 'no-reservation'
    return limited?.hasRoom() === false ? 'no-room' : undefined
  }

  const admit = (
    { admission, isLaunched, reservationId, reply }: Extract<RegistryEvent, { type: 'task.register' }>,
    parent: AnyActorRef,
  ): AnyActorRef | undefined => {
    const { id, subagentName, timeoutMs, graceMs, isForeground = false, pool = 'task' } = admission
    const refusal = refusalOf(id, reservationId, isLaunched && !isForeground ? parts.slots[pool] : undefined)
    if (refusal !== undefined) {
      reply({ refusal })
      return undefined
    }
    const input = { id, subagentName, host, ...(timeoutMs !== undefined && { timeoutMs }) }
    const ref = createActor(task, { id: TASK_ACTOR_PREFIX + id, input, parent })
    const seq = journal.next()
    const entry = newEntry(runningRecord(admission, seq, journal.now()), ref, graceMs)
    try {
      parts.storeLaunch?.(entry, admission)
    } catch (failure) {
      reply({ failure })
      return undefined
    }
    if (reservationId !== undefined) slots.cancelReservation(reservationId)
    history.add(entry)
    if (!isForeground) parts.slots[pool].take(entry, isLaunched)
    if (timeoutMs !== undefined) deadlines.set(entry, elapsed() + timeoutMs)
    ledger.add(entry)
    journal.status(entry, null)
    reply({ entry })
    return ref
  }

  const end = (entry: TaskEntry | undefined, settlement: Settlement): void => {
    if (entry === undefined || isTerminal(entry.record)) return
    entry.ref = undefined
    deadlines.delete(entry)
    for (const pool of pools) pool.end(entry)
    history.end()
    ledger.end(entry, settlement)
  }

  const restore = (record: AsyncTaskInfo): void => {
    const entry = newEntry(record, undefined, 0)
    entry.pruning = 'handled'
    journal.continueAfter(record.seq)
    history.add(entry)
    ledger.add(entry)
  }

  /** A task of an earlier process whose run goes on. */
  const resume = (
    { record, graceMs, remainingMs, pool, reply }: Extract<RegistryEvent, { type: 'task.resume' }>,
    parent: AnyActorRef,
  ): AnyActorRef => {
    const { id, subagentName, timeoutMs } = record
    const input = { id, subagentName, host, ...(timeoutMs !== undefined && { timeoutMs }) }
    const ref = createActor(task, { id: TASK_ACTOR_PREFIX + id, input, parent })
    const entry = newEntry(record, ref, graceMs)
    journal.continueAfter(record.seq)
    history.add(entry)
    parts.slots[pool].take(entry, true)
    if (remainingMs !== undefined) deadlines.set(entry, elapsed() + remainingMs)
    ledger.add(entry)
    reply(entry)
    return ref
  }

  /** The tasks whose deadline or grace period has passed, with the event that each gets. */
  const takeDue = (): (() => void)[] => {
    const now = elapsed()
    const due: TaskEntry[] = []
    for (let entry = deadlines.take(now); entry !== undefined; entry = deadlines.take(now)) due.push(entry)
    return due.map((entry) => {
      const { ref, graceMs } = entry
      // A grace period of 0 ms ends with the next timer: the run is asked to stop first.
      if (graceMs !== undefined) deadlines.set(entry, now + graceMs)
      entry.graceMs = undefined
      return () => ref?.send({ type: graceMs === undefined ? 'grace.passed' : 'deadline.passed' })
    })
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
        return snapshotOf('active', phase())
      }
      switch (event.type) {
        case 'task.register': {
          const ref = admit(event, scope.self)
          if (ref !== undefined) scope.defer(() => ref.start())
          break
        }
        case 'task.resume': {
          const ref = resume(event, scope.self)
          scope.defer(() => ref.start())
          break
        }
        case 'task.restore':
          restore(event.record)
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
          for (const pool of pools) pool.release(event.entry)
          break
        case 'reservation.take': {
          const isTaken = slots.hasRoom()
          if (isTaken) slots.reserve(event.reservationId, event.ttlMs)
          event.reply(isTaken)
          break
        }
        case 'reservation.cancel':
          event.reply(slots.cancelReservation(event.reservationId))
          break
        case 'limit.set':
          parts.slots[event.pool ?? 'task'].max = event.max
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
          else ledger.acceptLate(event.deliveryId, event.late)
          prune()
          break
        case 'lease.release':
          ledger.release(event.deliveryId)
          prune()
          break
        case 'claims.drop':
          ledger.dropClaims(event.deliveryId)
          break
        case 'owner.release':
          ledger.releaseOwner(event.owner, event.heir)
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
          for (const send of takeDue()) scope.defer(send)
          break
        case 'registry.dispose':
          return snapshotOf('done', 'disposed')
      }
      return snapshotOf('active', phase())
    },
  }
}

function newEntry(record: AsyncTaskInfo, ref: TaskEntry['ref'], graceMs: number): TaskEntry {
  return {
    record,
    ref,
    graceMs,
    serial: record.seq,
    lease: undefined,
    claims: undefined,
    isDisowned: false,
    isAccepted: false,
    pruning: 'unhandled',
  }
}
