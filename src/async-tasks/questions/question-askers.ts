/** Asks a person the questions of the tasks that a call waits for. */
import type { AsyncTaskInfo } from '../../../machines/records.js'

/** Asks a person on behalf of tasks. */
export interface QuestionAsker {
  /**
   * Begins a wait.
   * @param onGivenUp called with a task if its open question is no longer asked; not called inside `ask`
   */
  readonly begin: (onGivenUp: (taskId: string) => void) => Asking
}

/** The questions of one wait. */
export interface Asking {
  /** Asks the questions of a task. Returns whether all of them are being asked, so that the wait continues. Must not throw. */
  readonly ask: (task: AsyncTaskInfo) => boolean
  /** Ends the wait and withdraws questions that are still being asked. */
  readonly end: () => void
}
