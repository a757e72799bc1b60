/** How the runs of a task start. */
import { PerTask } from '../../machines/per-task.js'
import type { Run } from '../engine/engine.js'
import type { QueueTicket } from '../../machines/records.js'
import type { FlatRunner, RunInput, Runner } from '../engine/runner.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import type { RetryPolicy } from '../protocol/retry-policy.js'

/** A run that is to be started. */
export interface RunStart {
  readonly runner: FlatRunner
  /** How long it may take to stop after an abort, in ms. */
  readonly graceMs: number
  /** Its further input. */
  readonly params?: RunInput['params'] | undefined
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
