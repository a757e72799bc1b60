/** The options and results of a `TaskManager`. */
import type { CommandTaskMachine } from '../../machines/command-task.js'
import type { LaneMachine } from '../../machines/lane.js'
import type { OnError } from '../isolation/error-report.js'
import type { Inspect } from '../isolation/inspection.js'
import type { Clock } from '../system/clock.js'
import type { Engine } from '../engine/engine.js'
import type { InstanceManager } from './instances/instance-manager.js'
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
  aStore,
  numberFrom,
  objectWith,
  optionsOf,
  required,
  textOfLength,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { aTelemetry, type Telemetry } from '../protocol/telemetry.js'
import type { Store } from '../store/store.js'

/** The maximum length of an idempotency key, in characters. */
const MAX_KEY = 512

/** Options of `TaskManager`. */
export interface TaskManagerOptions {
  /** The instances that run the commands. No other `TaskManager` may use them. */
  readonly instances: InstanceManager
  /** The time limit of a command, in ms. A command may set a shorter limit. Default 60000. */
  readonly commandTimeout?: number
  /** The maximum number of unfinished tasks of an instance. With 0, no tasks are accepted. Default 100. */
  readonly maxQueueSize?: number
  /** How long the next command of the instance waits for an aborted command to settle, in ms. Default 2000. */
  readonly abortGraceMs?: number
  /** How long an ended task is kept, in ms. Default 3600000. */
  readonly retentionMs?: number
  /** The maximum number of ended tasks that are kept. Default 1000. */
  readonly maxRetained?: number
  /** The maximum size of a command's result, in bytes of JSON. A larger result fails the command with `RESULT_TOO_LARGE`. Default 16 MiB. */
  readonly maxResultBytes?: number
  /** The maximum size of a task with its results, in bytes of JSON. Default 64 MiB. */
  readonly maxTaskBytes?: number
  /** The maximum size of all tasks together, in bytes of JSON. To make room, the manager drops the tasks that ended first. Default 256 MiB. */
  readonly maxBytes?: number
  /**
   * Keeps tasks when the process ends. The next manager with the same store takes over these tasks. Default: no store, so tasks end with the process.
   */
  readonly store?: Store
  /** How long stored tasks of an earlier process wait for their instance to connect, in ms. After that they fail. Default 90000. */
  readonly instanceGraceMs?: number
  /** The source of time and timers. Default: the platform's clock. */
  readonly clock?: Clock
  /** Starts the commands. Default: an engine that runs them in this process. */
  readonly engine?: Engine
  /** Called with exceptions of listeners, and when a result arrives after its command was aborted. Default: `console.error`. */
  readonly onError?: OnError
  /** Traces the commands and counts the tasks (`agent-tasks/telemetry`). Default: none. */
  readonly telemetry?: Telemetry | undefined
  /** State machines that replace those of the package. */
  readonly machines?: CommandTaskMachines
  /** Receives the XState inspection events of lanes and tasks, after the change that caused them. Default: none. */
  readonly inspect?: Inspect | undefined
}

/** State machines that replace those of the package. Make them from the original ones with `machine.provide`; they receive the same input. */
export interface CommandTaskMachines {
  /** Runs the tasks of one instance, one after the other. */
  readonly lane?: LaneMachine
  /** Runs the commands of one task, one after the other. */
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

/** The result of `submitTask`: the id of the task and its position in the queue, or why the task was refused. */
export type SubmitResult =
  | { readonly taskId: string; readonly queuePosition: number }
  | { readonly error: string; readonly code: SubmitErrorCode }

/** Options of `submitTask`. */
export interface SubmitOptions {
  /**
   * Identifies the submission, so that it can be repeated safely. While the task is kept, a repeated submission with the same key returns the same
   * answer and adds no task. A different task with the same key is refused. 1 to 512 characters.
   */
  readonly idempotencyKey?: string
}

export const submitOptionTypes: OptionTypes<SubmitOptions> = {
  idempotencyKey: textOfLength(MAX_KEY),
}

/** The ids of the tasks that a manager took over from an earlier process. */
export interface CommandRecovery {
  /** Tasks that had not started. They wait for their instance to connect. */
  readonly queued: readonly string[]
  /** Tasks that were running. They have failed with `INTERRUPTED`. */
  readonly interrupted: readonly string[]
}

/** The events of `TaskManager`. */
export interface TaskManagerEvents {
  /** A command has started, reported progress or ended. */
  readonly progress: TaskProgressMessage
  /** A task has ended. Emitted once for each task. */
  readonly complete: TaskCompleteMessage
  /** An instance was paused or resumed. */
  readonly pause: InstancePauseMessage
}
