/** Monitors of MCP clients. Models may start monitors if the configuration has `monitors`. */
import { resolve } from 'node:path'
import { omitUndefined } from '../../data/omit-undefined.js'
import type { McpFeature } from '../../mcp/mcp-feature.js'
import type { AgentConfig } from '../../protocol/agent-config.js'
import type { MonitorLimits } from '../../protocol/monitors.js'
import { monitors } from './monitors.js'

const limitsOf = ({ monitors: limits }: AgentConfig, folder: string): MonitorLimits | undefined =>
  limits && omitUndefined({ ...limits, files: limits.files?.map((file) => resolve(folder, file)) })

export const mcpMonitors: McpFeature = {
  managerOptions: (config, folder) => ({ monitors: limitsOf(config, folder) ?? {} }),
  toolSetting: (config, folder) => omitUndefined({ monitors: limitsOf(config, folder) }),
  connect: (manager, { groupOf }) => Object.assign(manager.reads.use(monitors), { groupOf }),
}
