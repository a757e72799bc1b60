/** The public names of `agent-tasks/server`. */

// The server
export { startTaskServer } from './start-task-server.js'
export type { TaskCluster } from '../task-backend/task-backend.js'
export type { TaskServer, TaskServerOptions } from './start-task-server.js'
export { resolveServerConfig, serverConfigSchema } from '../protocol/server-config.js'
export type { ConfigSources, PartOf, ServerConfig, ServerConfigInput } from '../protocol/server-config.js'

// Command tasks without the server
export { TaskManager } from '../command-tasks/task-manager.js'
export type {
  CommandRecovery,
  CommandTaskMachines,
  SubmitOptions,
  SubmitResult,
  TaskManagerEvents,
  TaskManagerOptions,
} from '../command-tasks/options.js'
export { InstanceManager } from '../instances/instance-manager.js'
export type {
  ConnectHandler,
  DisconnectHandler,
  InstanceEntry,
  InstanceManagerOptions,
  InstanceState,
  OnInstanceError,
} from '../instances/instance-manager.js'
export { handleMCPRequest } from '../instances/mcp-request.js'
export type { MCPRequestContext } from '../instances/mcp-request.js'
export type { MCPAnswer, MCPError, MCPRequest, MCPResponse } from '../protocol/tool-calls.js'

// What runs commands
export { localInstance } from '../instances/local-instance.js'
export type { LocalInstanceOptions } from '../instances/local-instance.js'
export { instanceTool } from '../protocol/instance-tools.js'
export type { InstanceTool, InstanceToolContext, TaskProgress } from '../protocol/instance-tools.js'
export { mcpInstance } from '../instances/mcp-instance.js'
export type { MCPInstance, MCPInstanceOptions } from '../instances/mcp-instance.js'
export type { ChildProgram } from '../instances/child-transport.js'
export type { MCPServerLocation } from '../instances/mcp-server.js'
export type {
  Instance,
  InstanceConnection,
  InstanceEnd,
  InstancePeer,
  ToolCall,
  ToolDescription,
} from '../instances/instance.js'
export type { ToolCallResult } from '../protocol/tool-result.js'

// The end of a host
export { disposeOnSignals } from '../engine/dispose-on-signals.js'
export type { DisposeOnSignalsOptions, DisposeTarget } from '../engine/dispose-on-signals.js'

// Errors
export { AgentTasksError, InstanceError, InvalidSettingError, ToolCallError } from '../errors.js'
export type { InstanceErrorCode } from '../errors.js'

// Tasks and messages
export type {
  CommandStatus,
  EndStatus,
  InstancePauseMessage,
  ResultReference,
  SubmitErrorCode,
  Task,
  TaskCommand,
  TaskCompleteMessage,
  TaskError,
  TaskProgressMessage,
  TaskStatus,
  TaskSubmitMessage,
  TaskSummary,
} from '../protocol/command-tasks.js'
