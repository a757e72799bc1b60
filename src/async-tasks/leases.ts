/** Leases: a message that goes out holds exactly the entries whose text it carries, until it was accepted or refused. */
import type { SettledTaskInfo } from '../../machines/records.js'
import type { LeaseRequest } from '../../machines/task-table.js'
import type { RegistryCore } from './core.js'

/** Entries that one message carries. */
export interface TaskLease {
  /** The lease's id. */
  readonly deliveryId: string
  /** The records, in the order in which they ended. */
  readonly tasks: readonly SettledTaskInfo[]
  /**
   * The message was accepted: its entries are delivered. After `release` it means that the message was accepted after
   * all, and what of it is still owed is owed no longer. Calling it again does nothing.
   */
  readonly acknowledge: () => void
  /** The message was not accepted: its entries are owed again. Does nothing once the lease has ended. */
  readonly release: () => void
}

/** Takes a lease; undefined when there is nothing to take, or another exclusive delivery of the owner is in flight. */
export function takeLease(core: RegistryCore, request: LeaseRequest): TaskLease | undefined {
  return core.transact(() => {
    core.send({ type: 'lease.take', request })
    const lease = core.table.lease(request.deliveryId)
    if (lease === undefined) return undefined
    const { deliveryId } = request
    const entries = [...lease.entries]
    return Object.freeze({
      deliveryId,
      tasks: Object.freeze(entries.map((entry) => entry.record as SettledTaskInfo)),
      acknowledge: () => {
        const isOut = core.table.lease(deliveryId) === lease
        core.transact(() => core.send({ type: 'lease.acknowledge', deliveryId, ...(!isOut && { late: entries }) }))
      },
      release: () => core.transact(() => core.send({ type: 'lease.release', deliveryId })),
    })
  })
}
