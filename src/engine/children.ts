/** What a run does with the tasks that it launches. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import type { CancelOptions, LaunchTaskInput } from '../protocol/async-tasks.js'

/** The input of `launch` in the context of a run: the owner is the run. */
export type ChildTaskInput = Omit<LaunchTaskInput, 'owner' | 'parentId'>

/** Options of `waitFor`. */
export interface WaitOptions {
  /** `all` (default) waits for the last of them, `any` for the first. */
  readonly mode?: 'all' | 'any'
  /** The maximum wait in ms; none when absent. */
  readonly timeoutMs?: number
  /** Ends the wait early: the promise rejects with the signal's reason, and nothing is acknowledged. */
  readonly signal?: AbortSignal
}

/** The tasks at the end of a wait. */
export interface WaitResult {
  /** Named tasks that had ended. */
  readonly settled: readonly SettledTaskInfo[]
  /** Named tasks that had not. */
  readonly pending: readonly AsyncTaskInfo[]
  /** Named ids that no retained task has. */
  readonly unknown: readonly string[]
  /** Only with a store: the delivery id of what this result delivers, for `confirm` and `wasDelivered`. Absent when it delivers nothing. */
  readonly deliveryId?: string
}

/** The tasks that a run has launched and that it owns: those that have not ended, and those whose results it has not taken. */
export interface RunChildren {
  /** The ids of these tasks: what is owed first, then what has not ended. */
  ids(): string[]
  /**
   * Waits for tasks to end, and takes their results; the run's own signal ends the wait, too, and so does the end of its task.
   * @param ids default: all of them
   * @throws the signal's reason when aborted, InvalidInputError
   */
  waitFor(ids?: readonly string[], options?: WaitOptions): Promise<WaitResult>
  /** Cancels one of them, and what it has launched. False when it had ended or is none of them. */
  cancel(id: string, options?: CancelOptions | string): boolean
}
