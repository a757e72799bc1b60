/** Leases. A message holds exactly the tasks that its text contains, until it is accepted or refused. */
import type { SettledTaskInfo } from '../../../machines/records.js'
import type { LeaseRequest } from '../../../machines/ledger.js'
import { refOf, type QuestionRef } from '../../../machines/owed-questions.js'
import type { Lease } from '../../../machines/task-entry.js'
import { defined } from '../../defined.js'
import { DisposedError } from '../../errors.js'
import { StoreError } from '../../store/store-errors.js'
import { pushSubscribers } from './push-subscribers.js'
import type { TaskRegistry } from '../registry.js'

interface RegistryHolder {
  readonly registry: TaskRegistry
}

/** The tasks and questions of one message. */
export interface TaskLease {
  /** The id of the lease. */
  readonly deliveryId: string
  /** The records, in the order in which they ended. */
  readonly tasks: readonly SettledTaskInfo[]
  /** The requested questions that are still open. Absent if there are none. */
  readonly questions?: readonly QuestionRef[]
  /**
   * Resolves when the lease is stored. Send the message only after that (promise K3). Rejects with StoreError when it cannot be stored, and its tasks are
   * then owed again; rejects with DisposedError when everything was disposed. Absent without a store.
   */
  readonly stored?: Promise<void>
  /**
   * Reports that the message was accepted: its tasks are delivered. After `release` it reports a late acceptance, which applies to the tasks that are
   * still owed. Further calls have no effect.
   */
  readonly acknowledge: () => void
  /** Reports that the message was not accepted: its tasks are owed again. No effect once the lease has ended. */
  readonly release: () => void
}

/** The lease of a result that a call returns, until it is known whether the result has arrived. */
export interface HeldLease {
  /** The tasks in the result. */
  readonly taskIds: readonly string[]
  /** Reports that the result has arrived: its tasks are delivered. */
  readonly acknowledge: () => void
  /** Reports that the result was lost: its tasks are owed again. */
  readonly release: () => void
}

/** Takes over a lease. The receiver must end it once, with one of its two methods. */
export type HoldLease = (lease: HeldLease) => void

/**
 * Opens a lease.
 * @returns undefined if there is nothing to lease, or the owner's exclusive lease is open
 */
export function openLease(registry: TaskRegistry, request: LeaseRequest): Lease | undefined {
  return registry.ask({ type: 'lease.take', request })
}

/**
 * Resolves when a lease is stored. Its message may only be sent after that (promise K3).
 * @throws StoreError when it cannot be stored now, and the lease is then released; DisposedError when everything was disposed meanwhile
 */
export function storedLease(registry: TaskRegistry, deliveryId: string): Promise<void> | undefined {
  const { persistence } = registry
  if (persistence === undefined) return undefined
  const stored = persistence.stored().then(
    () => {
      // The next process will ask whether the message was delivered, so it must not be delivered from now on.
      if (registry.isDisposed) throw new DisposedError()
    },
    (cause: unknown) => {
      registry.send({ type: 'lease.release', deliveryId })
      const message = `What is owed cannot be delivered now: ${cause instanceof Error ? cause.message : ''}`
      throw new StoreError(cause instanceof StoreError ? cause.code : 'STORE_FAILED', message, { cause })
    },
  )
  // A caller that does not await the promise must not get an unhandled rejection.
  stored.catch(() => undefined)
  return stored
}

/** Leases the result of a task for an owner that will ask for it, possibly before the task has ended. */
export function claim({ registry }: RegistryHolder, deliveryId: string, taskId: string): void {
  openLease(registry, { deliveryId, taskIds: [taskId], isClaim: true })
}

/** Ends a claim, because its result was delivered or will not be requested. */
export function endClaim({ registry }: RegistryHolder, deliveryId: string, end: 'acknowledge' | 'release'): void {
  registry.send({ type: `lease.${end}`, deliveryId })
}

/** Notes that a model has seen the text of a task, in full or shortened. A shortened text is kept until it is read. */
export function noteShown({ registry }: RegistryHolder, taskId: string, isWhole: boolean): void {
  registry.send(isWhole ? { type: 'text.read', taskId } : { type: 'text.cut', taskIds: [taskId] })
}

/** Marks results as delivered that an owner without a push subscriber has read. */
export function acknowledgePulled({ registry }: RegistryHolder, taskIds: readonly string[]): void {
  const subscribers = registry.use(pushSubscribers)
  const pulled = taskIds.filter((id) => {
    const record = registry.history.get(id)?.record
    return record?.delivery === 'owed' && !subscribers.has(record.owner)
  })
  if (pulled.length > 0) registry.send({ type: 'task.delivered', taskIds: pulled })
}

/**
 * Opens a lease for a message.
 * @returns undefined as for `openLease`
 */
export function takeLease(registry: TaskRegistry, request: LeaseRequest): TaskLease | undefined {
  // In one batch, because a subscriber that is notified of the lease may end it.
  return registry.batch(() => {
    const lease = openLease(registry, request)
    if (lease === undefined) return undefined
    const { deliveryId } = request
    const { questions } = lease
    const entries = [...lease.entries]
    const stored = storedLease(registry, deliveryId)
    return Object.freeze({
      deliveryId,
      tasks: Object.freeze(entries.map((entry) => entry.record as SettledTaskInfo)),
      ...(questions && { questions: Object.freeze(questions.map(refOf)) }),
      ...defined({ stored }),
      acknowledge: () => {
        const isOpen = registry.ledger.lease(deliveryId) === lease
        const late = { late: entries, ...defined({ lateQuestions: questions }) }
        registry.send({ type: 'lease.acknowledge', deliveryId, ...(!isOpen && late) })
      },
      release: () => registry.send({ type: 'lease.release', deliveryId }),
    })
  })
}
