/** The errors of the client. */
import { AgentTasksError } from '../errors.js'

/** The server answered with an error. `code` is the code that the server sent; docs/protocol.md lists the codes. */
export class TaskServerError extends AgentTasksError {
  /** The HTTP status; undefined when the answer came over a WebSocket. */
  readonly status: number | undefined

  constructor(code: string, message: string, status?: number) {
    super(code, message)
    this.status = status
  }
}

/** The server requires a token. The client sent none, or an invalid one. */
export const unauthorizedError = (message: string, status?: number): TaskServerError =>
  new TaskServerError(
    'UNAUTHORIZED',
    `${message.replace(/[^.?!]$/, '$&.')} Pass a token of the server: the option \`token\`, or AGENT_TASKS_TOKEN for the command line.`,
    status,
  )

/**
 * - `CONNECTION_FAILED`: there is no connection.
 * - `CONNECTION_LOST`: the connection ended before the answer. The server may have processed the request.
 * - `REQUEST_TIMEOUT`: no answer within `requestTimeoutMs`. The server may have processed the request.
 * - `CLIENT_CLOSED`: `close()` was called.
 * - `BAD_ANSWER`: the answer does not follow the protocol; the URL may be that of another server.
 */
export type ConnectionErrorCode =
  'CONNECTION_FAILED' | 'CONNECTION_LOST' | 'REQUEST_TIMEOUT' | 'CLIENT_CLOSED' | 'BAD_ANSWER'

/** The request has no valid answer: there is no connection, it was lost, or the answer does not follow the protocol. `code` says which. */
export class ConnectionError extends AgentTasksError {
  declare readonly code: ConnectionErrorCode
}

/** The server no longer has the task, because it was restarted or the task ended too long ago. */
export class TaskExpiredError extends AgentTasksError {
  override readonly taskId: string

  constructor(taskId: string) {
    super('TASK_EXPIRED', `The server no longer has task ${taskId}, so the outcome of the task is unknown.`)
    this.taskId = taskId
  }
}

export const closedError = (): ConnectionError => new ConnectionError('CLIENT_CLOSED', 'The client was closed.')
