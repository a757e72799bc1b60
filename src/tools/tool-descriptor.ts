/**
 * What there is to know of a tool. The tools of hosts and of MCP clients, the instructions and the prompt of the MCP server, and docs/tools.md are made
 * of the descriptors in `tool-list.ts`.
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

/** What a host, or the MCP server for one of its clients, gives to its tools: each takes the options that it needs. */
export interface ToolSetting {
  /** For tools that launch tasks of an owner, or wait for them. */
  readonly owned: AsyncTaskToolOptions & { readonly owner: string }
  /** For tools that show or change tasks. Without an owner, those of every owner. */
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
  /** Where there are instances or a cluster. */
  readonly taskManager?: TaskManager | ClusterTasks
  /** Where the model may run programs. */
  readonly commands?: CommandPolicy
  /** Whether the agent may schedule. */
  readonly hasSchedules?: boolean
  /** Where the model may start monitors. */
  readonly monitors?: MonitorLimits
  /** The instances of `taskManager`, where they can be listed. */
  readonly instances?: InstanceSource
}

/** Hints of MCP on what a call does. One that is missing has its default: it may destroy something, is not idempotent, and is open to the world. */
export interface ToolHints {
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly idempotentHint?: boolean
  readonly openWorldHint?: boolean
}

/** Of a tool that only shows what is there. */
export const READ_ONLY: ToolHints = { readOnlyHint: true, idempotentHint: true, openWorldHint: false }

/** Of a tool whose tasks may do anything. */
export const STARTS_WORK: ToolHints = { readOnlyHint: false, destructiveHint: true }

/** What a task takes of what its client may have: a place in the background, one in place, or that of a command. */
export type SlotKind = 'background' | 'inPlace' | 'command'

/**
 * How MCP clients get a tool, where not as hosts do. A client pays for all texts with each of its turns: what one tool says, another need not
 * repeat.
 */
export interface ServedForm {
  /** Creates it; undefined where the setting lacks what it needs. Default: as for hosts. */
  readonly create?: (setting: ToolSetting) => Tool | undefined
  readonly description?: string | ((setting: ToolSetting) => string)
  /** Descriptions of its parameters; '' where the name says enough. */
  readonly texts?: Readonly<Record<string, string>>
  /** Parameters that are not listed. Calls may have them. */
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
  /** The same in a few words, for the instructions of the MCP server: a clause that follows the name. Default: it is not named there. */
  readonly brief?: string
  /** What it starts, for the instructions, of a tool that starts work. */
  readonly starts?: string
  readonly hints: ToolHints
  readonly output: () => ToolOutput
  /** Whether a call that names no task is about all tasks of its owner: clients that cannot be told apart may not make one. Default: false. */
  readonly listsTasks?: boolean
  /** Whether it is of use only where there are instances; MCP clients without any do not list it. Default: false. */
  readonly needsInstances?: boolean
  /** What a call with these arguments takes of what its client may have, of a tool that launches tasks. Such calls can become tasks of MCP. */
  readonly slotOf?: (args: Readonly<Record<string, unknown>>) => SlotKind
  /** Creates it; undefined where the setting lacks what it needs. Without this function hosts do not have the tool. */
  readonly create?: (setting: ToolSetting) => Tool | undefined
  readonly served?: ServedForm
}

/** A tool that hosts have; its type is that of `tasks.tools.<name>`. */
export interface HostTool<Made extends Tool | undefined> extends ToolDescriptor {
  readonly create: (setting: ToolSetting) => Made
}
