/** Accepts the message of a turn in a transaction of the host (`TurnDelivery.acceptIn`, promise K5). */
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { InvalidInputError } from '../../errors.js'
import { accepts, objectWith } from '../../protocol/option-checks.js'
import { keptTurns } from '../kept-turns/kept-turns.js'
import type { TurnLease } from '../../isolation/current-turn.js'
import type { DeliveryAcceptance } from '../../store/store.js'

type EndedLease = Pick<TurnLease, 'acknowledge' | 'release'>

type Client = Parameters<DeliveryAcceptance['accept']>[0]

const aClient = objectWith('a client of the database of the store, such as one of pg', 'query')

/**
 * Returns the method of a delivery, and the functions that end its lease. If the host has called the method, the database says whether its message has
 * arrived, and not whether the turn has failed.
 */
export function accepting(
  registry: TaskRegistry,
  { deliveryId, acknowledge, release }: { readonly deliveryId: string } & EndedLease,
): EndedLease & { readonly acceptIn: (client: Client) => Promise<void> } {
  const { persistence } = registry
  let isTried = false
  let isSettling = false
  const settle = async (how: Parameters<EndedLease['release']>[0]): Promise<void> => {
    if (isSettling) return
    isSettling = true
    try {
      if ((await persistence?.isCommitted(deliveryId)) === true) committed()
      else release(how)
    } catch {
      // The store is lost or closed. The next process finds out.
    }
  }
  const committed = (): void =>
    registry.batch(() => {
      acknowledge()
      persistence?.confirmDelivery(deliveryId)
    })
  return {
    acceptIn: async (client) => {
      if (!accepts(aClient, client)) throw new InvalidInputError('client', typeof client, aClient.expected)
      if (persistence === undefined) {
        throw new InvalidInputError('store', undefined, 'a store in PostgreSQL, for acceptIn')
      }
      if (registry.use(keptTurns).isOn) throw new InvalidInputError('options.keepTurns', true, '0, for acceptIn')
      isTried = true
      await persistence.acceptIn(client, deliveryId)
    },
    acknowledge: () => (isTried ? committed() : acknowledge()),
    release: (how) => (isTried ? void settle(how) : release(how)),
  }
}
