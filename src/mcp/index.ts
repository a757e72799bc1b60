/** `agent-tasks/mcp`: background tasks for agents that speak MCP. */

// Servers
export { startMcpStdioServer } from './stdio.js'
export type { McpStdioServer, McpStdioServerOptions } from './stdio.js'
export { startMcpHttpServer } from './http.js'
export type { McpHttpServer, McpHttpServerOptions } from './http.js'
export type { McpServerOptions } from './backend.js'
export { disposeOnSignals } from '../engine/dispose-on-signals.js'
export type { DisposeOnSignalsOptions, DisposeTarget } from '../engine/dispose-on-signals.js'

// Configuration
export { loadAgentConfig, parseAgentConfig } from './config-file.js'
export type { LoadedConfig } from './config-file.js'
export type { UntrustedFile } from './trust.js'
export { agentConfigJsonSchema, agentConfigSchema, CONFIG_FILE_NAME } from '../protocol/agent-config.js'
export type { AgentConfig, AgentConfigInput } from '../protocol/agent-config.js'
