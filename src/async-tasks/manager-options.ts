/** The options of `AsyncTaskManager`: their types, their checks and their defaults. */
import type { AsyncTaskMachine } from '../../machines/async-task.js'
import type { OnError } from '../callbacks/error-report.js'
import type { Inspect } from '../callbacks/inspection.js'
import type { Clock } from '../clock.js'
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
  integerFrom,
  numberFrom,
  aStore,
  optionsOf,
  recordOf,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { scheduleOptionTypes, type ScheduleOptions } from '../protocol/schedules.js'
import { aTelemetry, type Telemetry } from '../protocol/telemetry.js'
import type { Store } from '../store/store.js'
import { monitorLimitTypes, type MonitorLimits } from './monitors/monitors.js'
import type { TaskRegistryOptions } from './registry.js'
import { taskLimit } from './settings.js'
import type { WasDelivered } from './delivery/unknown-deliveries.js'

/** How long an aborted run may take to stop, in ms, before its slot is free. */
export const DEFAULT_GRACE_MS = 5000

/** Options of `AsyncTaskManager`; a number in their place is `maxAsyncTasks`. */
export interface AsyncTaskManagerOptions {
  /** How many tasks may run at once: an integer >= 0, or -1 for no limit. Default 5. */
  readonly maxAsyncTasks?: number
  /** How many commands (tasks of the kind `command`) may run at once besides those: an integer >= 0, or -1 for no limit. Default 5. */
  readonly maxCommands?: number
  /** Whether the end of a cancelled task is delivered to its owner too. Default false. */
  readonly notifyCancelled?: boolean
  /** How long an aborted run may take to stop, in ms, before its slot is free and an overdue task fails. Default 5000. */
  readonly graceMs?: number
  /** How many tasks that runs have launched may run at once at each depth; they take no slot of `maxAsyncTasks`. -1 for no limit. Default 20. */
  readonly maxChildTasks?: number
  /**
   * How many tasks may run at once whose callers wait for them (synchronous calls of tools), besides those that runs have launched; they take no slot
   * of `maxAsyncTasks`. One more is refused. -1 for no limit. Default -1.
   */
  readonly maxForegroundTasks?: number
  /** How deep tasks may launch tasks: 0 for not at all, 1 for children that launch nothing. Default 3. */
  readonly maxFamilyDepth?: number
  /** How many tasks that one run has launched may run, or be owed to it. Default 20. */
  readonly maxChildrenPerTask?: number
  /** How much of each task's output is kept, in bytes. Default 65536. */
  readonly outputBytes?: number
  /** What happens to a launch when no slot is free: it is refused with `TaskLimitError`, or waits. Default `refuse`. */
  readonly whenFull?: WhenFull
  /** How many launches may wait for a slot, and for how long. */
  readonly queue?: QueueOptions
  /** Limits of schedules. */
  readonly schedules?: ScheduleOptions
  /** What monitors may read (`monitor`), and how many there may be. Default: tasks, and no files. */
  readonly monitors?: MonitorLimits
  /** How many tasks with the same `concurrencyKey` may run at once, by key: integers >= 1. Default 1 for each key. */
  readonly limits?: Readonly<Record<string, number>>
  /** The source of every timer and timestamp. Default: the platform's. */
  readonly clock?: Clock
  /** Makes ids: `prefix` is a subagent's name, `delivery`, `wait`, `reservation` or `schedule`. It must not return an id twice. */
  readonly createId?: (prefix: string) => string
  /** Starts the runs. Default: in this process. */
  readonly engine?: Engine
  /** Called with exceptions of the host's callbacks and with results that came too late. Default: `console.error`. */
  readonly onError?: OnError
  /** Called with XState's inspection events, each after its transition. Default: none. */
  readonly inspect?: Inspect | undefined
  /**
   * Keeps tasks, and what is owed for them, across the end of the process; the manager opens it and closes it. Default: none, everything ends
   * with the process.
   */
  readonly store?: Store
  /**
   * Asked after a restart for each message that had been sent: whether it is in the host's transcript. Without an answer its results are owed
   * again, marked with `isRepeat`.
   */
  readonly wasDelivered?: WasDelivered
  /**
   * Finds the runner of a subagent after a restart, for tasks that ran: those whose programs survived (`processRunner({ survivesHost: true })`) go on,
   * and those whose `retry` says so are run again. Default: they have failed.
   */
  readonly findRunner?: FindRunner
  /** Traces the runs and counts the tasks (`agent-tasks/telemetry`). Default: none. */
  readonly telemetry?: Telemetry
  /** Machines that replace the package's own, e.g. from `asyncTaskMachine.provide`. They get the same input. */
  readonly machines?: { readonly task?: AsyncTaskMachine }
}

/** Limits of the tasks that wait for a slot. */
export interface QueueOptions {
  /** The most tasks. Default 100. */
  readonly max?: number
  /** The most that is held for them, in bytes of JSON: their goals and parameters. Default 16 MiB. */
  readonly maxBytes?: number
  /** How long one may wait for a slot, in ms; then it fails with the code `QUEUE_TIMEOUT`. Default: no limit. */
  readonly maxWaitMs?: number
  /**
   * How long a task waits until its priority has risen by one, in ms; -1 for never. A task that has waited for ten times as long for several limits reserves
   * what becomes free. Default 60000.
   */
  readonly agingMs?: number
}

const queueOptionTypes: OptionTypes<QueueOptions> = {
  max: integerFrom(0),
  maxBytes: integerFrom(0),
  maxWaitMs: numberFrom(0),
  agingMs: {
    expected: 'a number >= 1, or -1 for never',
    accepts: (value) => value === -1 || numberFrom(1).accepts(value),
    isNumber: true,
  },
}

export const managerOptionTypes: OptionTypes<AsyncTaskManagerOptions> = {
  maxAsyncTasks: taskLimit,
  maxCommands: taskLimit,
  notifyCancelled: aBoolean,
  graceMs: numberFrom(0),
  maxChildTasks: taskLimit,
  maxForegroundTasks: taskLimit,
  maxFamilyDepth: integerFrom(0),
  maxChildrenPerTask: integerFrom(0),
  outputBytes: numberFrom(1),
  whenFull: {
    expected: "'refuse' or 'queue'",
    accepts: (value) => WHEN_FULL.some((each) => each === value),
  },
  queue: optionsOf(queueOptionTypes),
  schedules: optionsOf(scheduleOptionTypes),
  monitors: optionsOf(monitorLimitTypes),
  limits: recordOf(integerFrom(1)),
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
}

/** The limits of a registry, with their defaults. */
export function registryLimits({
  maxAsyncTasks = 5,
  maxCommands = 5,
  maxChildTasks = 20,
  maxForegroundTasks = -1,
  maxFamilyDepth = 3,
  maxChildrenPerTask = 20,
  queue: { max = 100, maxBytes = 16 * 1024 * 1024, maxWaitMs, agingMs = 60_000 } = {},
  limits: keyLimits = {},
}: AsyncTaskManagerOptions) {
  return {
    max: maxAsyncTasks,
    maxCommands,
    maxChildTasks,
    maxForegroundTasks,
    families: { maxDepth: maxFamilyDepth, maxChildren: maxChildrenPerTask },
    queue: { max, maxBytes, maxWaitMs, agingMs },
    keyLimits,
  } satisfies Partial<TaskRegistryOptions>
}
