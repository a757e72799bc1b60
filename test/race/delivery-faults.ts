/**
 * Faults planted in delivery (A5, A6, A9, and D1 to D5 of the machine), and the property that must catch each. Each fault is a public
 * option, or wraps what a constructor returned.
 */
import { map, Observable, skip } from 'rxjs'
import type { DeliveryMachine } from '../../machines/delivery.js'
import type { DeliveryTransition } from '../../machines/records.js'
import type { RegistryNotification } from '../../machines/journal.js'
import type { Ledger } from '../../machines/ledger.js'
import type { TaskRegistry } from '../../src/async-tasks/registry.js'
import type { LeasedReminder } from '../../src/async-tasks/reminder-service.js'
import type { PlantedFault } from '../support/planted-faults.js'
import type { Sabotage } from '../support/subject.js'
import { alterChart, stateAt, takeAway } from './altered-chart.js'
import { delivery } from './delivery.property.js'
import { deliveryTiming } from './timing.property.js'

type LeaseMethod = 'take' | 'acknowledge' | 'release' | 'acceptLate'

/** A ledger that does something else where it should take, acknowledge or release a lease; `method` is the original. */
function ledgerThat<Name extends LeaseMethod>(
  name: Name,
  act: (method: Ledger[Name], args: Parameters<Ledger[Name]>, registry: TaskRegistry) => unknown,
): Sabotage {
  return {
    wrapManager: (manager) => {
      const { ledger } = manager.registry
      const method = ledger[name].bind(ledger) as Ledger[Name]
      ledger[name] = ((...args: Parameters<Ledger[Name]>) => act(method, args, manager.registry)) as Ledger[Name]
      return manager
    },
  }
}

/** A registry that does not emit some of its notifications. */
function silent(isHidden: (notification: RegistryNotification) => boolean): Sabotage {
  return {
    wrapManager: (manager) => {
      const { notifications$ } = manager.registry
      const emit = notifications$.next.bind(notifications$)
      notifications$.next = (notification) => {
        if (!isHidden(notification)) emit(notification)
      }
      return manager
    },
  }
}

/** A reminder service whose leased reminders are replaced. */
function remindersThat(
  replace: (lease: LeasedReminder, reminders: Parameters<NonNullable<Sabotage['wrapReminders']>>[0]) => LeasedReminder,
): Sabotage {
  return {
    wrapReminders: (reminders) =>
      overriding(reminders, {
        leaseReminder: (request) => {
          const lease = reminders.leaseReminder(request)
          return lease && replace(lease, reminders)
        },
      }),
  }
}

/** An object with some of its methods replaced. */
function overriding<T extends object>(target: T, methods: Partial<T>): T {
  return new Proxy(target, {
    get: (_, key) => {
      if (key in methods) return methods[key as keyof T]
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

const withMachine = (machine: DeliveryMachine): Sabotage => ({ triggerOptions: (options) => ({ ...options, machine }) })

/** A trigger whose chart has been altered. */
const chartThat = (alter: Parameters<typeof alterChart>[0]): Sabotage => withMachine(alterChart(alter))

const isOwedAgain = (notification: RegistryNotification): boolean =>
  notification.type === 'transition' &&
  notification.transition.from === 'leased' &&
  (notification.transition as DeliveryTransition).to === 'owed'

export const deliveryFaults: readonly PlantedFault[] = [
  {
    name: 'acknowledges-all-that-is-owed',
    invariant: 'A5',
    description: 'An accepted message acknowledges whatever is owed by then, as markAllNotified does.',
    property: delivery,
    ...ledgerThat('acknowledge', (acknowledge, [deliveryId], { ledger }) => {
      acknowledge(deliveryId)
      for (const entry of ledger.owed()) ledger.markDelivered(entry)
    }),
  },
  {
    name: 'acknowledges-a-refused-message',
    invariant: 'A5',
    description: 'A message that was refused counts as accepted.',
    property: delivery,
    ...ledgerThat('release', (_release, [deliveryId], { ledger }) => ledger.acknowledge(deliveryId)),
  },
  {
    name: 'returns-an-accepted-message',
    invariant: 'A5',
    description: 'What an accepted message carried is owed again.',
    property: delivery,
    ...ledgerThat('acknowledge', (_acknowledge, [deliveryId], { ledger }) => ledger.release(deliveryId)),
  },
  {
    name: 'forgets-a-late-acceptance',
    invariant: 'A5',
    description: 'A message that is accepted after it was given up leaves what it carried owed.',
    property: delivery,
    ...ledgerThat('acceptLate', () => undefined),
  },
  {
    name: 'acknowledges-before-the-turn',
    invariant: 'A5',
    description: 'A message counts as accepted when it goes out.',
    property: delivery,
    ...remindersThat((lease) => {
      lease.acknowledge()
      return lease
    }),
  },
  {
    name: 'words-without-a-lease',
    invariant: 'A5',
    description: 'The reminder holds nothing while it is on its way, and marks all that is owed when it is accepted.',
    property: delivery,
    ...remindersThat((lease, reminders) => {
      lease.release()
      return { ...lease, acknowledge: () => reminders.markAllNotified(), release: () => undefined }
    }),
  },
  {
    name: 'two-deliveries-in-flight',
    invariant: 'A6',
    description: 'The manager gives an owner a second exclusive lease while one is out.',
    property: delivery,
    ...ledgerThat('take', (take, [request]) => take({ ...request, isExclusive: false })),
  },
  {
    name: 'silent-end-of-a-delivery',
    invariant: 'A6',
    description: 'Nobody hears that a delivery which kept others from starting was refused.',
    property: delivery,
    ...silent(({ type }) => type === 'lease.ended'),
  },
  {
    name: 'silent-return-of-a-lease',
    invariant: 'A6',
    description: 'Nobody hears that what a reminder carried is owed again.',
    property: delivery,
    ...silent(isOwedAgain),
  },
  {
    name: 'misses-the-first-value-of-busy',
    invariant: 'A6',
    description: 'An Observable that replays its value is believed from its second value on.',
    property: delivery,
    wrapBusy: (source) => (source instanceof Observable ? source.pipe(skip(1)) : source),
  },
  {
    name: 'believes-in-an-idle-agent',
    invariant: 'A6',
    description: 'Whatever an Observable says, the agent is taken for idle.',
    property: delivery,
    wrapBusy: (source) => (source instanceof Observable ? source.pipe(map(() => false)) : source),
  },
  {
    name: 'd1-gives-up-a-delivery-for-the-next',
    invariant: 'A6',
    description: 'An end during a delivery starts another, as if the first were over.',
    property: delivery,
    ...chartThat((chart) => {
      stateAt(chart, 'delivering').on = { 'delivery.requested': '#delivery.holding' }
    }),
  },
  {
    name: 'd2-asks-a-busy-agent-once',
    invariant: 'A6',
    description: 'An agent that has to be asked whether it is busy is not asked again.',
    property: delivery,
    ...chartThat((chart) => takeAway(stateAt(chart, 'holding', 'polling').after, 'poll')),
  },
  {
    name: 'd2-does-not-hear-an-idle-edge',
    invariant: 'A6',
    description: 'A busy agent that becomes idle is not brought what is owed.',
    property: delivery,
    ...chartThat((chart) => takeAway(stateAt(chart, 'holding', 'waiting').on, 'agent.idle')),
  },
  {
    name: 'd3-does-not-look-again',
    invariant: 'A6',
    description: 'What ended during a delivery is left lying when it is accepted.',
    property: delivery,
    ...chartThat((chart) => {
      stateAt(chart, 'delivering', 'attended').on['delivery.accepted'] = '#delivery.dormant'
    }),
  },
  {
    name: 'd4-never-retries',
    invariant: 'A6',
    description: 'A refused delivery is tried again only when the agent becomes idle.',
    property: delivery,
    ...chartThat((chart) => takeAway(stateAt(chart, 'backingOff').after, 'backOff')),
  },
  {
    name: 'd4-retries-at-one-pace',
    invariant: 'A6',
    description: 'The back-off does not grow.',
    property: deliveryTiming,
    ...withMachine(
      alterChart(() => undefined).provide({ delays: { backOff: ({ context }) => context.timing.retryInitialMs } }),
    ),
  },
  {
    name: 'd4-remembers-old-failures',
    invariant: 'A6',
    description: 'A success does not reset the back-off.',
    property: deliveryTiming,
    ...withMachine(alterChart(() => undefined).provide({ actions: { resetFailures: () => undefined } })),
  },
  {
    name: 'd5-asks-after-unsubscribe',
    invariant: 'A9',
    description: 'A trigger that waits for its agent goes on asking it after unsubscribe.',
    property: delivery,
    ...chartThat((chart) => takeAway(stateAt(chart, 'holding').on, 'trigger.detach')),
  },
  {
    name: 'd5-retries-after-unsubscribe',
    invariant: 'A9',
    description: 'A delivery that is refused after unsubscribe is tried again.',
    property: delivery,
    ...chartThat((chart) => {
      stateAt(chart, 'delivering', 'unattended').on['delivery.refused'] = '#delivery.backingOff'
    }),
  },
  {
    name: 'goes-on-after-dispose',
    invariant: 'A9',
    description: 'The charts of deliveries are not closed with the registry.',
    property: delivery,
    ...chartThat((chart) => takeAway(chart.on, 'trigger.close')),
  },
  {
    name: 'unsubscribe-does-nothing',
    invariant: 'A9',
    description: 'The function that subscribe returns ends nothing.',
    property: delivery,
    wrapTrigger: (trigger) =>
      overriding(trigger, {
        subscribe: () => {
          trigger.subscribe()
          return () => undefined
        },
      }),
  },
  {
    name: 'calls-what-was-replaced',
    invariant: 'A9',
    description: 'updateCallbacks changes nothing.',
    property: delivery,
    wrapTrigger: (trigger) => overriding(trigger, { updateCallbacks: () => undefined }),
  },
]
