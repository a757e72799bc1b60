/** Schedules of MCP clients. They exist if the configuration has `schedules`. */
import type { McpFeature } from '../../mcp/mcp-feature.js'
import { schedules } from './schedules.js'

export const mcpSchedules: McpFeature = {
  managerOptions: ({ schedules: limits }) =>
    limits === undefined
      ? {}
      : { schedules: { maxPerOwner: limits.maxPerOwner, minPeriodMs: limits.minPeriodSeconds * 1000 } },
  toolSetting: ({ schedules: limits }) => ({ hasSchedules: limits !== undefined }),
  connect: (manager, { groupOf, launching }) => Object.assign(manager.reads.use(schedules), { groupOf, launching }),
}
