/** What is needed to start the runs of a task. */
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
  /** How long the run may take to stop after an abort, in ms. */
  readonly graceMs: number
  readonly params?: RunInput['params'] | undefined
  readonly previous?: PreviousTask | undefined
  /** Whether an earlier process has started the run, and this process continues it. */
  readonly isResumed?: boolean
}

/** How to start a run of a task. */
export interface RunPlan {
  readonly start: RunStart
  readonly ticket: QueueTicket
  readonly retry: RetryPolicy | undefined
}

/** What a task was launched with, to launch another task like it. */
export interface LaunchedTask {
  /** The input without the fields that belong to this one task: id, controller and parent. */
  readonly input: Omit<LaunchTaskInput, 'params'>
  /** A copy of the params, which nobody modifies. */
  readonly params: RunInput['params'] | undefined
  readonly runner: Runner
}

export const currentRuns = new PerTask<Run>()

/** How to start the next run of a task. Only for tasks that may be queued or run again. */
export const plans = new PerTask<RunPlan>()

/** What each task was launched with. Has no entry for tasks that the host runs itself, or whose runner has `isUnique`. */
export const launches = new PerTask<LaunchedTask>()

export class Runs implements Feature {
  /** The runs that have not settled, including those of cancelled tasks. */
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
