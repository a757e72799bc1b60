/** Faults of what wakes an agent and holds tasks back (F15 to F19): the races must find each. */
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { Store, StoreChange } from '../../src/store/index.js'
import type { WakingSabotage } from './waking-world.js'

export interface WakingFault extends WakingSabotage {
  /** What is wrong, in kebab case. */
  readonly name: string
  readonly invariant: 'F15' | 'F16' | 'F17' | 'F18' | 'F19'
  readonly description: string
  /** The seed that finds it soon. Default 3. */
  readonly seed?: number
}

const isState =
  (feature: string) =>
  (change: StoreChange): boolean =>
    change.table === 'featureStates' && ('put' in change ? change.put.id : change.remove).startsWith(`${feature}/`)

/** Writes these changes before the others, or after them, in a write of their own. */
const splitOff =
  (isMeant: (change: StoreChange) => boolean, when: 'before' | 'after') =>
  (store: Store): Store => ({
    ...store,
    write: async (changes) => {
      const parts = [changes.filter(isMeant), changes.filter((change) => !isMeant(change))]
      if (when === 'after') parts.reverse()
      for (const part of parts) if (part.length > 0) await store.write(part)
    },
  })

/** Never writes these changes. */
const without =
  (isMeant: (change: StoreChange) => boolean) =>
  (store: Store): Store => ({
    ...store,
    write: (changes) => store.write(changes.filter((change) => !isMeant(change))),
  })

export const wakingFaults: readonly WakingFault[] = [
  {
    name: 'dependency-starts-early',
    seed: 4,
    invariant: 'F15',
    description: 'a task does not wait for the tasks that it names',
    breakManager: ({ registry }: AsyncTaskManager) => {
      for (const { queue } of [...registry.pools.all()]) {
        const add = queue.add.bind(queue)
        queue.add = (entry, ticket, reasons) =>
          add(
            entry,
            ticket,
            reasons?.filter((reason) => reason !== 'dependencies'),
          )
      }
    },
  },
  {
    name: 'firing-lost-in-a-crash',
    seed: 2,
    invariant: 'F16',
    description: 'a schedule is stored as fired before what it owes is stored',
    wrapStore: splitOff(isState('schedules'), 'before'),
  },
  {
    name: 'firing-repeated-after-a-crash',
    invariant: 'F16',
    description: 'what a schedule owes is stored before it is stored as fired',
    wrapStore: splitOff(isState('schedules'), 'after'),
  },
  {
    name: 'schedule-not-stored',
    seed: 2,
    invariant: 'F16',
    description: 'a crash loses every schedule',
    wrapStore: without(isState('schedules')),
  },
  {
    name: 'event-after-the-end',
    invariant: 'F17',
    description: 'the row of a monitor stays when it has ended: it goes on after a crash',
    wrapStore: without((change) => isState('monitors')(change) && 'remove' in change),
  },
  {
    name: 'monitor-not-stored',
    seed: 2,
    invariant: 'F17',
    description: 'a crash loses every monitor, and nobody is told of its end',
    wrapStore: without(isState('monitors')),
  },
  {
    name: 'key-exceeded-after-requeue',
    seed: 4,
    invariant: 'F18',
    description: 'the second run of a task does not take its key',
    breakManager: ({ registry }: AsyncTaskManager) => {
      const { limits } = registry
      const take = limits.take.bind(limits)
      limits.take = (entry, needs) => {
        if (entry.record.attempt === undefined) take(entry, needs)
      }
    },
  },
  {
    name: 'key-not-taken-after-a-crash',
    invariant: 'F18',
    description: 'a run that is repeated after a crash gives its key back before it has ended',
    breakManager: ({ registry, recovered }: AsyncTaskManager) => {
      void recovered.then(({ retried }) => {
        for (const id of retried) {
          const entry = registry.history.get(id)
          if (entry !== undefined) registry.limits.release(entry)
        }
      })
    },
  },
  {
    name: 'pause-ignored',
    seed: 1,
    invariant: 'F19',
    description: 'a pause holds no place back in the queue',
    breakManager: ({ registry }: AsyncTaskManager) => {
      for (const { queue } of registry.pools.all()) {
        const hold = queue.hold.bind(queue)
        queue.hold = (entry, reason) => (reason === 'pause' ? false : hold(entry, reason))
      }
    },
  },
  {
    name: 'pause-not-stored',
    seed: 5,
    invariant: 'F19',
    description: 'a crash ends every pause',
    wrapStore: without(isState('pauses')),
  },
]
