/** `agent-tasks/mcp`: background tasks for any agent that speaks MCP. */

// Servers
export { startMcpStdioServer } from './stdio.js'
export type { McpStdioServer } from './stdio.js'
export { startMcpHttpServer } from './http.js'
export type { McpHttpServer } from './http.js'
export { disposeOnSignals } from '../engine/dispose-on-signals.js'

// Configuration
export { loadAgentConfig, parseAgentConfig } from './config-file.js'
export { agentConfigJsonSchema, agentConfigSchema, CONFIG_FILE_NAME } from '../protocol/agent-config.js'
export type { AgentConfig } from '../protocol/agent-config.js'
