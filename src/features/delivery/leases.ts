/** Leases. A lease holds the tasks whose results are in one message, until the message is accepted or refused. */
import type { SettledTaskInfo } from '../../../machines/records.js'
import type { LeaseRequest } from '../../../machines/ledger-options.js'
import { refOf, type QuestionRef } from '../../../machines/owed-questions.js'
import type { Lease, TaskEntry } from '../../../machines/task-entry.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { AgentTasksError, DisposedError } from '../../errors.js'
import { StoreError } from '../../store/store-errors.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'

interface RegistryHolder {
  readonly registry: TaskRegistry
}

/** The tasks and questions of one message. */
export interface TaskLease {
  /** The id of the lease. */
  readonly deliveryId: string
  /** The records of the tasks, in the order in which the tasks ended. */
  readonly tasks: readonly SettledTaskInfo[]
  /** The requested questions that are still open. Absent if there are none. */
  readonly questions?: readonly QuestionRef[]
  /**
   * Resolves when the lease is stored. Send the message only after that, or a crash could cause a second delivery (promise K3). Absent without a
   * store. Rejects with StoreError if the lease cannot be stored; its tasks are owed again then. Rejects with the code `LEASE_ENDED` if the lease was
   * released before it was stored: another message may have its tasks. Rejects with `DISPOSED` if the manager was disposed.
   */
  readonly stored?: Promise<void>
  /**
   * Reports that the message was accepted, so its tasks are delivered. You may also call it after `release`, if the message was accepted late. Tasks
   * that are still owed are then delivered. Further calls have no effect.
   */
  readonly acknowledge: () => void
  /** Reports that the message was not accepted, so its tasks are owed again. Has no effect once the lease has ended. */
  readonly release: Release
}

/** Ends a lease whose message was not accepted. */
export type Release = (options?: {
  /**
   * Whether the receiver may have the message nevertheless. Then its results are marked as possible repeats, and the message that delivers them has
   * the same delivery id and no other results. Has no effect before the lease is stored, because the message is sent after that. Default false.
   */
  readonly mayHaveArrived?: boolean
}) => void

/** A lease on the tasks whose results a tool call returns, until it is known whether the caller has received them. */
export interface HeldLease {
  /** The id of the lease. Undefined if the result of the call delivers nothing. */
  readonly deliveryId?: string | undefined
  /** The ids of the tasks in the result of the call. */
  readonly taskIds: readonly string[]
  /** Reports that the caller has received the result, so its tasks are delivered. */
  readonly acknowledge: () => void
  /** Reports that the caller has not received the result, so its tasks are owed again. */
  readonly release: Release
}

/** Takes over a lease. The receiver must call either `acknowledge` or `release` once. */
export type HoldLease = (lease: HeldLease) => void

/** Returns the owed tasks whose results may be delivered now, in the order in which they ended. */
export const deliverable = (registry: TaskRegistry, owner?: string): TaskEntry[] =>
  registry.ledger.owed(owner).filter((entry) => registry.mayDeliver(entry))

/** Whether a question, or a result that may be delivered now, is owed to an owner. */
export const isOwing = (registry: TaskRegistry, owner: string): boolean =>
  registry.ledger.isOwing(owner, (entry) => registry.mayDeliver(entry))

/** Returns the function that releases this lease, but not a later one with the same id. */
export const releaseOf =
  (registry: TaskRegistry, lease: Lease | undefined): Release =>
  ({ mayHaveArrived = false } = {}) => {
    if (lease === undefined || registry.ledger.lease(lease.id) !== lease) return
    registry.send({ type: 'lease.release', deliveryId: lease.id, ...(mayHaveArrived && { isUncertain: true }) })
  }

/**
 * Opens a lease.
 * @returns undefined if there is nothing to lease, or the owner's exclusive lease is open
 */
export function openLease(registry: TaskRegistry, request: LeaseRequest): Lease | undefined {
  return registry.ask({ type: 'lease.take', request })
}

/**
 * Resolves when a lease is stored. Send its message only after that (promise K3).
 * @param onStored throws if the message must not be sent any more
 * @throws StoreError if the lease cannot be stored now; it is released then
 * @throws DISPOSED if the registry was disposed in the meantime
 */
function storedLease(registry: TaskRegistry, deliveryId: string, onStored: () => void): Promise<void> | undefined {
  const { persistence } = registry
  if (persistence === undefined) return undefined
  const stored = persistence.stored().then(
    () => {
      // The next process finds this lease in the store and asks the host whether its message was sent. So it must not be sent any more.
      if (registry.isDisposed) throw new DisposedError()
      onStored()
    },
    (cause: unknown) => {
      registry.send({ type: 'lease.release', deliveryId })
      const message = `The owed results cannot be delivered now, because their lease cannot be stored: ${cause instanceof Error ? cause.message : ''}`
      throw new StoreError(cause instanceof StoreError ? cause.code : 'STORE_FAILED', message, { cause })
    },
  )
  // A caller that does not await the promise must not get an unhandled rejection.
  stored.catch(() => undefined)
  return stored
}

/** Leases the result of a task for a caller that will fetch it. The task may still be running. */
export function claim({ registry }: RegistryHolder, deliveryId: string, taskId: string): void {
  openLease(registry, { deliveryId, taskIds: [taskId], isClaim: true })
}

/** Ends the lease of `claim`: the result was delivered (`acknowledge`), or the caller will not fetch it (`release`). */
export function endClaim({ registry }: RegistryHolder, deliveryId: string, end: 'acknowledge' | 'release'): void {
  registry.send({ type: `lease.${end}`, deliveryId })
}

/** Records that a model has seen the text of a task. If that text was shortened, the whole text is kept until a model has read it. */
export function noteShown({ registry }: RegistryHolder, taskId: string, isWhole: boolean): void {
  registry.send(isWhole ? { type: 'text.read', taskId } : { type: 'text.cut', taskIds: [taskId] })
}

/**
 * Opens a lease for a message.
 * @returns undefined under the conditions of `openLease`
 */
export function takeLease(registry: TaskRegistry, request: LeaseRequest): TaskLease | undefined {
  // All in one batch: a subscriber that is notified of the lease may end it, and must not do so before it is complete.
  return registry.batch(() => {
    const lease = openLease(registry, request)
    if (lease === undefined) return undefined
    const { deliveryId } = request
    const { questions } = lease
    const entries = [...lease.entries]
    let state: 'open' | 'stored' | 'released' = 'open'
    const stored = storedLease(registry, deliveryId, () => {
      if (state === 'released') {
        throw new AgentTasksError(
          'LEASE_ENDED',
          `The lease of message ${deliveryId} was released before it was stored, for example by the next beforeTurn of its owner. Do not send the message: another one may have its results.`,
        )
      }
      state = 'stored'
    })
    const release = releaseOf(registry, lease)
    return Object.freeze({
      deliveryId,
      tasks: Object.freeze(entries.map((entry) => entry.record as SettledTaskInfo)),
      ...(questions && { questions: Object.freeze(questions.map(refOf)) }),
      ...omitUndefined({ stored }),
      acknowledge: () => {
        const isOpen = registry.ledger.lease(deliveryId) === lease
        const late = { late: entries, ...omitUndefined({ lateQuestions: questions }) }
        registry.send({ type: 'lease.acknowledge', deliveryId, ...(!isOpen && late) })
      },
      release: ({ mayHaveArrived = false } = {}) => {
        const mayBeSent = stored === undefined || state === 'stored'
        if (state === 'open') state = 'released'
        release({ mayHaveArrived: mayHaveArrived && mayBeSent })
      },
    })
  })
}
