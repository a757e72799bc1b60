/**
 * Planted faults of delivery (A5, A6, A9, and D1 to D5 of its machine), each with the property that must notice it. They use public
 * options, or wrap what the constructors return.
 */
import { map, Observable, skip } from 'rxjs'
import type { DeliveryMachine } from '../../machines/delivery.js'
import type { DeliveryTransition } from '../../machines/transitions.js'
import type { RegistryNotification } from '../../machines/change-feed.js'
import type { Ledger } from '../../machines/ledger.js'
import type { TaskRegistry } from '../../src/async-tasks/registry.js'
import { waitForTasks } from '../../src/async-tasks/waiting.js'
import type { AsyncTaskManager, OutputObject, TaskHandle } from '../../src/index.js'
import { overriding } from '../support/overriding.js'
import type { PlantedFault } from '../support/planted-faults.js'
import type { Sabotage } from '../support/subject.js'
import { alterMachine, remove, stateAt } from './altered-machine.js'
import { delivery } from './delivery.property.js'
import { deliveryTiming } from './timing.property.js'
import type { SettledTaskInfo } from '../../machines/records.js'
import type { LeasedReminder } from '../../src/parts.js'

type LeaseMethod = 'take' | 'acknowledge' | 'release' | 'acceptLate' | 'transfer'

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

/** Handles whose results are read in another way. */
function handlesThat(read: (handle: TaskHandle, manager: AsyncTaskManager) => Promise<OutputObject>): Sabotage {
  return {
    wrapHandle: (handle, manager) => {
      let result: Promise<OutputObject> | undefined
      return overriding(handle, {
        get result() {
          return (result ??= read(handle, manager))
        },
      })
    },
  }
}

const withMachine = (machine: DeliveryMachine): Sabotage => ({ triggerOptions: (options) => ({ ...options, machine }) })

/** A trigger with an altered machine. */
const machineThat = (alter: Parameters<typeof alterMachine>[0]): Sabotage => withMachine(alterMachine(alter))

const isOwedAgain = (notification: RegistryNotification): boolean =>
  notification.type === 'transition' &&
  notification.transition.from === 'leased' &&
  (notification.transition as DeliveryTransition).to === 'owed'

export const deliveryFaults: readonly PlantedFault[] = [
  {
    name: 'acknowledges-all-that-is-owed',
    invariant: 'A5',
    description: 'An accepted message acknowledges everything that is owed by then, as markAllNotified does.',
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
    name: 'repeats-a-turn-as-a-new-message',
    invariant: 'H6',
    description: 'A turn that has failed is repeated under another id, together with what has ended since.',
    property: delivery,
    ...ledgerThat('release', (release, [deliveryId]) => release(deliveryId)),
  },
  {
    name: 'returns-an-accepted-message',
    invariant: 'A5',
    description: 'The results of an accepted message are owed again.',
    property: delivery,
    ...ledgerThat('acknowledge', (_acknowledge, [deliveryId], { ledger }) => ledger.release(deliveryId)),
  },
  {
    name: 'forgets-a-late-acceptance',
    invariant: 'A5',
    description: 'The results of a message that is accepted after it expired stay owed.',
    property: delivery,
    ...ledgerThat('acceptLate', () => undefined),
  },
  {
    name: 'transfers-only-what-runs',
    invariant: 'A5',
    description: 'The owner to whom a single task is transferred does not get a result that is owed already.',
    property: delivery,
    ...ledgerThat('transfer', (transfer, [owner, heir, ids], { ledger }) => {
      const running = new Set(ledger.running(owner).map(({ record }) => record.id))
      transfer(owner, heir, new Set([...ids].filter((id) => running.has(id))))
    }),
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
    name: 'leases-what-has-no-room',
    invariant: 'A5',
    description: 'A message leases everything that is owed, also the results that do not fit into it.',
    property: delivery,
    ...ledgerThat('take', (take, [{ taskIds, ...request }]) =>
      take(request.isClaim === true && taskIds !== undefined ? { ...request, taskIds } : request),
    ),
  },
  {
    name: 'reminds-without-a-lease',
    invariant: 'A5',
    description: 'The reminder leases nothing, and marks everything that is owed when it is accepted.',
    property: delivery,
    ...remindersThat((lease, reminders) => {
      lease.release()
      return { ...lease, acknowledge: () => reminders.markAllNotified(), release: () => undefined }
    }),
  },
  {
    name: 'handle-claims-nothing',
    invariant: 'H1',
    description: 'A result that is read before the end is not claimed: a message delivers it too.',
    property: delivery,
    ...handlesThat(async (handle, { settled$ }) => {
      await new Promise<SettledTaskInfo>((resolve) => {
        const subscription = settled$.subscribe((task) => {
          if (task.id !== handle.id) return
          subscription.unsubscribe()
          resolve(task)
        })
        if (handle.record.completedAt !== undefined) resolve(handle.record)
      })
      return handle.result
    }),
  },
  {
    name: 'handle-takes-what-a-message-holds',
    invariant: 'H1',
    description: 'A result that is read while a message holds it counts as delivered, also when that is refused.',
    property: delivery,
    ...handlesThat(async (handle, manager) => {
      await manager.waitFor([handle.id])
      return handle.result
    }),
  },
  {
    name: 'handle-owes-what-it-returned',
    invariant: 'H1',
    description: 'A result that the handle has returned is owed again.',
    property: delivery,
    ...handlesThat(async (handle, { registry }) => {
      await waitForTasks(registry, [handle.id], { hold: ({ release }) => release() }, `wait of ${handle.id}`)
      return handle.record.output ?? handle.result
    }),
  },
  {
    name: 'unread-handle-claims',
    invariant: 'H1',
    description: 'A handle takes the result of its task, although nobody reads it.',
    property: delivery,
    wrapHandle: (handle) => {
      handle.result.catch(() => undefined)
      return handle
    },
  },
  {
    name: 'handle-waits-for-ever',
    invariant: 'H1',
    description: 'A result that is read never settles when everything is disposed.',
    property: delivery,
    ...handlesThat(async (handle, manager) => {
      const output = await handle.result.catch((error: unknown) => ({ error }))
      if (manager.registry.isDisposed) await new Promise(() => undefined)
      return 'error' in output ? handle.result : output
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
    description: 'The end of a refused exclusive delivery is not emitted.',
    property: delivery,
    ...silent(({ type }) => type === 'lease.ended'),
  },
  {
    name: 'silent-return-of-a-lease',
    invariant: 'A6',
    description: 'It is not emitted that the results of a refused reminder are owed again.',
    property: delivery,
    ...silent(isOwedAgain),
  },
  {
    name: 'misses-the-first-value-of-busy',
    invariant: 'A6',
    description: 'The first value of an Observable is ignored.',
    property: delivery,
    wrapBusy: (source) => (source instanceof Observable ? source.pipe(skip(1)) : source),
  },
  {
    name: 'believes-in-an-idle-agent',
    invariant: 'A6',
    description: 'The agent counts as idle, whatever the Observable emits.',
    property: delivery,
    wrapBusy: (source) => (source instanceof Observable ? source.pipe(map(() => false)) : source),
  },
  {
    name: 'd1-starts-the-next-during-a-delivery',
    invariant: 'A6',
    description: 'A task that ends during a delivery starts another one.',
    property: delivery,
    ...machineThat((machine) => {
      stateAt(machine, 'delivering').on = { 'delivery.requested': '#delivery.holding' }
    }),
  },
  {
    name: 'd2-asks-a-busy-agent-once',
    invariant: 'A6',
    description: 'A busy agent with a function isAgentBusy is asked only once.',
    property: delivery,
    ...machineThat((machine) => remove(stateAt(machine, 'holding', 'polling').after, 'poll')),
  },
  {
    name: 'd2-asks-a-polled-agent-late',
    invariant: 'A6',
    description: 'A result that becomes owed between two polls waits for the next one, although the agent is idle.',
    property: deliveryTiming,
    ...machineThat((machine) => remove(stateAt(machine, 'holding', 'polling').on, 'delivery.requested')),
  },
  {
    name: 'd2-ignores-an-idle-edge',
    invariant: 'A6',
    description: 'An agent that becomes idle does not get what is owed.',
    property: delivery,
    ...machineThat((machine) => remove(stateAt(machine, 'holding', 'waiting').on, 'agent.idle')),
  },
  {
    name: 'd3-does-not-look-again',
    invariant: 'A6',
    description: 'Results of tasks that ended during an accepted delivery get no wake-up.',
    property: delivery,
    ...machineThat((machine) => {
      stateAt(machine, 'delivering', 'attended').on['delivery.accepted'] = '#delivery.dormant'
    }),
  },
  {
    name: 'd4-never-retries',
    invariant: 'A6',
    description: 'A refused delivery is retried only when the agent becomes idle.',
    property: delivery,
    ...machineThat((machine) => remove(stateAt(machine, 'backingOff').after, 'backOff')),
  },
  {
    name: 'd4-retries-at-one-pace',
    invariant: 'A6',
    description: 'The back-off does not grow.',
    property: deliveryTiming,
    ...withMachine(
      alterMachine(() => undefined).provide({ delays: { backOff: ({ context }) => context.timing.retryInitialMs } }),
    ),
  },
  {
    name: 'd4-remembers-old-failures',
    invariant: 'A6',
    description: 'A success does not reset the back-off.',
    property: deliveryTiming,
    ...withMachine(alterMachine(() => undefined).provide({ actions: { resetFailures: () => undefined } })),
  },
  {
    name: 'd4-waits-past-the-longest-back-off',
    invariant: 'A6',
    description: 'The back-off grows past retryMaxMs.',
    property: deliveryTiming,
    ...withMachine(
      alterMachine(() => undefined).provide({
        delays: {
          backOff: ({ context: { timing, failures } }) => timing.retryInitialMs * 2 ** Math.max(0, failures - 1),
        },
      }),
    ),
  },
  {
    name: 'd2-keeps-old-durations',
    invariant: 'A6',
    description:
      'The durations of a replaced source do not apply: a function that replaces an Observable is not polled.',
    property: delivery,
    ...withMachine(alterMachine(() => undefined).provide({ actions: { setTiming: () => undefined } })),
  },
  {
    name: 'd2-keeps-old-durations-during-a-delivery',
    invariant: 'A6',
    description: 'The durations of a source that is replaced during a delivery do not apply after it.',
    property: delivery,
    ...machineThat((machine) => {
      for (const state of ['attended', 'unattended']) stateAt(machine, 'delivering', state).on['timing.set'] = {}
    }),
  },
  {
    name: 'd5-asks-after-unsubscribe',
    invariant: 'A9',
    description: 'A trigger that waits for its agent keeps asking it after unsubscribe.',
    property: delivery,
    ...machineThat((machine) => remove(stateAt(machine, 'holding').on, 'trigger.detach')),
  },
  {
    name: 'd5-retries-after-unsubscribe',
    invariant: 'A9',
    description: 'A delivery that is refused after unsubscribe is retried.',
    property: delivery,
    ...machineThat((machine) => {
      stateAt(machine, 'delivering', 'unattended').on['delivery.refused'] = '#delivery.backingOff'
    }),
  },
  {
    name: 'goes-on-after-dispose',
    invariant: 'A9',
    description: 'The delivery actors do not stop when the registry is disposed.',
    property: delivery,
    ...machineThat((machine) => remove(machine.on, 'trigger.close')),
  },
  {
    name: 'unsubscribe-does-nothing',
    invariant: 'A9',
    description: 'The unsubscribe function does nothing.',
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
    description: 'updateCallbacks does nothing.',
    property: delivery,
    wrapTrigger: (trigger) => overriding(trigger, { updateCallbacks: () => undefined }),
  },
]
