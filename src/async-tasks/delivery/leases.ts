/** Leases: a message holds exactly the tasks whose text it carries, until it is accepted or refused. */
import type { SettledTaskInfo } from '../../../machines/records.js'
import type { LeaseRequest } from '../../../machines/ledger.js'
import { refOf, type QuestionRef } from '../../../machines/owed-questions.js'
import type { Lease } from '../../../machines/task-entry.js'
import { defined } from '../../defined.js'
import { DisposedError } from '../../errors.js'
import { StoreError } from '../../store/store-errors.js'
import { pushSubscribers } from './push-subscribers.js'
import type { TaskRegistry } from '../registry.js'

/** What has a registry: a manager. */
interface RegistryHolder {
  readonly registry: TaskRegistry
}

/** The tasks, and the questions, that one message carries. */
export interface TaskLease {
  /** The lease's id. */
  readonly deliveryId: string
  /** The records, in the order in which they ended. */
  readonly tasks: readonly SettledTaskInfo[]
  /** The open questions that the lease was asked for and has; absent when there are none. */
  readonly questions?: readonly QuestionRef[]
  /**
   * Resolves when the lease is stored: send nothing of the message before (K3). Rejects with StoreError when that cannot be done: its tasks are owed
   * again; and with DisposedError when everything was disposed meanwhile. Absent without a store.
   */
  readonly stored?: Promise<void>
  /**
   * The message was accepted: its tasks are delivered. After `release` it means that the message was accepted late: its tasks that
   * are still owed are delivered. Calling it again does nothing.
   */
  readonly acknowledge: () => void
  /** The message was not accepted: its tasks are owed again. Does nothing once the lease has ended. */
  readonly release: () => void
}

/** The lease of a result that a call returns, until it is known whether the result has arrived. */
export interface HeldLease {
  /** The tasks whose ends the result contains. */
  readonly taskIds: readonly string[]
  /** The result has arrived: its tasks are delivered. */
  readonly acknowledge: () => void
  /** The result was lost: its tasks are owed again. */
  readonly release: () => void
}

/** Takes over a lease. Whoever does must end it, once, by one of its two methods. */
export type HoldLease = (lease: HeldLease) => void

/**
 * Opens a lease.
 * @returns undefined when there is nothing to lease, or the owner's exclusive lease is open
 */
export function openLease(registry: TaskRegistry, request: LeaseRequest): Lease | undefined {
  return registry.ask({ type: 'lease.take', request })
}

/**
 * Resolves when a lease is stored, which is before anything of it is sent (K3).
 * @throws StoreError when that cannot be done now: the lease is released; DisposedError when everything was disposed meanwhile
 */
export function storedLease(registry: TaskRegistry, deliveryId: string): Promise<void> | undefined {
  const { persistence } = registry
  if (persistence === undefined) return undefined
  const stored = persistence.stored().then(
    () => {
      // The next process asks whether the message was delivered: from now on it must not be.
      if (registry.isDisposed) throw new DisposedError()
    },
    (cause: unknown) => {
      registry.send({ type: 'lease.release', deliveryId })
      const message = `What is owed cannot be delivered now: ${cause instanceof Error ? cause.message : ''}`
      throw new StoreError(cause instanceof StoreError ? cause.code : 'STORE_FAILED', message, { cause })
    },
  )
  // Whoever does not wait for it has nothing to handle.
  stored.catch(() => undefined)
  return stored
}

/** Leases the result of a task for an owner that will ask for it, also before the task has ended. */
export function claim({ registry }: RegistryHolder, deliveryId: string, taskId: string): void {
  openLease(registry, { deliveryId, taskIds: [taskId], isClaim: true })
}

/** Ends a claim: its result was delivered, or is not going to be asked for. */
export function endClaim({ registry }: RegistryHolder, deliveryId: string, end: 'acknowledge' | 'release'): void {
  registry.send({ type: `lease.${end}`, deliveryId })
}

/** A model was shown the text of a task, to its end or in part: what was cut is kept until it is read. */
export function noteShown({ registry }: RegistryHolder, taskId: string, isWhole: boolean): void {
  registry.send(isWhole ? { type: 'text.read', taskId } : { type: 'text.cut', taskIds: [taskId] })
}

/** Marks as delivered what an owner without a push subscriber has read. */
export function acknowledgePulled({ registry }: RegistryHolder, taskIds: readonly string[]): void {
  const subscribers = registry.use(pushSubscribers)
  const pulled = taskIds.filter((id) => {
    const record = registry.history.get(id)?.record
    return record?.delivery === 'owed' && !subscribers.has(record.owner)
  })
  if (pulled.length > 0) registry.send({ type: 'task.delivered', taskIds: pulled })
}

/** Opens a lease for a message. @returns undefined as `openLease` does */
export function takeLease(registry: TaskRegistry, request: LeaseRequest): TaskLease | undefined {
  // One batch: a subscriber that is notified of the lease may end it.
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
