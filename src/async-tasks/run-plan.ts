/** The data with which the runs of a task start. */
import { PerTask } from '../../machines/per-task.js'
import type { Run } from '../engine/engine.js'
import type { QueueTicket } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import type { FlatRunner, PreviousTask, RunInput, Runner } from '../engine/runner.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import type { RetryPolicy } from '../protocol/retry-policy.js'
import type { Feature } from './feature.js'
import type { TaskRegistry } from './registry.js'

export interface RunStart {
  readonly runner: FlatRunner
  /** How long it may take to stop after an abort, in ms. */
  readonly graceMs: number
  readonly params?: RunInput['params'] | undefined
  readonly previous?: PreviousTask | undefined
  /** Whether an earlier process started it and it continues. */
  readonly isResumed?: boolean
}

/** How the runs of a task start. */
export interface RunPlan {
  readonly start: RunStart
  readonly ticket: QueueTicket
  readonly retry: RetryPolicy | undefined
}

/** The launch of a task, for launching another one like it. */
export interface LaunchedTask {
  /** Without the fields that belong to that task only: id, controller and parent. */
  readonly input: Omit<LaunchTaskInput, 'params'>
  /** A copy that is not modified. */
  readonly params: RunInput['params'] | undefined
  readonly runner: Runner
}

export const currentRuns = new PerTask<Run>()

/** How to start a run when a slot is free. Only for tasks that may wait or be retried. */
export const plans = new PerTask<RunPlan>()

/** The launch of a task. Absent for a task that the host runs, and for a unique run. */
export const launches = new PerTask<LaunchedTask>()

/** The runs of a registry's tasks. */
export class Runs implements Feature {
  /** Runs that have not settled. The run of a cancelled task outlives it. */
  readonly unsettled = new Set<Run>()
  readonly #report: TaskRegistry['report']

  constructor({ report }: TaskRegistry) {
    this.#report = report
  }

  abort(entry: TaskEntry, reason: unknown): void {
    const { id, abortController } = entry.record
    try {
      abortController?.abort(reason)
    } catch (error) {
      this.#report(error, { source: 'abort-listener', taskId: id })
    }
    currentRuns.get(entry)?.abort(reason)
  }

  ended(entry: TaskEntry): void {
    plans.take(entry)
  }
}

export const runs = (registry: TaskRegistry): Runs => new Runs(registry)
