/**
 * The description of a tool. The tools of hosts and of MCP clients, the instructions and the prompt of the MCP server, and docs/tools.md are all made
 * from the descriptors in `tool-list.ts`.
 */
import type { ClusterTasks } from '../command-tasks/cluster-tasks.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { MonitorLimits } from '../async-tasks/monitors/monitors.js'
import type { CommandPolicy } from './command-policy.js'
import type { InstanceSource } from './instance-source.js'
import type { ResolveSubagent, SubagentEntry } from './subagents.js'
import type { AsyncTaskToolOptions, ForegroundOptions } from './task-tool-options.js'
import type { TimeoutSettings } from './task-timeout.js'
import type { Tool } from './tool.js'
import type { ToolOutput } from './tool-output.js'

/** The options that a host, or the MCP server for one of its clients, provides. Each tool takes those that it needs. */
export interface ToolSetting {
  /** For tools that launch tasks of an owner, or wait for them. */
  readonly owned: AsyncTaskToolOptions & { readonly owner: string }
  /** For tools that show or change tasks. Without an owner, the tasks of every owner. */
  readonly shown: AsyncTaskToolOptions & { readonly owner?: string }
  /** For tools that launch tasks. */
  readonly launching: TimeoutSettings & ForegroundOptions
  /** See `TaskToolOptions`. */
  readonly subagents: {
    readonly resolveSubagent: ResolveSubagent
    readonly listSubagents?: () => readonly SubagentEntry[]
    readonly parentId?: string
    readonly cwd?: string | undefined
  }
  /** Present with instances or a cluster. */
  readonly taskManager?: TaskManager | ClusterTasks
  /** Present if the model may run programs. */
  readonly commands?: CommandPolicy
  /** Whether the agent may schedule. */
  readonly hasSchedules?: boolean
  /** Present if the model may start monitors. */
  readonly monitors?: MonitorLimits
  /** The instances of `taskManager`, if they can be listed. */
  readonly instances?: InstanceSource
}

/** MCP's hints about a call. The default of a missing hint is the careful one: destructive, not idempotent, open to the world. */
export interface ToolHints {
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly idempotentHint?: boolean
  readonly openWorldHint?: boolean
}

/** For a tool that only reads. */
export const READ_ONLY: ToolHints = { readOnlyHint: true, idempotentHint: true, openWorldHint: false }

/** For a tool whose tasks may do anything. */
export const STARTS_WORK: ToolHints = { readOnlyHint: false, destructiveHint: true }

/** The kind of slot that a task takes: in the background, in place, or for a command. */
export type SlotKind = 'background' | 'inPlace' | 'command'

/**
 * The form of a tool for MCP clients, where it differs from that for hosts. A client pays for all texts in each of its turns, so tools do not repeat
 * each other's texts.
 */
export interface ServedForm {
  /** Creates it; undefined where an option is missing. Default: as for hosts. */
  readonly create?: (setting: ToolSetting) => Tool | undefined
  readonly description?: string | ((setting: ToolSetting) => string)
  /** Descriptions of its parameters; '' where the name is enough. */
  readonly texts?: Readonly<Record<string, string>>
  /** Parameters that are not listed, but accepted. */
  readonly unlisted?: readonly string[]
}

/** One tool. */
export interface ToolDescriptor {
  readonly name: string
  /** The name that people see in an MCP client. */
  readonly title: string
  /** What it does, for docs/tools.md: a sentence. */
  readonly summary: string
  /** When a model uses it, for the prompt of the MCP server: a sentence that follows the name of the tool. */
  readonly purpose: string
  /** A short form for the instructions of the MCP server: a clause that follows the name. Default: they do not name the tool. */
  readonly brief?: string
  /** What it starts, for the instructions; only for a tool that starts work. */
  readonly starts?: string
  readonly hints: ToolHints
  readonly output: () => ToolOutput
  /** Whether a call without a task id concerns all tasks of its owner. Anonymous clients cannot make such a call. Default: false. */
  readonly listsTasks?: boolean
  /** Whether it needs instances; MCP clients without instances do not list it. Default: false. */
  readonly needsInstances?: boolean
  /** The kind of slot that a call with these arguments takes, for a tool that launches tasks. Such calls can become MCP tasks. */
  readonly slotOf?: (args: Readonly<Record<string, unknown>>) => SlotKind
  /** Creates it; undefined where an option is missing. Hosts only have tools with this function. */
  readonly create?: (setting: ToolSetting) => Tool | undefined
  readonly served?: ServedForm
}

/** A tool that hosts have; its type is that of `tasks.tools.<name>`. */
export interface HostTool<Made extends Tool | undefined> extends ToolDescriptor {
  readonly create: (setting: ToolSetting) => Made
}
