/** What is needed to start the runs of a task. */
import { TaskData } from '../../machines/task-data.js'
import { callContext, type CallContext } from '../isolation/call-context.js'
import type { IsolatedController } from '../isolation/isolated-controller.js'
import type { Run } from '../engine/engine.js'
import type { QueueTicket } from '../../machines/task-admission.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import { wasStopped } from '../../machines/task-status.js'
import type { ResolvedRunner, PreviousTask, Runner } from '../engine/runner.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import type { KeptParams, RunFields } from '../protocol/run-fields.js'
import type { RetryPolicy } from '../protocol/retry-policy.js'
import type { Feature, Suspension } from './feature.js'
import type { TaskRegistry } from './registry.js'

export interface RunStart {
  readonly runner: ResolvedRunner
  /** How long the run may take to stop after an abort, in ms. */
  readonly graceMs: number
  readonly params?: KeptParams | undefined
  readonly previous?: PreviousTask | undefined
  /** Whether an earlier process has started the run, and this process continues it. */
  readonly isResumed?: boolean
  /** Whether a process that was closed has run the same attempt before. */
  readonly isRepeated?: boolean
}

/** Returns how long a task waits for a run of this runner after an abort, in ms. */
export const graceFor = ({ graceMs = 0 }: ResolvedRunner, ofTask: number): number => Math.max(graceMs, ofTask)

export interface RunPlan {
  readonly start: RunStart
  readonly ticket: QueueTicket
  readonly retry: RetryPolicy | undefined
  /** How many times in a row runs of this attempt were stopped because their process was closed. Default 0. */
  readonly stops?: number
}

/** What a task was launched with, to launch another task like it. */
export interface LaunchedTask {
  /** The input without the fields that belong to this one task: id, controller and parent. */
  readonly input: Omit<LaunchTaskInput, keyof RunFields>
  /** A copy of the params, which nobody modifies. */
  readonly params: KeptParams | undefined
  readonly runner: Runner
}

export const currentRuns = new TaskData<Run>()

/** What is known of the current run of a task besides its `Run`. */
export interface RunState {
  readonly runner: ResolvedRunner
  hasBegun: boolean
  /** Aborts when this process leaves the run to the next one. */
  readonly leaving: IsolatedController
}

export const runStates = new TaskData<RunState>()

/** How to start the next run of a task. Only for tasks that may be queued or run again. */
export const plans = new TaskData<RunPlan>()

/** What each task was launched with. Has no entry for tasks that the host runs itself, or whose runner has `isUnique`. */
export const launches = new TaskData<LaunchedTask>()

/** The controller of each task, which is aborted after its record has ended. */
const controllers = new TaskData<AbortController>()

/** Notes the controller of a task that has a new one. */
export function noteController(entry: TaskEntry): void {
  const { abortController } = entry.record
  if (abortController !== undefined) controllers.set(entry, abortController)
}

/** The context of the call that launched or registered each task, until the task has ended. */
const contexts = new TaskData<CallContext>()

export class Runs implements Feature {
  /** The runs that have not settled, including those of cancelled tasks. */
  readonly unsettled = new Set<Run>()
  readonly #registry: TaskRegistry

  constructor(registry: TaskRegistry) {
    this.#registry = registry
  }

  /** Notes that the current call has launched or registered a task. */
  launched(entry: TaskEntry): void {
    contexts.set(entry, callContext())
    noteController(entry)
  }

  runStarted(entry: TaskEntry, run: Run): void {
    currentRuns.set(entry, run)
    this.unsettled.add(run)
  }

  runEnded(entry: TaskEntry, run: Run): void {
    this.unsettled.delete(run)
    if (currentRuns.get(entry) === run) currentRuns.take(entry)
  }

  /** Returns the context for code of a task: that of its launch, or that of the host if an earlier process has launched it. */
  contextOf(entry: TaskEntry): CallContext {
    return contexts.get(entry) ?? this.#registry.hostContext
  }

  abort(entry: TaskEntry, reason: unknown): void {
    this.contextOf(entry).runInAsyncScope(() => this.#abort(entry, reason))
  }

  #abort(entry: TaskEntry, reason: unknown): void {
    try {
      controllers.take(entry)?.abort(reason)
    } catch (error) {
      this.#registry.report(error, { source: 'abort-listener', taskId: entry.record.id })
    }
    currentRuns.get(entry)?.abort(reason)
  }

  suspended(entry: TaskEntry, how: Suspension): void {
    if (how === 'queued') return
    if (how === 'left') runStates.get(entry)?.leaving.abort()
    else this.abort(entry, how)
  }

  ended(entry: TaskEntry): void {
    for (const data of [plans, contexts, runStates]) data.take(entry)
    // A task that was stopped is aborted after this.
    if (!wasStopped(entry.record.status)) controllers.take(entry)
  }
}

export const runs = (registry: TaskRegistry): Runs => new Runs(registry)
