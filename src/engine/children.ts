/** The tasks that the run of another task launches. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import type { CancelOptions, LaunchTaskInput } from '../protocol/async-tasks.js'

/** The input of `context.launch`. The owner of the new task is the run. */
export type ChildTaskInput = Omit<LaunchTaskInput, 'owner' | 'parentId'>

/** Options of a wait for tasks (`waitFor`). */
export interface WaitOptions {
  /** `all` (default): waits until all tasks have ended. `any`: waits until one of them has ended. */
  readonly mode?: 'all' | 'any'
  /** The maximum wait in ms. Default: no limit. */
  readonly timeoutMs?: number
  /** Ends the wait when it aborts. The promise then rejects with the signal's reason, and the results of the tasks are still owed. */
  readonly signal?: AbortSignal
}

/** What a wait for tasks returns. */
export interface WaitResult {
  /** The tasks that have ended. */
  readonly settled: readonly SettledTaskInfo[]
  /** The tasks that have not ended. */
  readonly pending: readonly AsyncTaskInfo[]
  /** The ids for which no task is kept. */
  readonly unknown: readonly string[]
  /** The id of this delivery of results, for `confirm` and `wasDelivered`. Absent without a store, and if no result is delivered. */
  readonly deliveryId?: string
}

/** The tasks that a run has launched and whose results it has not taken yet. */
export interface RunChildren {
  /** Returns the ids of these tasks. Tasks that have ended come first. */
  ids(): string[]
  /**
   * Waits for tasks to end and takes their results. The wait also ends when the run is aborted or its task ends.
   * @param ids the tasks to wait for. Default: all tasks of the run
   * @throws the signal's reason when it aborts
   * @throws INVALID_INPUT for an invalid argument
   * @throws AgentTasksError `DEADLOCK` if the tasks wait for this run themselves
   */
  waitFor(ids?: readonly string[], options?: WaitOptions): Promise<WaitResult>
  /** Cancels a task of this run, and the tasks that it has launched. Returns false if the task has ended or is not a task of this run. */
  cancel(id: string, options?: CancelOptions | string): boolean
}
