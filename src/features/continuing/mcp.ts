/** Applies the limits of an MCP client to the tasks that continue others. */
import type { McpFeature } from '../../mcp/mcp-feature.js'
import { continuing } from './continuing.js'

export const mcpContinuing: McpFeature = {
  connect: (manager, { launching }) => Object.assign(manager.reads.use(continuing), { launching }),
}
