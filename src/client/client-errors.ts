/** The errors of the client: what the server refused, what happened to the connection, and tasks that are forgotten. */
import { AgentTasksError } from '../errors.js'

/** The server refused or could not do what was asked; `code` is the server's own. */
export class TaskServerError extends AgentTasksError {
  override readonly name = 'TaskServerError'
  /** The HTTP status, when the answer came over REST. */
  readonly status: number | undefined

  constructor(code: string, message: string, status?: number) {
    super(code, message)
    this.status = status
  }
}

/**
 * `CONNECTION_FAILED`: no connection could be made. `CONNECTION_LOST`: it ended before the answer, so what was asked may
 * or may not have happened. `REQUEST_TIMEOUT`: no answer came in time, likewise. `CLIENT_CLOSED`: `close()` was called.
 * `BAD_ANSWER`: what answers is no such server.
 */
export type ConnectionErrorCode =
  'CONNECTION_FAILED' | 'CONNECTION_LOST' | 'REQUEST_TIMEOUT' | 'CLIENT_CLOSED' | 'BAD_ANSWER'

/** The connection failed, or ended before an answer. */
export class ConnectionError extends AgentTasksError {
  override readonly name = 'ConnectionError'
  declare readonly code: ConnectionErrorCode
}

/** The server knew the task and knows it no longer: it was restarted, or the task ended too long ago (S9). */
export class TaskExpiredError extends AgentTasksError {
  override readonly name = 'TaskExpiredError'
  /** The task that the server forgot. */
  readonly taskId: string

  constructor(taskId: string) {
    super('TASK_EXPIRED', `Task ${taskId} is not known to the server any more: how it ended cannot be told.`)
    this.taskId = taskId
  }
}
