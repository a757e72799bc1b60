/** The public names of `agent-tasks/server`. */

// The server
export { startTaskServer } from './start-task-server.js'
export type { TaskServer, TaskServerOptions } from './start-task-server.js'
export { resolveServerConfig, serverConfigSchema } from '../protocol/server-config.js'
export type { ConfigSources, ServerConfig, ServerConfigInput } from '../protocol/server-config.js'

// Command tasks without the server
export { TaskManager } from '../command-tasks/task-manager.js'
export type { SubmitResult, TaskManagerEvents, TaskManagerOptions } from '../command-tasks/task-manager.js'
export { InstanceManager } from '../instances/instance-manager.js'
export type { InstanceEntry, InstanceManagerOptions } from '../instances/instance-manager.js'
export { handleMCPRequest } from '../instances/mcp-request.js'

// What runs commands
export { localInstance, localTool } from '../instances/local-instance.js'
export type { LocalInstanceOptions, LocalTool, LocalToolContext } from '../instances/local-instance.js'
export { mcpInstance } from '../instances/mcp-instance.js'
export type { CallProgress, Instance, ToolCall, ToolDescription } from '../instances/instance.js'
export type { ToolCallResult } from '../protocol/tool-result.js'

// Tasks and messages
export type {
  CommandStatus,
  EndStatus,
  Task,
  TaskCommand,
  TaskCompleteMessage,
  TaskError,
  TaskProgressMessage,
  TaskStatus,
  TaskSubmitMessage,
  TaskSummary,
} from '../protocol/command-tasks.js'
