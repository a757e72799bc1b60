/** Asking a person the questions of tasks while a call waits for them. */
import type { AsyncTaskInfo } from '../../../machines/records.js'

/** Asks a person the questions of the tasks that a call waits for. */
export interface QuestionAsker {
  /**
   * A wait begins.
   * @param onGivenUp called with the task of a question that is open and asked no longer; not within `ask`
   */
  readonly begin: (onGivenUp: (taskId: string) => void) => Asking
}

/** The questions of one wait. */
export interface Asking {
  /** A task has questions. Returns whether the person is asked all of them, so that the wait goes on. Must not throw. */
  readonly ask: (task: AsyncTaskInfo) => boolean
  /** The wait has ended: what is still asked is withdrawn. */
  readonly end: () => void
}
