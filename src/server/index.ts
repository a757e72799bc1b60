/** `agent-tasks/server`: command tasks, and the server that accepts them. */

// The server
export { startTaskServer } from './start-task-server.js'
export type { TaskServer, TaskServerOptions } from './start-task-server.js'
export { resolveServerConfig, serverConfigSchema } from '../protocol/server-config.js'
export type { ServerConfig } from '../protocol/server-config.js'
export { disposeOnSignals } from '../engine/dispose-on-signals.js'

// Command tasks without the server
export { TaskManager } from '../command-tasks/task-manager.js'
export type { TaskManagerOptions } from '../command-tasks/options.js'
export { InstanceManager } from '../command-tasks/instances/instance-manager.js'
export type { InstanceEntry } from '../command-tasks/instances/instance-manager.js'
export { handleMCPRequest } from '../command-tasks/instances/mcp-request.js'
export type { MCPRequest, MCPResponse } from '../protocol/tool-calls.js'

// What runs commands
export { localInstance } from '../command-tasks/instances/local-instance.js'
export { instanceTool } from '../protocol/instance-tools.js'
export type { InstanceTool, InstanceToolContext } from '../protocol/instance-tools.js'
export { mcpInstance } from '../command-tasks/instances/mcp-instance.js'
export type { MCPInstance } from '../command-tasks/instances/mcp-instance.js'
export type { Instance, ToolCall, ToolDescription } from '../command-tasks/instances/instance.js'
export type { ToolCallResult } from '../protocol/tool-result.js'

// Tasks and messages
export type {
  CommandStatus,
  Task,
  TaskCommand,
  TaskCompleteMessage,
  TaskProgressMessage,
  TaskStatus,
  TaskSubmitMessage,
  TaskSummary,
} from '../protocol/command-tasks.js'
