/**
 * Ways to break the registry on purpose, one invariant at a time, and the property that must notice each. The faults of
 * delivery (A5, A6 and the trigger's part of A9) are in test/race/delivery-faults.ts.
 *
 * Every fault goes in through a public option, or wraps what a constructor gave: nothing in src knows of them. It is
 * longer than most files because it is one list.
 */
import type fc from 'fast-check'
import { assign, createActor } from 'xstate'
import type { AsyncTaskInfo } from '../../machines/records.js'
import { taskRegistryMachine, type TaskRegistryMachine } from '../../machines/task-registry.js'
import type { TaskEntry, TaskTable } from '../../machines/task-table.js'
import { coreOf } from '../../src/async-tasks/core.js'
import type { AsyncTaskManager, AsyncTaskManagerOptions } from '../../src/async-tasks/manager.js'
import { costProperty } from '../model/cost.property.js'
import { namesakeProperty, registryProperty } from '../model/registry.property.js'
import type { Sabotage, Subject } from './subject.js'

type Invariant = 'A1' | 'A2' | 'A3' | 'A4' | 'A5' | 'A6' | 'A7' | 'A8' | 'A9' | 'A10'

/** A property of whatever subject it is given. It must not import vitest. */
export interface SubjectProperty {
  readonly name: string
  readonly create: (subject: Subject) => fc.IRawProperty<unknown>
}

export interface PlantedFault extends Sabotage {
  /** Kebab case: what is wrong. */
  readonly name: string
  readonly invariant: Invariant
  readonly description: string
  /** The property that must catch it. */
  readonly property: SubjectProperty
  /** How many inputs the property may need to catch it; 2000 when absent. */
  readonly maxRuns?: number
}

const registry: SubjectProperty = { name: 'registry', create: registryProperty }
const namesake: SubjectProperty = { name: 'namesake', create: namesakeProperty }
const cost: SubjectProperty = { name: 'cost', create: costProperty }

type Provided = Parameters<TaskRegistryMachine['provide']>[0]
type Settling = (table: TaskTable, entry: TaskEntry, settle: () => void) => void

const withRegistry =
  (provided: Provided) =>
  (options: AsyncTaskManagerOptions): AsyncTaskManagerOptions => ({
    ...options,
    machines: { ...options.machines, registry: taskRegistryMachine.provide(provided) },
  })

/** Changes what happens when a task's actor has ended. */
const withSettling = (change: Settling): ((options: AsyncTaskManagerOptions) => AsyncTaskManagerOptions) =>
  withRegistry({
    actions: {
      settleTask: ({ context: { table }, event }) => {
        if (!('actorId' in event)) return
        const entry = table.get(event.actorId.slice('task.'.length))
        if (entry !== undefined) change(table, entry, () => table.settle(entry, event.output))
      },
    },
  })

const HANDLERS = { completed: 'onTaskCompleted', failed: 'onTaskFailed', cancelled: 'onTaskCancelled' } as const
type Handler = (task: never) => void

/** Replaces what the three subscriptions do; `on` is the original. */
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

const endedOf = (table: TaskTable): TaskEntry[] =>
  [...table.entries()].filter(({ record }) => record.status !== 'running').sort((a, b) => a.record.seq - b.record.seq)

const isOwed = ({ record }: TaskEntry): boolean => record.delivery === 'owed' || record.delivery === 'leased'

export const registryFaults: readonly PlantedFault[] = [
  {
    name: 'second-end-recorded',
    invariant: 'A1',
    description: 'a task that has ended ends again, as failed',
    property: registry,
    managerOptions: withSettling((table, entry, settle) => {
      settle()
      entry.record = { ...entry.record, status: 'running' } as AsyncTaskInfo
      table.settle(entry, { status: 'failed', error: 'again' })
    }),
  },
  {
    name: 'second-caller-told-true',
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
    description: 'the outcome of a run settles whatever task bears its id now',
    property: namesake,
    wrapManager(manager) {
      const launch = manager.launch.bind(manager)
      manager.launch = (...args) => {
        const { runs } = coreOf(manager)
        const before = new Set(runs)
        const record = launch(...args)
        const run = [...runs].find((one) => !before.has(one))
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
    name: 'told-twice',
    invariant: 'A2',
    description: 'the end of a task is put in the outbox twice',
    property: registry,
    managerOptions: withSettling((table, _entry, settle) => {
      const before = table.outbox.length
      settle()
      table.outbox.push(...table.outbox.slice(before))
    }),
  },
  {
    name: 'told-in-reverse',
    invariant: 'A2',
    description: 'the last change is told first',
    property: registry,
    managerOptions: withSettling((table, _entry, settle) => {
      settle()
      table.outbox.reverse()
    }),
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
    name: 'answer-put-off',
    invariant: 'A2',
    description: 'a cancellation from inside a handler is put off until the handler is done, and answered with false',
    property: registry,
    wrapManager(manager) {
      let isTelling = false
      const cancel = manager.cancelTask.bind(manager)
      manager.cancelTask = (id) => {
        if (!isTelling) return cancel(id)
        queueMicrotask(() => cancel(id))
        return false
      }
      return changeHandlers(manager, (handler, on) =>
        on((task) => {
          isTelling = true
          try {
            handler(task)
          } finally {
            isTelling = false
          }
        }),
      )
    },
  },
  {
    name: 'always-room',
    invariant: 'A3',
    description: 'a slot is reserved though none is free',
    property: registry,
    managerOptions: withRegistry({ guards: { canReserve: () => true } }),
  },
  {
    name: 'slot-free-at-cancel',
    invariant: 'A3',
    description: "a cancelled launch's slot is free although its run has not settled",
    property: registry,
    managerOptions: withSettling((table, entry, settle) => {
      settle()
      table.releaseSlot(entry.slot)
    }),
  },
  {
    name: 'reservation-not-consumed',
    invariant: 'A3',
    description: 'a registration leaves its reservation as it was',
    property: registry,
    managerOptions: withRegistry({
      actions: {
        admitTask: assign(({ context, event, self }) => {
          if (event.type !== 'task.register') return {}
          const { id, subagentName, timeoutMs, graceMs } = event.admission
          const input = { id, subagentName, graceMs, ...(timeoutMs !== undefined && { timeoutMs }) }
          const ref = createActor(context.task, { id: `task.${id}`, input, parent: self })
          context.table.admit(event.admission, ref, event.isLaunched, undefined)
          return {}
        }),
      },
    }),
  },
  {
    name: 'reservation-never-expires',
    invariant: 'A3',
    description: 'a reservation holds its slot beyond its time',
    property: registry,
    managerOptions: withRegistry({
      actions: {
        takeReservation: ({ context, event }) => {
          if (event.type === 'reservation.take') context.table.reserve(event.reservationId, event.ttlMs + 1e9)
        },
      },
    }),
  },
  {
    name: 'id-taken-over',
    invariant: 'A4',
    description: 'an id that a retained task holds is given to another',
    property: registry,
    wrapManager(manager) {
      const { table } = coreOf(manager)
      const refusal = table.admissionRefusal.bind(table)
      table.admissionRefusal = (id, reservationId, isLimited) => {
        const refused = refusal(id, reservationId, isLimited)
        return refused === 'id-in-use' ? undefined : refused
      }
      return manager
    },
  },
  {
    name: 'id-of-ended-taken-over',
    invariant: 'A4',
    description: 'an id is free as soon as its task has ended',
    property: registry,
    wrapManager(manager) {
      const { table } = coreOf(manager)
      const refusal = table.admissionRefusal.bind(table)
      table.admissionRefusal = (id, reservationId, isLimited) => {
        const refused = refusal(id, reservationId, isLimited)
        return refused === 'id-in-use' && table.get(id)?.record.status !== 'running' ? undefined : refused
      }
      return manager
    },
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
    description: 'the oldest record is dropped though its message is owed',
    property: registry,
    managerOptions: withRegistry({
      actions: {
        pruneHistory: ({ context: { table } }) => {
          const ended = endedOf(table)
          const [oldest] = ended
          if (oldest !== undefined && ended.length > table.historyLimit && oldest.record.delivery === 'owed') {
            oldest.record = Object.freeze({ ...oldest.record, delivery: 'none' } as AsyncTaskInfo)
            table.announce(oldest)
          }
          table.prune()
        },
      },
    }),
  },
  {
    name: 'owed-record-is-a-barrier',
    invariant: 'A7',
    description: 'nothing is dropped while the oldest record is owed',
    property: registry,
    managerOptions: withRegistry({
      actions: {
        pruneHistory: ({ context: { table } }) => {
          const [oldest] = endedOf(table)
          if (oldest === undefined || !isOwed(oldest)) table.prune()
        },
      },
    }),
  },
  {
    name: 'never-pruned',
    invariant: 'A7',
    description: 'the history grows for ever',
    property: registry,
    managerOptions: withRegistry({ actions: { pruneHistory: () => undefined } }),
  },
  {
    name: 'pruned-before-its-handlers',
    invariant: 'A7',
    description: 'a record is dropped before the handlers were told of its end',
    property: registry,
    managerOptions: withSettling((table, entry, settle) => {
      settle()
      table.announce(entry)
      table.prune()
    }),
  },
  {
    name: 'lower-limit-does-not-prune',
    invariant: 'A7',
    description: 'lowering the maximum leaves the history as long as it was',
    property: registry,
    managerOptions: withRegistry({
      actions: {
        pruneHistory: ({ context: { table }, event }) => {
          if (event.type !== 'limit.set') table.prune()
        },
      },
    }),
  },
  {
    name: 'record-not-frozen',
    invariant: 'A8',
    description: 'the record of an ended task can be changed by whoever holds it',
    property: registry,
    managerOptions: withSettling((_table, entry, settle) => {
      settle()
      entry.record = { ...entry.record }
    }),
  },
  {
    name: 'abort-ignored',
    invariant: 'A8',
    description: 'aborting the registered controller cancels nothing',
    property: registry,
    wrapManager(manager) {
      coreOf(manager).link = () => undefined
      return manager
    },
  },
  {
    name: 'abort-ends-as-failed',
    invariant: 'A8',
    description: 'aborting the registered controller fails the task',
    property: registry,
    wrapManager(manager) {
      coreOf(manager).link = ({ record: { id } }, { signal }) => {
        const onAbort = (): void => void manager.failTask(id, 'aborted')
        signal.addEventListener('abort', onAbort, { once: true })
        if (signal.aborted) onAbort()
      }
      return manager
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
    description: 'what runs goes on after the disposal',
    property: registry,
    wrapManager(manager) {
      manager.dispose = async () => coreOf(manager).dispose()
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
    description: 'a timer is never taken back',
    property: registry,
    managerOptions: (options) => ({
      ...options,
      ...(options.clock && { clock: { ...options.clock, clearTimeout: () => undefined } }),
    }),
  },
  {
    name: 'scan-at-every-end',
    invariant: 'A10',
    description: 'every end of a task looks through all tasks',
    property: cost,
    managerOptions: withSettling((table, _entry, settle) => {
      settle()
      endedOf(table)
    }),
  },
  {
    name: 'scan-at-every-lease',
    invariant: 'A10',
    description: 'every lease looks through what is owed to everybody',
    property: cost,
    wrapManager(manager) {
      const lease = manager.lease.bind(manager)
      manager.lease = (request) => (manager.getPendingNotifications().length > 0 ? lease(request) : undefined)
      return manager
    },
  },
  {
    name: 'sorted-at-every-pruning',
    invariant: 'A10',
    description: 'every pruning sorts the history',
    property: cost,
    managerOptions: withRegistry({
      actions: {
        pruneHistory: ({ context: { table } }) => {
          endedOf(table)
          table.prune()
        },
      },
    }),
  },
]
