/** The errors with which `result` of a handle rejects. */
import { cancellationText } from '../async-tasks/cancel-reason.js'
import type { CancelledTaskInfo, FailedTaskInfo } from '../../machines/records.js'
import { AgentTasksError } from '../errors.js'

/** The task has failed. `code` is `TASK_FAILED`, `message` is the error of the task, and `cause` is the value that the run threw. */
export class TaskFailedError extends AgentTasksError {
  override readonly name = 'TaskFailedError'
  /** The record of the task. Its fields `errorName` and `errorCode` describe the error in more detail. */
  readonly record: FailedTaskInfo

  constructor(record: FailedTaskInfo) {
    super('TASK_FAILED', record.error, record.cause === undefined ? undefined : { cause: record.cause })
    this.record = record
  }
}

/** The task was cancelled, for example by `dispose`. `code` is `TASK_CANCELLED`. */
export class TaskCancelledError extends AgentTasksError {
  override readonly name = 'TaskCancelledError'
  /** The record of the task. Its field `cancelReason` is present if a reason was given. */
  readonly record: CancelledTaskInfo

  constructor(record: CancelledTaskInfo) {
    super('TASK_CANCELLED', cancellationText(`Task ${record.id}`, record))
    this.record = record
  }
}
