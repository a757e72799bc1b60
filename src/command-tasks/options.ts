/** What a `TaskManager` and its callers may say, and what it answers. */
import type { CommandTaskMachine } from '../../machines/command-task.js'
import type { LaneMachine } from '../../machines/lane.js'
import type { OnError } from '../callbacks/error-report.js'
import type { Inspect } from '../callbacks/inspection.js'
import type { Clock } from '../clock.js'
import type { Engine } from '../engine/engine.js'
import type { InstanceManager } from '../instances/instance-manager.js'
import type {
  InstancePauseMessage,
  SubmitErrorCode,
  TaskCompleteMessage,
  TaskProgressMessage,
} from '../protocol/command-tasks.js'
import {
  aClock,
  aFunction,
  aMachine,
  anEngine,
  anInspector,
  numberFrom,
  aStore,
  objectWith,
  optionsOf,
  required,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { aTelemetry, type Telemetry } from '../protocol/telemetry.js'
import type { Store } from '../store/store.js'

/** The longest idempotency key, in characters. */
const MAX_KEY = 512

/** Options of `TaskManager`. */
export interface TaskManagerOptions {
  /** The instances that run the commands; no other `TaskManager` may use them. */
  readonly instances: InstanceManager
  /** The longest time that a command may take, in ms. Default 60000. */
  readonly commandTimeout?: number
  /** The most tasks of one instance that have not ended. 0 accepts no tasks. Default 100. */
  readonly maxQueueSize?: number
  /** How long an aborted command may hold its lane, in ms. Default 2000. */
  readonly abortGraceMs?: number
  /** How long an ended task is kept, in ms. Default 3600000. */
  readonly retentionMs?: number
  /** How many ended tasks are kept. Default 1000. */
  readonly maxRetained?: number
  /** The largest result of a command, in bytes of JSON; the command of a larger one fails with `RESULT_TOO_LARGE`. Default 16 MiB. */
  readonly maxResultBytes?: number
  /** The most that one task may hold, commands and results, in bytes of JSON. Default 64 MiB. */
  readonly maxTaskBytes?: number
  /** The most that all tasks may hold, in bytes of JSON. Ended ones are forgotten early for it, the earliest first. Default 256 MiB. */
  readonly maxBytes?: number
  /** Keeps tasks when the process ends. The first manager on it takes over what is stored. Default: none, and they end with the process. */
  readonly store?: Store
  /** With a store: how long tasks of an earlier process wait for their instance, in ms. Default 90000. */
  readonly instanceGraceMs?: number
  /** Default: the platform's clock. */
  readonly clock?: Clock
  /** Starts the commands. Default: in this process. */
  readonly engine?: Engine
  /** Called with exceptions of listeners and with results that came too late. Default: `console.error`. */
  readonly onError?: OnError
  /** Traces the commands and counts the tasks (`agent-tasks/telemetry`). Default: none. */
  readonly telemetry?: Telemetry | undefined
  /** Machines to run in place of the package's own. */
  readonly machines?: CommandTaskMachines
  /** Receives the XState inspection events of lanes and tasks, after the change they belong to. Default: none. */
  readonly inspect?: Inspect | undefined
}

/** Machines to run in place of the package's own, made of them with `machine.provide`. They get the same input. */
export interface CommandTaskMachines {
  /** Runs the tasks of one instance, one after the other. */
  readonly lane?: LaneMachine
  /** Goes through the commands of one task. */
  readonly task?: CommandTaskMachine
}

export const managerOptionTypes: OptionTypes<TaskManagerOptions> = {
  instances: required(objectWith('an InstanceManager', 'get', 'first', 'onDisconnect')),
  commandTimeout: numberFrom(1),
  maxQueueSize: numberFrom(0),
  abortGraceMs: numberFrom(0),
  retentionMs: numberFrom(0),
  maxRetained: numberFrom(0),
  maxResultBytes: numberFrom(1),
  maxTaskBytes: numberFrom(1),
  maxBytes: numberFrom(1),
  store: aStore,
  instanceGraceMs: numberFrom(0),
  clock: aClock,
  engine: anEngine,
  onError: aFunction,
  telemetry: aTelemetry,
  machines: optionsOf<CommandTaskMachines>({ lane: aMachine, task: aMachine }),
  inspect: anInspector,
}

/** The result of `submitTask`. */
export type SubmitResult =
  | { readonly taskId: string; readonly queuePosition: number }
  | { readonly error: string; readonly code: SubmitErrorCode }

/** Options of `submitTask`. */
export interface SubmitOptions {
  /**
   * Identifies the submission. Repeated with the same key while the task is retained, it gets the same answer, and nothing is submitted; another
   * task under the key is refused. 1 to 512 characters.
   */
  readonly idempotencyKey?: string
}

export const submitOptionTypes: OptionTypes<SubmitOptions> = {
  idempotencyKey: {
    expected: `a string of 1 to ${MAX_KEY} characters`,
    accepts: (key) => typeof key === 'string' && key !== '' && key.length <= MAX_KEY,
  },
}

/** What a manager has taken over from an earlier process, as ids of tasks. */
export interface CommandRecovery {
  /** They had not started: they wait for their instance. */
  readonly queued: readonly string[]
  /** They ran when the process ended: they have failed. */
  readonly interrupted: readonly string[]
}

/** The events of `TaskManager`. */
export interface TaskManagerEvents {
  /** A command has started, reported progress or ended. */
  readonly progress: TaskProgressMessage
  /** A task has ended; emitted once for each task. */
  readonly complete: TaskCompleteMessage
  /** An instance was paused or resumed. */
  readonly pause: InstancePauseMessage
}
