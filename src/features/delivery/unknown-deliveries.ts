/** Handles the messages of a crashed process if the store does not say whether they arrived. */
import { Subscription } from 'rxjs'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { withTimeLimit } from '../../system/clock.js'
import { InvalidInputError } from '../../errors.js'
import { describeFailure } from '../../protocol/outcomes.js'
import type { StoredDelivery } from '../../store/store.js'
import type { Persistence } from '../../async-tasks/recovery/persistence.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'

/** Returns whether the host's transcript contains the message with this id; undefined if the host does not know. */
export type WasDelivered = (deliveryId: string) => boolean | undefined | Promise<boolean | undefined>

/** How long the host may take to answer for one message, in ms. */
const ANSWER_MS = 30_000

/**
 * Asks the host and the features about all messages at once. Each answer ends the lease of its message, so that a missing answer does not delay the others.
 * @returns the ids of the tasks that are owed again although they may have been delivered
 */
export async function settleUnknown(
  registry: TaskRegistry,
  persistence: Persistence,
  deliveries: readonly StoredDelivery[],
  wasDelivered: WasDelivered | undefined,
): Promise<string[]> {
  const uncertain = new Set<TaskEntry>()
  const settle = async (delivery: StoredDelivery): Promise<void> => {
    const { id: deliveryId, owner, isCommitted } = delivery
    let answer: boolean | undefined
    try {
      answer = isCommitted === true ? true : await (wasDelivered && answerOf(registry, deliveryId, wasDelivered))
    } catch (error) {
      registry.report(error, { source: 'delivery', owner, deliveryId })
    }
    if (registry.isDisposed) return
    // Asked last, because the host that creates the manager turns features on after that.
    answer = registry.wasDelivered(delivery) ?? answer
    const { entries = [], questions = [] } = registry.ledger.lease(deliveryId) ?? {}
    registry.batch(() => {
      // Removes the message before its lease is acknowledged. Otherwise its arrival would also confirm the messages that its owner has accepted since.
      persistence.forgetDelivery(deliveryId)
      if (answer === true) {
        registry.send({ type: 'lease.acknowledge', deliveryId })
      } else {
        if (answer === undefined) {
          for (const entry of [...entries, ...questions.map((question) => question.entry)]) uncertain.add(entry)
        }
        registry.send({ type: 'lease.release', deliveryId, isUncertain: answer === undefined })
      }
    })
  }
  await Promise.all(deliveries.map(settle))
  return [...uncertain].filter(({ record }) => record.delivery !== 'delivered').map(({ record }) => record.id)
}

/** Returns the host's answer; undefined if the registry is disposed first. Rejects if the host does not answer in time. */
async function answerOf(
  registry: TaskRegistry,
  deliveryId: string,
  wasDelivered: WasDelivered,
): Promise<boolean | undefined> {
  const call = `wasDelivered(${JSON.stringify(deliveryId)})`
  const late = (): never => {
    throw new Error(`${call} has not answered within ${ANSWER_MS / 1000} s.`)
  }
  const ask = async (): Promise<boolean | undefined> => {
    try {
      return await wasDelivered(deliveryId)
    } catch (cause) {
      throw new Error(`${call} failed: ${describeFailure(cause)}`, { cause })
    }
  }
  const disposal = new Subscription()
  const disposed = new Promise<undefined>((resolve) => {
    disposal.add(registry.notifications$.subscribe({ complete: () => resolve(undefined) }))
  })
  try {
    const given: unknown = await withTimeLimit(Promise.race([ask(), disposed]), {
      clock: registry.clock,
      ms: ANSWER_MS,
      late,
      label: { name: 'time limit of wasDelivered', kind: 'deadline' },
    })
    if (typeof given === 'boolean' || given === undefined) return given
    throw new InvalidInputError(call, given, 'a boolean or undefined')
  } finally {
    disposal.unsubscribe()
  }
}
