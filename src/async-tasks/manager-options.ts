/** The options of `AsyncTaskManager`: types, validation and defaults. */
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

/** The default of `graceMs`. */
export const DEFAULT_GRACE_MS = 5000

/** Options of `AsyncTaskManager`. A number is short for `maxAsyncTasks`. */
export interface AsyncTaskManagerOptions {
  /** How many tasks may run at once: an integer >= 0, or -1 for no limit. Default 5. */
  readonly maxAsyncTasks?: number
  /**
   * How many commands (tasks of the kind `command`) may run at once, in addition to `maxAsyncTasks`: an integer >= 0, or -1 for no limit. Default 5.
   */
  readonly maxCommands?: number
  /** Whether the owner is also notified of a cancelled task. Default false. */
  readonly notifyCancelled?: boolean
  /** How long an aborted run may take to stop, in ms. After that its slot is free, and an overdue task fails. Default 5000. */
  readonly graceMs?: number
  /** How many tasks launched by runs may run at once at each depth. They do not count toward `maxAsyncTasks`. -1 for no limit. Default 20. */
  readonly maxChildTasks?: number
  /**
   * How many foreground tasks (synchronous tool calls) may run at once, not counting those launched by runs. They do not count toward
   * `maxAsyncTasks`. Further ones are refused. -1 (default) for no limit.
   */
  readonly maxForegroundTasks?: number
  /** The maximum depth of launches by runs: 0 for none, 1 for children that launch nothing. Default 3. */
  readonly maxFamilyDepth?: number
  /** How many tasks of one run may be active or owed to it. Default 20. */
  readonly maxChildrenPerTask?: number
  /** How much of each task's output is kept, in bytes. Default 65536. */
  readonly outputBytes?: number
  /** What happens to a launch when no slot is free: it is refused with `TaskLimitError`, or it waits. Default `refuse`. */
  readonly whenFull?: WhenFull
  /** Limits of the queue for slots. */
  readonly queue?: QueueOptions
  /** Limits of schedules. */
  readonly schedules?: ScheduleOptions
  /** What monitors may read (`monitor`), and how many are allowed. Default: tasks, but no files. */
  readonly monitors?: MonitorLimits
  /** How many tasks with the same `concurrencyKey` may run at once, by key: integers >= 1. Default 1 for each key. */
  readonly limits?: Readonly<Record<string, number>>
  /** Provides all timers and timestamps. Default: the platform's. */
  readonly clock?: Clock
  /** Creates ids. `prefix` is a subagent's name, `delivery`, `wait`, `reservation` or `schedule`. It must not return an id twice. */
  readonly createId?: (prefix: string) => string
  /** Starts the runs. Default: in this process. */
  readonly engine?: Engine
  /** Called with exceptions of the host's callbacks and with results that arrived too late. Default: `console.error`. */
  readonly onError?: OnError
  /** Called with XState's inspection events, each after its transition. Default: none. */
  readonly inspect?: Inspect | undefined
  /** Keeps tasks and undelivered results beyond the end of the process. The manager opens and closes the store. Default: none. */
  readonly store?: Store
  /**
   * Called after a restart for each message that was sent: whether it is in the host's transcript. Without an answer the results of the message are
   * delivered again, marked with `isRepeat`.
   */
  readonly wasDelivered?: WasDelivered
  /**
   * Finds the runner of a subagent after a restart. Tasks whose programs survived (`processRunner({ survivesHost: true })`) continue, and tasks whose
   * `retry` allows it are run again. Default: these tasks have failed.
   */
  readonly findRunner?: FindRunner
  /** Traces the runs and counts the tasks (`agent-tasks/telemetry`). Default: none. */
  readonly telemetry?: Telemetry
  /** Machines that replace the default ones, such as the result of `asyncTaskMachine.provide`. They receive the same input. */
  readonly machines?: { readonly task?: AsyncTaskMachine }
}

/** Limits of the queue for slots. */
export interface QueueOptions {
  /** The maximum of waiting tasks. Default 100. */
  readonly max?: number
  /** The maximum held for them, in bytes of JSON: their goals and parameters. Default 16 MiB. */
  readonly maxBytes?: number
  /** How long a task may wait for a slot, in ms. After that it fails with `QUEUE_TIMEOUT`. Default: no limit. */
  readonly maxWaitMs?: number
  /**
   * How long a task waits until its priority rises by one, in ms; -1 for never. A task that has waited ten times as long for several limits reserves
   * slots that become free. Default 60000.
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
