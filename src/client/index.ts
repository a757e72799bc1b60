/** `agent-tasks/client`: the client of a task server, and workers that offer instances to it. It runs in browsers and in Node. */

// The client of a task server
export { createTaskClient } from './task-client.js'
export type { TaskClient, TaskList } from './task-client.js'
export type { TaskMessage } from './session.js'

// The worker's side of a WebSocket instance
export { connectInstance } from './connect-instance.js'
export type { ConnectedInstance } from './connect-instance.js'
export { instanceTool } from '../protocol/instance-tools.js'
export type { InstanceTool, InstanceToolContext } from '../protocol/instance-tools.js'

// Errors
export { AgentTasksError } from '../errors.js'
export { errorCodes } from '../protocol/client-messages.js'

// Tasks and messages
export type {
  Task,
  TaskCompleteMessage,
  TaskProgressMessage,
  TaskStatus,
  TaskSummary,
} from '../protocol/command-tasks.js'
