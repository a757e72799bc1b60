/** The options and results of a `TaskManager`. */
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
  /** The maximum time limit of a command, in ms. Default 60000. */
  readonly commandTimeout?: number
  /** The maximum number of unfinished tasks of an instance. 0 accepts no tasks. Default 100. */
  readonly maxQueueSize?: number
  /** How long an aborted command may hold its lane, in ms. Default 2000. */
  readonly abortGraceMs?: number
  /** How long an ended task is kept, in ms. Default 3600000. */
  readonly retentionMs?: number
  /** The maximum number of ended tasks that are kept. Default 1000. */
  readonly maxRetained?: number
  /** The maximum size of a command's result, in bytes of JSON; a larger one fails its command with `RESULT_TOO_LARGE`. Default 16 MiB. */
  readonly maxResultBytes?: number
  /** The maximum size of a task with its results, in bytes of JSON. Default 64 MiB. */
  readonly maxTaskBytes?: number
  /** The maximum size of all tasks, in bytes of JSON. To make room, the earliest ended tasks are dropped. Default 256 MiB. */
  readonly maxBytes?: number
  /** Keeps tasks when the process ends. The first manager on it takes over the stored tasks. Default: no store, so tasks end with the process. */
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
  /** Machines that replace the package's own. */
  readonly machines?: CommandTaskMachines
  /** Receives the XState inspection events of lanes and tasks, after the change they belong to. Default: none. */
  readonly inspect?: Inspect | undefined
}

/** Machines that replace the package's own, made from them with `machine.provide`. They get the same input. */
export interface CommandTaskMachines {
  /** Runs the tasks of one instance in sequence. */
  readonly lane?: LaneMachine
  /** Steps through the commands of one task. */
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
   * Identifies the submission. While the task is retained, a submission with the same key returns the same answer and submits no new task; another
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

/** The tasks that a manager took over from an earlier process, by id. */
export interface CommandRecovery {
  /** Tasks that had not started; they wait for their instance. */
  readonly queued: readonly string[]
  /** Tasks that were running; they have failed. */
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
