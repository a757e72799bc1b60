/** What a feature adds to the MCP server. `mcp-features.ts` lists the features. */
import type { ActiveTaskInfo } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { AsyncTaskManagerOptions } from '../async-tasks/manager-options.js'
import type { AgentConfig } from '../protocol/agent-config.js'
import type { ToolSetting } from '../tools/tool-descriptor.js'

export interface McpFeature {
  /** Returns options of the manager. `folder` is the directory that relative paths of the configuration start from. */
  readonly managerOptions?: (config: AgentConfig, folder: string) => AsyncTaskManagerOptions
  /** Returns what its tools need. */
  readonly toolSetting?: (config: AgentConfig, folder: string) => Partial<ToolSetting>
  readonly connect?: (manager: AsyncTaskManager, clients: Clients) => void
}

export interface Clients {
  /** Returns the client of an owner. */
  readonly groupOf: (owner: string) => string
  /** Launches a task that no call of the client launches. Throws AgentTasksError if the client has reached its limit. */
  readonly launching: (owner: string, launch: () => ActiveTaskInfo) => ActiveTaskInfo
}
