/** The features that have a part of the MCP server. */
import { mcpContinuing } from '../features/continuing/mcp.js'
import { mcpHooks } from '../features/hooks/mcp.js'
import { mcpMonitors } from '../features/monitors/mcp.js'
import { mcpSchedules } from '../features/schedules/mcp.js'
import type { McpFeature } from './mcp-feature.js'

export const mcpFeatures: readonly McpFeature[] = [mcpSchedules, mcpMonitors, mcpContinuing, mcpHooks]
