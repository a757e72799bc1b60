/** The options of `AsyncTaskManager`: types, validation and defaults. */
import type { AsyncTaskMachine } from '../../machines/async-task.js'
import type { OnError } from '../isolation/error-report.js'
import type { Inspect } from '../isolation/inspection.js'
import type { Clock } from '../system/clock.js'
import type { Engine } from '../engine/engine.js'
import type { FindRunner } from '../engine/runner.js'
import { WHEN_FULL, type WhenFull } from '../protocol/async-tasks.js'
import {
  aBoolean,
  aClock,
  aFunction,
  aMachine,
  anEngine,
  anInspector,
  aStore,
  integerFrom,
  numberFrom,
  oneOf,
  optionsOf,
  orMinusOne,
  recordOf,
  withDefault,
  withDefaults,
  type OptionTypes,
  type WithDefaults,
} from '../protocol/option-checks.js'
import { scheduleOptionTypes, type ScheduleOptions } from '../protocol/schedules.js'
import { aTelemetry, type Telemetry } from '../protocol/telemetry.js'
import type { Store } from '../store/store.js'
import { monitorLimitTypes, type MonitorLimits } from '../protocol/monitors.js'
import type { TaskRegistryOptions } from './registry.js'
import { taskLimit } from './settings.js'
import { ownerLimitTypes, type OwnerLimitOptions } from '../features/limits/owner-limits.js'
import { outputFileTypes, type OutputFileOptions } from '../features/output-files/output-files.js'
import type { WasDelivered } from '../features/delivery/unknown-deliveries.js'

/** Options of `AsyncTaskManager`. A number instead of an object sets `maxAsyncTasks`. */
export interface AsyncTaskManagerOptions {
  /** How many tasks may run at once: an integer >= 0, or -1 for no limit. Default 5. */
  readonly maxAsyncTasks?: number
  /**
   * How many commands (tasks of the kind `command`) may run at once, in addition to `maxAsyncTasks`: an integer >= 0, or -1 for no limit. Default 5.
   */
  readonly maxCommands?: number
  /** Whether the owner also receives a message about a cancelled task. Default false. */
  readonly notifyCancelled?: boolean
  /**
   * How long an aborted run may take to stop, in ms. After that its slot is free, and an overdue task fails. A runner with a longer `graceMs` gets that
   * time. Default 5000.
   */
  readonly graceMs?: number
  /**
   * How many tasks launched by runs may run at once at each depth of launches. They do not count toward `maxAsyncTasks`. -1 for no limit. Default 20.
   */
  readonly maxChildTasks?: number
  /**
   * How many foreground tasks (synchronous tool calls) may run at once, not counting those launched by runs. They do not count toward
   * `maxAsyncTasks`. A launch beyond the limit is refused. -1 (the default) for no limit.
   */
  readonly maxForegroundTasks?: number
  /** How deep launches by runs may be nested: 0 for no launches by runs, 1 for children that launch nothing themselves. Default 3. */
  readonly maxFamilyDepth?: number
  /** How many tasks launched by one run may be active, or ended with a result that the run has not taken yet. Default 20. */
  readonly maxChildrenPerTask?: number
  /** How much of each task's output is kept, in bytes. Default 65536. */
  readonly outputBytes?: number
  /** Writes the whole output of each task to a file. Default: none. */
  readonly outputFiles?: OutputFileOptions
  /** What happens to a launch when no slot is free. `refuse` (the default): it throws `TASK_LIMIT`. `queue`: the task waits. */
  readonly whenFull?: WhenFull
  /** Limits of the queue for slots. */
  readonly queue?: QueueOptions
  /** Limits of the tasks of one owner, in addition to those of all owners. */
  readonly ownerLimits?: OwnerLimitOptions
  /** Limits of schedules. */
  readonly schedules?: ScheduleOptions
  /** Which files monitors (`monitor`) may read, and how many monitors are allowed. Default: they read the output of tasks, but no files. */
  readonly monitors?: MonitorLimits
  /** How many tasks with the same `concurrencyKey` may run at once, by key: integers >= 1. Default 1 for each key. */
  readonly limits?: Readonly<Record<string, number>>
  /** Provides all timers and timestamps. Default: those of the platform. */
  readonly clock?: Clock
  /**
   * Creates ids. `prefix` is the name of a subagent, or says what the id is for, such as `delivery`, `reservation` or `schedule`. The function must
   * not return the same id twice.
   */
  readonly createId?: (prefix: string) => string
  /** Starts the runs. Default: in this process. */
  readonly engine?: Engine
  /** Called with exceptions of the host's callbacks, and with results that arrive after their task has ended. Default: `console.error`. */
  readonly onError?: OnError
  /** Called with the inspection events of XState, after the transition to which they belong. Default: none. */
  readonly inspect?: Inspect | undefined
  /** Keeps tasks and undelivered results beyond the end of the process. The manager opens and closes the store. Default: none. */
  readonly store?: Store
  /**
   * Called after a restart for each message that an earlier process has sent. It returns whether the host's transcript contains the message. Without
   * an answer, the results in the message are delivered again, marked with `isRepeat`.
   */
  readonly wasDelivered?: WasDelivered
  /**
   * Finds the runner of a subagent after a restart. With it, tasks whose programs survived (`processRunner({ survivesHost: true })`) continue, and
   * tasks whose `retry` allows it are run again. Default: none, and such tasks have failed.
   */
  readonly findRunner?: FindRunner
  /** Traces the runs and counts the tasks (`agent-tasks/telemetry`). Default: none. */
  readonly telemetry?: Telemetry
  /** State machines that replace the default ones, such as the result of `asyncTaskMachine.provide`. They receive the same input. */
  readonly machines?: { readonly task?: AsyncTaskMachine }
}

/** Limits of the tasks that wait for a slot. They apply with `whenFull: 'queue'`. */
export interface QueueOptions {
  /** The maximum number of waiting tasks. Default 100. */
  readonly max?: number
  /** The maximum total size of the goals and parameters of waiting tasks, in bytes of JSON. Default 16 MiB. */
  readonly maxBytes?: number
  /** How long a task may wait for a slot, in ms. After that it fails with `QUEUE_TIMEOUT`. Default: no limit. */
  readonly maxWaitMs?: number
  /**
   * How long a task must wait until its priority rises by one, in ms; -1 for never. Default 60000. A task that needs several slots and has waited ten
   * times as long reserves each of them that becomes free.
   */
  readonly agingMs?: number
}

const queueOptionTypes = {
  max: withDefault(integerFrom(0), 100),
  maxBytes: withDefault(integerFrom(0), 16 * 1024 * 1024),
  maxWaitMs: numberFrom(0),
  agingMs: withDefault(orMinusOne(numberFrom(1), 'a number >= 1, or -1 for never'), 60_000),
} satisfies OptionTypes<QueueOptions>

export const managerOptionTypes = {
  maxAsyncTasks: withDefault(taskLimit, 5),
  maxCommands: withDefault(taskLimit, 5),
  notifyCancelled: withDefault(aBoolean, false),
  graceMs: withDefault(numberFrom(0), 5000),
  maxChildTasks: withDefault(taskLimit, 20),
  maxForegroundTasks: withDefault(taskLimit, -1),
  maxFamilyDepth: withDefault(integerFrom(0), 3),
  maxChildrenPerTask: withDefault(integerFrom(0), 20),
  outputBytes: withDefault(numberFrom(1), 64 * 1024),
  outputFiles: optionsOf(outputFileTypes),
  whenFull: withDefault(oneOf(WHEN_FULL), 'refuse'),
  queue: withDefault(optionsOf(queueOptionTypes), {}),
  ownerLimits: withDefault(optionsOf(ownerLimitTypes), {}),
  schedules: withDefault(optionsOf(scheduleOptionTypes), {}),
  monitors: withDefault(optionsOf(monitorLimitTypes), {}),
  limits: withDefault(recordOf(integerFrom(1)), {}),
  clock: aClock,
  createId: aFunction,
  engine: anEngine,
  onError: aFunction,
  inspect: anInspector,
  store: aStore,
  findRunner: aFunction,
  telemetry: aTelemetry,
  wasDelivered: aFunction,
  machines: optionsOf({ task: aMachine }),
} satisfies OptionTypes<AsyncTaskManagerOptions>

/** The options with their defaults. */
export type ManagerSettings = WithDefaults<AsyncTaskManagerOptions, typeof managerOptionTypes>

export function registryLimits(settings: ManagerSettings) {
  const { maxAsyncTasks, maxCommands, maxChildTasks, maxForegroundTasks, limits } = settings
  const queue = withDefaults(settings.queue, queueOptionTypes)
  return {
    max: maxAsyncTasks,
    maxCommands,
    maxChildTasks,
    maxForegroundTasks,
    families: { maxDepth: settings.maxFamilyDepth, maxChildren: settings.maxChildrenPerTask },
    queue: { maxWaitMs: undefined, ...queue },
    keyLimits: limits,
    owners: settings.ownerLimits,
  } satisfies Partial<TaskRegistryOptions>
}
