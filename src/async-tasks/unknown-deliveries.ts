/** After a crash: the messages of which the store does not know whether they arrived. */
import type { TaskEntry } from '../../machines/task-entry.js'
import { InvalidInputError } from '../errors.js'
import type { StoredDelivery } from '../store/store.js'
import type { Persistence } from './persistence.js'
import type { TaskRegistry } from './registry.js'

/** Whether a message with this id is in the transcript of the host; undefined if that is not known. */
export type WasDelivered = (deliveryId: string) => boolean | undefined | Promise<boolean | undefined>

/**
 * Asks the host for each message, in their order, and ends the lease that holds its results.
 * @returns the tasks that are owed again although they may have been delivered
 */
export async function settleUnknown(
  registry: TaskRegistry,
  persistence: Persistence,
  deliveries: readonly StoredDelivery[],
  wasDelivered: WasDelivered | undefined,
): Promise<string[]> {
  const uncertain = new Set<TaskEntry>()
  for (const { id: deliveryId, owner } of deliveries) {
    let answer: boolean | undefined
    try {
      const given: unknown = await wasDelivered?.(deliveryId)
      if (typeof given !== 'boolean' && given !== undefined) {
        throw new InvalidInputError(`wasDelivered(${JSON.stringify(deliveryId)})`, given, 'a boolean or undefined')
      }
      answer = given
    } catch (error) {
      registry.report(error, { source: 'delivery', owner, deliveryId })
    }
    if (registry.isDisposed) break
    const entries = registry.ledger.lease(deliveryId)?.entries ?? []
    registry.batch(() => {
      if (answer === true) {
        registry.send({ type: 'lease.acknowledge', deliveryId })
      } else {
        if (answer === undefined) {
          for (const entry of entries) {
            registry.markRepeat(entry)
            uncertain.add(entry)
          }
        }
        registry.send({ type: 'lease.release', deliveryId })
      }
      persistence.forgetDelivery(deliveryId)
    })
  }
  return [...uncertain].filter(({ record }) => record.delivery !== 'delivered').map(({ record }) => record.id)
}
