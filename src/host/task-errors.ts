/** The errors that `result` of a handle rejects with. */
import { cancellationText } from '../async-tasks/cancel-reason.js'
import type { CancelledTaskInfo, FailedTaskInfo } from '../../machines/records.js'
import { AgentTasksError } from '../errors.js'

/** The task has failed. `code` is `TASK_FAILED`, the message is the error of the task, and `cause` is what the run threw. */
export class TaskFailedError extends AgentTasksError {
  override readonly name = 'TaskFailedError'
  /** The record of the task. `errorName` and `errorCode` describe the error further. */
  readonly record: FailedTaskInfo

  constructor(record: FailedTaskInfo) {
    super('TASK_FAILED', record.error, record.cause === undefined ? undefined : { cause: record.cause })
    this.record = record
  }
}

/** The task was cancelled, possibly by `dispose`. `code` is `TASK_CANCELLED`. */
export class TaskCancelledError extends AgentTasksError {
  override readonly name = 'TaskCancelledError'
  /** The record of the task. `cancelReason` is the reason, if one was given. */
  readonly record: CancelledTaskInfo

  constructor(record: CancelledTaskInfo) {
    super('TASK_CANCELLED', cancellationText(`Task ${record.id}`, record))
    this.record = record
  }
}
