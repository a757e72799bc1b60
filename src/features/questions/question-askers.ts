/** Asks a person the questions of tasks while a call waits for these tasks. */
import type { AsyncTaskInfo } from '../../../machines/records.js'

/** Asks a person the questions of tasks. */
export interface QuestionAsker {
  /**
   * Called when a call begins to wait for tasks.
   * @param onGivenUp called with the id of a task if the person can no longer be asked its open question. Not called inside `ask`
   */
  readonly begin: (onGivenUp: (taskId: string) => void) => Asking
}

/** The questions that are asked during one wait. */
export interface Asking {
  /**
   * Asks the open questions of a task. Returns whether all of them are being asked. If not, the wait ends, so that the caller learns of them. Must
   * not throw.
   */
  readonly ask: (task: AsyncTaskInfo) => boolean
  /** Ends the wait and withdraws questions that are still being asked. */
  readonly end: () => void
}
