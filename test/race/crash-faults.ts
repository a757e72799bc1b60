/** Faults of durability, one promise at a time (K1 to K7, K10, K13): the races with crashes must find each. */
import { currentRuns } from '../../src/async-tasks/run-plan.js'
import type { AsyncTaskInfo } from '../../machines/records.js'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { Persistence } from '../../src/async-tasks/recovery/persistence.js'
import type { TaskRegistry } from '../../src/async-tasks/registry.js'
import type { Store, StoreChange } from '../../src/store/index.js'
import type { CrashSabotage } from './crash-world.js'

export interface CrashFault extends CrashSabotage {
  /** What is wrong, in kebab case. */
  readonly name: string
  readonly invariant: 'H6' | 'K1' | 'K2' | 'K3' | 'K4' | 'K5' | 'K6' | 'K7' | 'K10' | 'K13'
  readonly description: string
  /** The seed that finds it soon. Default 3. */
  readonly seed?: number
}

/** Changes the registry and what keeps it in step with the store. */
const withPersistence =
  (change: (persistence: Persistence, registry: TaskRegistry) => void) =>
  ({ registry }: AsyncTaskManager): void => {
    if (registry.persistence !== undefined) change(registry.persistence, registry)
  }

/** Makes several writes of one. */
const withWrites =
  (split: (changes: readonly StoreChange[]) => readonly (readonly StoreChange[])[]) =>
  (store: Store): Store => ({
    ...store,
    write: async (changes) => {
      for (const part of split(changes)) await store.write(part)
    },
  })

/** The end of a task without what is owed for it. */
function withoutDelivery(change: StoreChange): StoreChange | undefined {
  if (change.table !== 'tasks' || !('put' in change)) return undefined
  const { put } = change
  if (put.status === 'running' || put.delivery !== 'owed') return undefined
  return { table: 'tasks', put: { ...put, delivery: 'none', record: { ...put.record, delivery: 'none' } } }
}

const isRepeatedRun = (change: StoreChange): boolean =>
  change.table === 'tasks' && 'put' in change && change.put.status === 'running' && change.put.attempt > 1

export const crashFaults: readonly CrashFault[] = [
  {
    name: 'tool-results-of-a-failed-turn-delivered',
    seed: 8,
    invariant: 'H6',
    description: 'what tool calls have returned in a turn counts as delivered although the turn has failed',
    breakManager: ({ registry: { ledger } }) => {
      const release = ledger.release.bind(ledger)
      ledger.release = (id, isUncertain) =>
        isUncertain === true && id.startsWith('wait') ? ledger.acknowledge(id) : release(id, isUncertain)
    },
  },
  {
    name: 'run-before-stored',
    invariant: 'K1',
    description: 'a run starts although its launch has not been stored',
    breakManager: withPersistence((_, registry) => {
      registry.afterLaunch = (_entry, start) => start()
    }),
  },
  {
    name: 'refused-launch-written-later',
    seed: 1,
    invariant: 'K1',
    description: 'the row of a launch that was refused is written with the next write',
    breakManager: withPersistence((persistence) => {
      persistence.withdraw = () => undefined
    }),
  },
  {
    name: 'refused-launch-starts',
    seed: 1,
    invariant: 'K1',
    description: 'a run starts when the write of its launch has failed',
    breakManager: withPersistence((persistence) => {
      const after = persistence.after.bind(persistence)
      persistence.after = (wait) => after({ ...wait, ...(wait.onRefused && { onRefused: wait.onStored }) })
    }),
  },
  {
    name: 'told-before-written',
    seed: 4,
    invariant: 'K2',
    description: 'an end is notified and delivered before it is written',
    breakManager: withPersistence((persistence) => {
      const isSettled = persistence.isSettled.bind(persistence)
      persistence.isSettled = () => {
        isSettled()
        return true
      }
    }),
  },
  {
    name: 'end-and-owed-apart',
    invariant: 'K2',
    description: 'an end and what is owed for it are two writes',
    wrapStore: withWrites((changes) => {
      const ends = changes.flatMap((change) => withoutDelivery(change) ?? [])
      return ends.length === 0 ? [changes] : [ends, changes]
    }),
  },
  {
    name: 'torn-write',
    invariant: 'K2',
    description: 'the store is not atomic: it may die after a part of a write',
    wrapStore: withWrites((changes) => changes.map((change) => [change]).reverse()),
  },
  {
    name: 'lease-stored-after-message',
    invariant: 'K3',
    description: 'a message is handed out before its lease is written',
    breakManager: withPersistence((persistence, registry) => {
      const stored = persistence.stored.bind(persistence)
      const ask = registry.ask.bind(registry)
      registry.ask = (question) => {
        const answer = ask(question)
        if (question.type !== 'lease.take') return answer
        // The lease waits for its write next.
        persistence.stored = () => {
          persistence.stored = stored
          return Promise.resolve()
        }
        return answer
      }
    }),
  },
  {
    name: 'repeat-not-marked',
    seed: 5,
    invariant: 'K4',
    description: 'a result that may have been told is told again as if it were new',
    breakManager: withPersistence((_, registry) => {
      const release = registry.ledger.release.bind(registry.ledger)
      registry.ledger.release = (deliveryId) => release(deliveryId)
    }),
  },
  {
    name: 'accepted-lost-at-the-end',
    seed: 1,
    invariant: 'K5',
    description: 'a clean end does not confirm what was accepted',
    breakManager: withPersistence((persistence) => {
      persistence.confirmOwner = () => undefined
    }),
  },
  {
    name: 'sent-given-up-at-the-end',
    seed: 1,
    invariant: 'K4',
    description: 'a message whose turn was open at a clean end counts as refused',
    breakManager: withPersistence((persistence) => {
      persistence.keepSent = () => undefined
    }),
  },
  {
    name: 'repeat-not-confirmed',
    invariant: 'K5',
    description: 'a repeat that was accepted is unconfirmed like any other message',
    breakManager: withPersistence((persistence, registry) => {
      const onAccepted = persistence.onAccepted.bind(persistence)
      persistence.onAccepted = (id, carried) => {
        const entries = [...(registry.ledger.lease(id)?.entries ?? [])]
        const records = entries.map(({ record }) => record)
        for (const entry of entries) entry.record = { ...entry.record, isRepeat: undefined } as unknown as AsyncTaskInfo
        onAccepted(id, carried)
        entries.forEach((entry, at) => Object.assign(entry, { record: records[at] }))
      }
    }),
  },
  {
    name: 'abort-before-write',
    invariant: 'K6',
    description: 'a cancellation aborts the run, and is written then',
    breakManager: withPersistence((_, registry) => {
      const cancel = registry.cancel.bind(registry)
      registry.cancel = (entry) => {
        if (entry.ref !== undefined) currentRuns.get(entry)?.abort()
        return cancel(entry)
      }
    }),
  },
  {
    name: 'dead-run-completes',
    invariant: 'K7',
    description: 'what an earlier life has started completes the task that failed with that life',
    breakManager: (manager) => {
      const complete = manager.completeTask.bind(manager)
      const interrupted = new Set(manager.getAllTasks().flatMap(({ id, status }) => (status === 'failed' ? id : [])))
      manager.completeTask = (id, output) => {
        const entry = manager.registry.history.get(id)
        if (entry?.record.status !== 'failed' || !interrupted.has(id)) return complete(id, output)
        entry.record = { ...entry.record, status: 'completed', output: {} } as AsyncTaskInfo
        return true
      }
    },
  },
  {
    name: 'attempt-stored-later',
    invariant: 'K7',
    description: 'a run is repeated, and its attempt is stored with its end',
    wrapStore: withWrites((changes) => [changes.filter((change) => !isRepeatedRun(change))]),
  },
  {
    name: 'failed-write-forgotten',
    invariant: 'K10',
    description: 'a write that failed counts as written',
    wrapStore: (store) => ({
      ...store,
      write: async (changes) => {
        await store.write(changes).catch(() => undefined)
      },
    }),
  },
]

/** Faults of polite stops: the races in which the host ends politely at any point must find each. */
export const stopFaults: readonly CrashFault[] = [
  {
    name: 'tasks-cancelled-at-a-stop',
    invariant: 'K13',
    description: 'a polite end cancels active tasks although there is a store',
    breakManager: (manager) => {
      const dispose = manager.dispose.bind(manager)
      manager.dispose = () => dispose({ cancel: true })
    },
  },
  {
    name: 'stop-uses-up-an-attempt',
    invariant: 'K13',
    description: 'a polite end is not noted in the row, so that it uses up an attempt as a crash does',
    breakManager: withPersistence((persistence) => {
      persistence.addSuspension = () => undefined
    }),
  },
  {
    name: 'output-of-a-stopped-run-dropped',
    invariant: 'K13',
    description: 'a stopped run completes its task in memory, and the store is not told',
    breakManager: ({ registry }) => {
      registry.complete = () => undefined
    },
  },
]
