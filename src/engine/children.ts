/** The tasks that a run launches. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import type { CancelOptions, LaunchTaskInput } from '../protocol/async-tasks.js'

/** The input of `launch` in a run's context. The run is the owner. */
export type ChildTaskInput = Omit<LaunchTaskInput, 'owner' | 'parentId'>

/** Options of `waitFor`. */
export interface WaitOptions {
  /** `all` (default) waits until all tasks have ended; `any` waits for the first. */
  readonly mode?: 'all' | 'any'
  /** The maximum wait in ms. Default: no limit. */
  readonly timeoutMs?: number
  /** Ends the wait early. The promise rejects with the signal's reason, and no result is acknowledged. */
  readonly signal?: AbortSignal
}

/** The state of the tasks when a wait ends. */
export interface WaitResult {
  /** The requested tasks that have ended. */
  readonly settled: readonly SettledTaskInfo[]
  /** The requested tasks that have not ended. */
  readonly pending: readonly AsyncTaskInfo[]
  /** The requested ids that no kept task has. */
  readonly unknown: readonly string[]
  /** With a store: the id of this delivery, for `confirm` and `wasDelivered`. Absent if no result is delivered. */
  readonly deliveryId?: string
}

/** The tasks that a run launched and owns, until they have ended and the run has taken their results. */
export interface RunChildren {
  /** Their ids. Tasks with undelivered results come first, then those that have not ended. */
  ids(): string[]
  /**
   * Waits for tasks to end and takes their results. The run's own signal and the end of its task also end the wait.
   * @param ids default: all of them
   * @throws the signal's reason when aborted, InvalidInputError
   */
  waitFor(ids?: readonly string[], options?: WaitOptions): Promise<WaitResult>
  /** Cancels a task of this run, and the tasks that it has launched. Returns false if it has ended or does not belong to this run. */
  cancel(id: string, options?: CancelOptions | string): boolean
}
