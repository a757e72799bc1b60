/** How the runs of a task start. */
import { PerTask } from '../../machines/per-task.js'
import type { Run } from '../engine/engine.js'
import type { QueueTicket } from '../../machines/records.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import type { FlatRunner, PreviousTask, RunInput, Runner } from '../engine/runner.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import type { RetryPolicy } from '../protocol/retry-policy.js'
import type { Feature } from './feature.js'
import type { TaskRegistry } from './registry.js'

/** A run that is to be started. */
export interface RunStart {
  readonly runner: FlatRunner
  /** How long it may take to stop after an abort, in ms. */
  readonly graceMs: number
  /** Its further input. */
  readonly params?: RunInput['params'] | undefined
  /** What it continues. */
  readonly previous?: PreviousTask | undefined
  /** An earlier process started it, and it goes on. */
  readonly isResumed?: boolean
}

/** How the runs of a task start. */
export interface RunPlan {
  readonly start: RunStart
  readonly ticket: QueueTicket
  readonly retry: RetryPolicy | undefined
}

/** What a task was launched with: another one can be launched with the same. */
export interface LaunchedTask {
  /** What belongs to that task alone is not used again: its id, its controller, its parent. */
  readonly input: Omit<LaunchTaskInput, 'params'>
  /** A copy that nobody changes. */
  readonly params: RunInput['params'] | undefined
  readonly runner: Runner
}

/** The present run of a task. */
export const currentRuns = new PerTask<Run>()

/** What runs when a slot is free, or again; only of tasks that may wait or be repeated. */
export const plans = new PerTask<RunPlan>()

/** What a task was launched with; absent for a task that the host runs, and for a run that is unique. */
export const launches = new PerTask<LaunchedTask>()

/** The runs of the tasks of a registry. */
export class Runs implements Feature {
  /** Those that have not settled: the run of a cancelled task outlives it. */
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

/** The runs of a registry. */
export const runs = (registry: TaskRegistry): Runs => new Runs(registry)
