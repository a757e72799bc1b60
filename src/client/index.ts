/** The public names of `agent-tasks/client`. It runs in browsers and in Node. */

// The client of a task server
export { createTaskClient } from './task-client.js'
export type {
  TaskClient,
  TaskClientOptions,
  SubmitTaskOptions,
  TaskListOptions,
  TaskPage,
  TaskSubmission,
  WatchOptions,
} from './task-client.js'
export type { ConnectionState, TaskEvent } from './session.js'

// The worker's side of a WebSocket instance
export { connectInstance } from './connect-instance.js'
export type { ConnectedInstance, ConnectInstanceOptions } from './connect-instance.js'
export { instanceTool } from '../protocol/instance-tools.js'
export type { InstanceTool, InstanceToolContext, TaskProgress } from '../protocol/instance-tools.js'

// Used by both
export type { FetchLike, SocketConstructor, SocketLike } from './platform.js'
export type { ReconnectOptions } from './reconnection.js'
export { AgentTasksError } from '../errors.js'
export { ConnectionError, TaskExpiredError, TaskServerError } from './client-errors.js'
export type { ConnectionErrorCode } from './client-errors.js'
export type {
  CommandError,
  CommandStatus,
  InstancePauseMessage,
  ResultReference,
  Task,
  TaskCommand,
  TaskCompleteMessage,
  TaskError,
  TaskProgressMessage,
  TaskStatus,
  TaskSummary,
} from '../protocol/command-tasks.js'
export type { InstanceSummary } from '../protocol/rest.js'
export { errorCodes } from '../protocol/client-messages.js'
