/** How tasks come into the registry: registered, continued from an earlier process, or restored after their end. */
import { createActor, type AnyActorRef } from 'xstate'
import type { ActiveTimes } from './active-times.js'
import type { AsyncTaskHost, AsyncTaskInput, AsyncTaskMachine } from './async-task.js'
import type { EventOf, Handlers, Held, Registration, RegistryCore, RegistryPart, Scope } from './parts/part.js'
import type { ActiveTaskInfo, AsyncTaskInfo } from './records.js'
import type { TaskAdmission } from './task-admission.js'
import type { Admission, AdmissionRefusal, TaskReport } from './registry-events.js'
import type { Slots } from './slots.js'
import { neededPool, type Joining } from './start-queue.js'
import type { TaskEntry } from './task-entry.js'
import type { HoldReason } from './task-queue.js'
import { admittedRecord } from './task-record.js'
import { isWaiting } from './task-status.js'

export const TASK_ACTOR_PREFIX = 'task.'

export interface AdmitterOptions {
  readonly core: RegistryCore
  readonly parts: readonly RegistryPart[]
  readonly active: ActiveTimes
  readonly task: AsyncTaskMachine
  readonly onLaunched: ((entry: TaskEntry, admission: TaskAdmission) => void) | undefined
  /** Sends what the actor of a task reports to the registry, so that each report is a transition of its own. */
  readonly report: (self: AnyActorRef, report: TaskReport) => void
  /** Starts the time limits of a run. */
  readonly begin: (entry: TaskEntry, timeoutMs: number | undefined) => void
}

type TaskRef = NonNullable<TaskEntry['ref']>

type AskedBefore = Pick<AsyncTaskInput, 'isDurable' | 'questions' | 'asked'>

/** The fields of a task that its actor needs. */
type TaskIdentity = Pick<ActiveTaskInfo, 'id' | 'subagentName' | 'timeoutMs'>

export class Admitter {
  readonly #core: RegistryCore
  readonly #options: AdmitterOptions
  #host: AsyncTaskHost | undefined

  constructor(options: AdmitterOptions) {
    this.#options = options
    this.#core = options.core
  }

  readonly on: Handlers<'task.register' | 'task.restore' | 'task.resume'> = {
    'task.register': (event, scope) => {
      this.#core.startNext(scope)
      return this.#register(event, scope)
    },
    'task.resume': (event, scope) => this.#resume(event, scope),
    'task.restore': (event, scope) => {
      this.#restore(event, scope)
    },
  }

  holdReasons(task: Held): HoldReason[] {
    return this.#options.parts.flatMap((part) => part.hold?.(task) ?? [])
  }

  #register(event: EventOf<'task.register'>, scope: Scope): Admission {
    const { admission, isLaunched, reservationId, parent } = event
    const { depth, graceMs, ticket } = admission
    const { elapsed, history, changes, ledger, queue } = this.#core
    const needed = neededPool(admission, parent !== undefined)
    const slots = queue.slotsFor(needed, depth)
    const reasons = isLaunched ? this.holdReasons(heldOf(admission)) : []
    const needs = ticket?.needs
    const needsRoom = isLaunched && needed !== 'none' && needed !== 'foreground' && reservationId === undefined
    const waits =
      reasons.length > 0 ||
      (needs !== undefined && !queue.named.hasRoom(needs, elapsed())) ||
      (needsRoom && !slots.hasRoomFor(admission.owner))
    const refusal =
      this.#refusalOf(event, waits ? slots : undefined) ?? this.#refusalOfParts({ admission, isLaunched, parent })
    if (refusal !== undefined) return { refusal }
    const status = waits ? 'queued' : 'running'
    const record = admittedRecord(admission, { status, seq: changes.next(), launchedAt: changes.now() })
    const isDurable = admission.isDurable === true
    const ref = this.#createTask(record, scope.self, isDurable ? { isDurable } : undefined)
    const entry = newEntry(record, ref, graceMs)
    if (reservationId !== undefined) queue.pools.task.cancelReservation(reservationId)
    history.add(entry)
    if (isDurable) this.#options.active.add(entry)
    this.#add(entry, scope)
    if (waits && ticket !== undefined) {
      queue.join(entry, slots, { ticket, reasons })
    } else {
      queue.take(entry, needed === 'none' ? undefined : slots, needs, isLaunched)
      this.#options.begin(entry, record.timeoutMs)
    }
    ledger.add(entry)
    this.#options.onLaunched?.(entry, admission)
    changes.status(entry, null)
    scope.defer(() => startActor(entry))
    return { entry }
  }

  #refusalOf(
    { admission: { id, owner, ticket }, reservationId }: EventOf<'task.register'>,
    waitsIn: Slots | undefined,
  ): AdmissionRefusal | undefined {
    const { history, queue } = this.#core
    if (history.get(id) !== undefined) return 'id-in-use'
    if (reservationId !== undefined && !queue.pools.task.hasReservation(reservationId)) return 'no-reservation'
    if (waitsIn === undefined) return undefined
    if (ticket === undefined) return waitsIn.hasRoom() ? 'no-owner-room' : 'no-room'
    if (!waitsIn.queue.hasRoom(ticket.bytes)) return 'queue-full'
    return waitsIn.queue.hasRoomFor(owner, ticket.bytes) ? undefined : 'owner-queue-full'
  }

  #refusalOfParts(registration: Registration): AdmissionRefusal | undefined {
    for (const part of this.#options.parts) {
      const refusal = part.refuse?.(registration)
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  /** Continues a task of an earlier process. */
  #resume(event: EventOf<'task.resume'>, scope: Scope): TaskEntry {
    const { record, graceMs, ranMs, remainingMs, pool, ticket, place, prepare, durable } = event
    const { history, changes, ledger, queue } = this.#core
    const { questions = [] } = record
    const before = durable && { isDurable: true, questions, asked: durable.asked }
    const entry = newEntry(record, this.#createTask(record, scope.self, before), graceMs, place)
    const slots = queue.pools.of(pool, record.depth)
    scope.defer(() => startActor(entry))
    changes.continueAfter(record.seq)
    history.add(entry)
    if (durable !== undefined) this.#options.active.add(entry, durable.activeMs)
    this.#add(entry, scope, { ranMs, durable })
    if (isWaiting(record.status)) {
      queue.join(entry, slots, this.#joiningOf(event))
    } else {
      queue.takeAgain(entry, slots, ticket.needs)
      this.#options.begin(entry, remainingMs)
    }
    ledger.add(entry)
    prepare(entry)
    return entry
  }

  #joiningOf({ record, ticket, delayMs, waitedMs, isHeld, isWaiting = false }: EventOf<'task.resume'>): Joining {
    const reasons = this.holdReasons({ owner: record.owner, isHeld })
    return { ticket, delayMs, waitedMs, reasons: isWaiting ? [...reasons, 'wait'] : reasons }
  }

  #restore({ record, deliveryId, repeatOf }: EventOf<'task.restore'>, scope: Scope): void {
    const { history, changes, ledger } = this.#core
    const entry = newEntry(record, undefined, 0)
    if (record.delivery === 'owed') entry.repeatOf = repeatOf
    if (deliveryId !== undefined && record.delivery === 'delivered') entry.deliveredBy = deliveryId
    entry.isHandled = true
    changes.continueAfter(record.seq)
    history.add(entry)
    ledger.add(entry)
    this.#add(entry, scope)
    this.#core.prune()
  }

  #add(...added: Parameters<NonNullable<RegistryPart['add']>>): void {
    for (const part of this.#options.parts) part.add?.(...added)
  }

  #createTask({ id, subagentName, timeoutMs }: TaskIdentity, parent: AnyActorRef, asked?: AskedBefore): TaskRef {
    const host = (this.#host ??= this.#hostOf(parent))
    const input: AsyncTaskInput = { ...asked, id, subagentName, timeoutMs, host }
    return createActor(this.#options.task, { id: TASK_ACTOR_PREFIX + id, input, parent })
  }

  #hostOf(self: AnyActorRef): AsyncTaskHost {
    const { report } = this.#options
    return {
      requestAbort: (taskId, excess) => report(self, { type: 'task.stopping', taskId, excess }),
      requestWrapUp: (taskId, excess) => report(self, { type: 'task.wrapping', taskId, excess }),
      setQuestions: (taskId, questions) => report(self, { type: 'task.questions', taskId, questions }),
    }
  }
}

/** Starts the actor of a task. If the task is queued, the actor is moved to that state. */
function startActor({ ref, record }: TaskEntry): void {
  ref?.start()
  if (isWaiting(record.status)) ref?.send({ type: 'task.queue' })
}

const heldOf = ({ owner, waitsFor, isForeground = false }: TaskAdmission): Held => ({
  owner,
  isHeld: waitsFor !== undefined,
  isNewForeground: isForeground,
})

function newEntry(record: AsyncTaskInfo, ref: TaskEntry['ref'], graceMs: number, place = record.seq): TaskEntry {
  return {
    record,
    ref,
    graceMs,
    serial: place,
    lease: undefined,
    deliveredBy: undefined,
    claims: undefined,
    isDisowned: false,
    isAccepted: false,
    repeatOf: undefined,
    isHandled: false,
    data: undefined,
  }
}
