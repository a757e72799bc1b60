/**
 * Faults that are planted in the registry, each against one invariant, with the property that must catch the fault. The faults of delivery (A5, A6 and
 * the trigger's part of A9) are in test/race/delivery-faults.ts.
 *
 * A fault is a public option, or a wrapper around a manager or a part of its registry. The code in src knows nothing of faults. The file is long because
 * it is one list.
 */
import { abortLinks } from '../../src/features/families/abort-link.js'
import { runs } from '../../src/async-tasks/run-plan.js'
import { taskWatchers } from '../../src/async-tasks/task-watchers.js'
import type fc from 'fast-check'
import type { History } from '../../machines/history.js'
import type { RegistryNotification } from '../../machines/change-feed.js'
import type { AsyncTaskInfo } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import type { AsyncTaskManagerOptions } from '../../src/async-tasks/manager-options.js'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { TaskRegistry } from '../../src/async-tasks/registry.js'
import { costProperty } from '../model/cost.property.js'
import { namesakeProperty, registryProperty } from '../model/registry.property.js'
import type { Sabotage, Subject } from './subject.js'

type Invariant = 'F4' | 'H1' | 'H6' | 'A1' | 'A2' | 'A3' | 'A4' | 'A5' | 'A6' | 'A7' | 'A8' | 'A9' | 'A10'

/** A property that takes the subject to test. Its file must not import vitest. */
export interface SubjectProperty {
  readonly name: string
  readonly create: (subject: Subject) => fc.IRawProperty<unknown>
}

export interface PlantedFault extends Sabotage {
  /** A name for what is wrong, in kebab case. */
  readonly name: string
  readonly invariant: Invariant
  readonly description: string
  /** The property that must catch the fault. */
  readonly property: SubjectProperty
  /** How many inputs the property may need to catch the fault. Default 2000. */
  readonly maxRuns?: number
}

const registry: SubjectProperty = { name: 'registry', create: registryProperty }
const namesake: SubjectProperty = { name: 'namesake', create: namesakeProperty }
const cost: SubjectProperty = { name: 'cost', create: costProperty }

type Wrap = (manager: AsyncTaskManager) => AsyncTaskManager
type Ending = (registry: TaskRegistry, entry: TaskEntry, end: () => void) => void

/** Changes a part of the registry. */
const withRegistry =
  (change: (registry: TaskRegistry) => void): Wrap =>
  (manager) => {
    change(manager.registry)
    return manager
  }

/** Changes what the ledger does when a task's actor has ended. */
const withEnding = (change: Ending): Wrap =>
  withRegistry((registry) => {
    const { ledger } = registry
    const end = ledger.end.bind(ledger)
    ledger.end = (entry, ...rest) => change(registry, entry, () => end(entry, ...rest))
  })

const { ended: unlink } = abortLinks()

/** Changes which record is pruned next. */
const withPruning = (
  change: (history: History, prune: () => TaskEntry | undefined, max: number) => TaskEntry | undefined,
): Wrap =>
  withRegistry(({ history, pools }) => {
    const prune = history.prune.bind(history)
    history.prune = () => change(history, prune, pools.task.max)
  })

/** Changes how notifications reach the streams. */
const withNotifications = (
  change: (notification: RegistryNotification, emit: (notification: RegistryNotification) => void) => void,
): Wrap =>
  withRegistry(({ notifications$ }) => {
    const emit = notifications$.next.bind(notifications$)
    notifications$.next = (notification) => change(notification, emit)
  })

/** Lets a registration overlook a retained task with the same id. */
const withIdsTaken = (canTake: (entry: TaskEntry) => boolean): Wrap =>
  withRegistry((registry) => {
    const { history } = registry
    const ask = registry.ask.bind(registry)
    registry.ask = (question) => {
      if (question.type !== 'task.register') return ask(question)
      const get = history.get.bind(history)
      history.get = (id) => {
        history.get = get
        const entry = get(id)
        return entry !== undefined && canTake(entry) ? undefined : entry
      }
      return ask(question)
    }
  })

const isEndOf = (notification: RegistryNotification): boolean =>
  notification.type === 'transition' &&
  notification.transition.kind === 'status' &&
  notification.transition.to !== 'running'

const HANDLERS = { completed: 'onTaskCompleted', failed: 'onTaskFailed', cancelled: 'onTaskCancelled' } as const
type Handler = (task: never) => void

/** Replaces what the three methods for subscriptions do. `on` is the original. */
function changeHandlers(
  manager: AsyncTaskManager,
  change: (handler: Handler, on: (handler: Handler) => () => void) => () => void,
): AsyncTaskManager {
  for (const method of Object.values(HANDLERS)) {
    const on = manager[method].bind(manager) as (handler: Handler) => () => void
    manager[method] = (handler: Handler) => change(handler, on)
  }
  return manager
}

const endedOf = (history: History): TaskEntry[] =>
  [...history.entries()].filter(({ record }) => record.status !== 'running').sort((a, b) => a.record.seq - b.record.seq)

const withoutMonotonicTime = (options: AsyncTaskManagerOptions): AsyncTaskManagerOptions => {
  const { clock } = options
  return clock === undefined ? options : { ...options, clock: { ...clock, monotonic: () => clock.now() } }
}

const isOwed = ({ record }: TaskEntry): boolean => record.delivery === 'owed' || record.delivery === 'leased'

export const registryFaults: readonly PlantedFault[] = [
  {
    name: 'reason-lost',
    invariant: 'F4',
    description: 'a cancellation is not told why',
    property: registry,
    wrapManager: withRegistry((broken) => {
      const cancelAll = broken.cancelAll.bind(broken)
      broken.cancelAll = (entries) => cancelAll(entries)
    }),
  },
  {
    name: 'all-tasks-transferred',
    invariant: 'A5',
    description: 'a transfer of single tasks transfers all tasks of their owner',
    property: registry,
    wrapManager: withRegistry(({ ledger }) => {
      ledger.transfer = (owner, heir) => ledger.releaseOwner(owner, heir)
    }),
  },
  {
    name: 'second-end-recorded',
    invariant: 'A1',
    description: 'a task that has ended ends again, as failed',
    property: registry,
    wrapManager: withEnding(({ ledger }, entry, end) => {
      end()
      if (entry.record.status === 'failed' && entry.record.error === 'again') return
      entry.record = { ...entry.record, status: 'running' } as AsyncTaskInfo
      ledger.end(entry, { status: 'failed', error: 'again' })
    }),
  },
  {
    name: 'second-caller-gets-true',
    invariant: 'A1',
    description: 'completing a completed task answers true',
    property: registry,
    wrapManager(manager) {
      const complete = manager.completeTask.bind(manager)
      manager.completeTask = (id, output) => complete(id, output) || manager.getTask(id)?.status === 'completed'
      return manager
    },
  },
  {
    name: 'late-run-settles-namesake',
    invariant: 'A1',
    description: 'the outcome of a run ends any task that has its id now',
    property: namesake,
    wrapManager(manager) {
      const launch = manager.launch.bind(manager)
      const { unsettled } = manager.registry.use(runs)
      manager.launch = (...args) => {
        const before = new Set(unsettled)
        const record = launch(...args)
        const run = [...unsettled].find((one) => !before.has(one))
        void run?.settled.then((outcome) => outcome.type === 'returned' && manager.completeTask(record.id, {}))
        return record
      }
      return manager
    },
  },
  {
    name: 'handler-before-change',
    invariant: 'A2',
    description: 'the handlers of a completion are called before the task has ended',
    property: registry,
    wrapManager(manager) {
      const handlers = new Set<Handler>()
      manager.onTaskCompleted = (handler) => {
        handlers.add(handler)
        return () => handlers.delete(handler)
      }
      const complete = manager.completeTask.bind(manager)
      manager.completeTask = (id, output) => {
        const record = manager.getTask(id)
        if (record?.status === 'running') for (const handler of [...handlers]) handler(record as never)
        return complete(id, output)
      }
      return manager
    },
  },
  {
    name: 'emitted-twice',
    invariant: 'A2',
    description: 'the end of a task is emitted twice',
    property: registry,
    wrapManager: withNotifications((notification, emit) => {
      emit(notification)
      if (isEndOf(notification)) emit(notification)
    }),
  },
  {
    name: 'emitted-in-reverse',
    invariant: 'A2',
    description: 'the end of a task is emitted after a later change',
    property: registry,
    wrapManager(manager) {
      let held: RegistryNotification | undefined
      return withNotifications((notification, emit) => {
        if (isEndOf(notification)) {
          held = notification
          return
        }
        emit(notification)
        if (held !== undefined) emit(held)
        held = undefined
      })(manager)
    },
  },
  {
    name: 'handlers-not-isolated',
    invariant: 'A2',
    description: 'a handler that throws keeps the handlers after it from being called',
    property: registry,
    wrapManager(manager) {
      const chains = new Map<unknown, Set<Handler>>()
      return changeHandlers(manager, (handler, on) => {
        const chain = chains.get(on) ?? new Set()
        if (!chains.has(on)) on((task) => chain.forEach((one) => one(task)))
        chains.set(on, chain.add(handler))
        return () => chain.delete(handler)
      })
    },
  },
  {
    name: 'answer-deferred',
    invariant: 'A2',
    description:
      'a cancellation from inside a handler is deferred until the handler has returned, and answered with false',
    property: registry,
    wrapManager(manager) {
      let isNotifying = false
      const cancel = manager.cancelTask.bind(manager)
      manager.cancelTask = (id) => {
        if (!isNotifying) return cancel(id)
        queueMicrotask(() => cancel(id))
        return false
      }
      return changeHandlers(manager, (handler, on) =>
        on((task) => {
          isNotifying = true
          try {
            handler(task)
          } finally {
            isNotifying = false
          }
        }),
      )
    },
  },
  {
    name: 'always-room',
    invariant: 'A3',
    description: 'a slot is reserved although none is free',
    property: registry,
    wrapManager: withRegistry((registry) => {
      registry.pools.task.hasRoom = () => true
    }),
  },
  {
    name: 'slot-free-at-cancel',
    invariant: 'A3',
    description: "a cancelled launch's slot is free although its run has not settled",
    property: registry,
    wrapManager: withEnding(({ pools }, entry, end) => {
      end()
      pools.task.release(entry)
    }),
  },
  {
    name: 'reservation-not-consumed',
    invariant: 'A3',
    description: 'a registration leaves its reservation as it was',
    property: registry,
    wrapManager: withRegistry((registry) => {
      registry.pools.task.cancelReservation = () => false
    }),
  },
  {
    name: 'reservation-never-expires',
    invariant: 'A3',
    description: 'a reservation holds its slot beyond its time',
    property: registry,
    wrapManager: withRegistry(({ pools }) => {
      const slots = pools.task
      const reserve = slots.reserve.bind(slots)
      slots.reserve = (id, ttlMs) => reserve(id, ttlMs + 1e9)
    }),
  },
  {
    name: 'reservation-follows-the-time-of-day',
    invariant: 'A3',
    description: 'a reservation expires early or late when somebody sets the clock',
    property: registry,
    managerOptions: withoutMonotonicTime,
  },
  {
    name: 'id-taken-over',
    invariant: 'A4',
    description: 'an id that a retained task has is given to another',
    property: registry,
    wrapManager: withIdsTaken(() => true),
  },
  {
    name: 'id-of-ended-taken-over',
    invariant: 'A4',
    description: 'an id is free as soon as its task has ended',
    property: registry,
    wrapManager: withIdsTaken(({ record }) => record.status !== 'running'),
  },
  {
    name: 'generated-id-repeats',
    invariant: 'A4',
    description: 'every generated id is the same',
    property: registry,
    managerOptions: (options) => ({ ...options, createId: (prefix) => `${prefix}-1` }),
  },
  {
    name: 'owed-record-pruned',
    invariant: 'A7',
    description: 'the oldest record is pruned although it is owed',
    property: registry,
    wrapManager: withPruning((history, prune, max) => {
      const ended = endedOf(history)
      const [oldest] = ended
      const limit = max === -1 ? 10 : max * 2
      if (oldest !== undefined && ended.length > limit && oldest.record.delivery === 'owed') {
        oldest.record = Object.freeze({ ...oldest.record, delivery: 'none' } as AsyncTaskInfo)
        history.markHandled(oldest)
      }
      return prune()
    }),
  },
  {
    name: 'owed-record-is-a-barrier',
    invariant: 'A7',
    description: 'nothing is pruned while the oldest record is owed',
    property: registry,
    wrapManager: withPruning((history, prune) => {
      const [oldest] = endedOf(history)
      return oldest === undefined || !isOwed(oldest) ? prune() : undefined
    }),
  },
  {
    name: 'never-pruned',
    invariant: 'A7',
    description: 'the history grows for ever',
    property: registry,
    wrapManager: withPruning(() => undefined),
  },
  {
    name: 'pruned-before-its-handlers',
    invariant: 'A7',
    description: 'a record is pruned before the handlers of its end have run',
    property: registry,
    wrapManager: withEnding((registry, entry, end) => {
      end()
      registry.history.markHandled(entry)
      registry.actor.send({ type: 'history.prune' })
    }),
  },
  {
    name: 'lower-limit-does-not-prune',
    invariant: 'A7',
    description: 'lowering the maximum leaves the history as long as it was',
    property: registry,
    wrapManager(manager) {
      let isLowering = false
      const setMax = manager.setMaxAsyncTasks.bind(manager)
      manager.setMaxAsyncTasks = (max) => {
        isLowering = true
        try {
          setMax(max)
        } finally {
          isLowering = false
        }
      }
      return withPruning((_history, prune) => (isLowering ? undefined : prune()))(manager)
    },
  },
  {
    name: 'record-not-frozen',
    invariant: 'A8',
    description: 'the record of an ended task is not frozen',
    property: registry,
    wrapManager: withEnding((_registry, entry, end) => {
      end()
      entry.record = { ...entry.record }
    }),
  },
  {
    name: 'abort-ignored',
    invariant: 'A8',
    description: 'aborting the registered controller cancels nothing',
    property: registry,
    wrapManager(manager) {
      return afterRegistration(manager, unlink)
    },
  },
  {
    name: 'abort-ends-as-failed',
    invariant: 'A8',
    description: 'aborting the registered controller fails the task',
    property: registry,
    wrapManager(manager) {
      return afterRegistration(manager, (entry) => {
        const { id, abortController } = entry.record
        unlink(entry)
        abortController?.signal.addEventListener('abort', () => void manager.failTask(id, 'aborted'), { once: true })
      })
    },
  },
  {
    name: 'handler-after-unsubscribe',
    invariant: 'A9',
    description: 'unsubscribing a handler does nothing',
    property: registry,
    wrapManager: (manager) =>
      changeHandlers(manager, (handler, on) => {
        on(handler)
        return () => undefined
      }),
  },
  {
    name: 'disposal-aborts-nothing',
    invariant: 'A9',
    description: 'running tasks go on after the disposal',
    property: registry,
    wrapManager(manager) {
      manager.dispose = async () => manager.registry.dispose()
      return manager
    },
  },
  {
    name: 'disposal-leaves-streams',
    invariant: 'A9',
    description: 'the streams do not complete at the disposal',
    property: registry,
    wrapManager(manager) {
      manager.dispose = async () => manager.getRunningTasks().forEach(({ id }) => manager.cancelTask(id))
      return manager
    },
  },
  {
    name: 'timer-left-behind',
    invariant: 'A9',
    description: 'a timer is never cleared',
    property: registry,
    managerOptions: (options) => ({
      ...options,
      ...(options.clock && { clock: { ...options.clock, clearTimeout: () => undefined } }),
    }),
  },
  {
    name: 'scan-at-every-end',
    invariant: 'A10',
    description: 'every end of a task visits all tasks',
    property: cost,
    wrapManager: withEnding(({ history }, _entry, end) => {
      end()
      endedOf(history)
    }),
  },
  {
    name: 'scan-at-every-lease',
    invariant: 'A10',
    description: 'every lease visits what is owed to all owners',
    property: cost,
    wrapManager: withRegistry(({ ledger }) => {
      const take = ledger.take.bind(ledger)
      ledger.take = (request) => (ledger.owed().length > 0 ? take(request) : undefined)
    }),
  },
  {
    name: 'every-wait-notified-of-every-end',
    invariant: 'A10',
    description: 'every end of a task notifies the waits for all tasks',
    property: cost,
    wrapManager: withRegistry((registry) => {
      const watchers = registry.use(taskWatchers)
      const changed = watchers.changed.bind(watchers)
      watchers.changed = () => [...registry.history.entries()].forEach(changed)
    }),
  },
  {
    name: 'sorted-at-every-pruning',
    invariant: 'A10',
    description: 'every pruning sorts the history',
    property: cost,
    wrapManager: withPruning((history, prune) => {
      endedOf(history)
      return prune()
    }),
  },
]

/** Changes each task that is registered. */
function afterRegistration(manager: AsyncTaskManager, change: (entry: TaskEntry) => void): AsyncTaskManager {
  const changeEntry = (id: string): void => {
    const entry = manager.registry.history.get(id)
    if (entry !== undefined) change(entry)
  }
  const [register, launch] = [manager.registerTask.bind(manager), manager.launch.bind(manager)]
  manager.registerTask = (...given) => {
    const record = register(...given)
    changeEntry(record.id)
    return record
  }
  manager.launch = (...given) => {
    const record = launch(...given)
    changeEntry(record.id)
    return record
  }
  return manager
}
