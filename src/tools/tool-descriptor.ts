/**
 * The descriptor of a tool. The tools of hosts, the tools of MCP clients, the instructions and the prompt of the MCP server, and docs/tools.md are all
 * made from the descriptors in `tool-list.ts`.
 */
import type { ClusterTasks } from '../command-tasks/cluster-tasks.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { MonitorLimits } from '../protocol/monitors.js'
import type { CommandPolicy } from './command-policy.js'
import type { InstanceSource } from './instance-source.js'
import type { ResolveSubagent, SubagentEntry } from './subagents.js'
import type { AsyncTaskToolOptions, ForegroundOptions } from './task-tool-options.js'
import type { TimeoutSettings } from './task-timeout.js'
import type { Tool } from './tool.js'
import type { ToolOutput } from './tool-output.js'

/** The options from which tools are created. A host provides them, or the MCP server for one of its clients. Each tool takes those that it needs. */
export interface ToolSetting {
  /** The options of tools that launch or await the tasks of an owner. */
  readonly owned: AsyncTaskToolOptions & { readonly owner: string }
  /** The options of tools that show or change tasks. Without an owner, these are the tasks of every owner. */
  readonly shown: AsyncTaskToolOptions & { readonly owner?: string }
  /** The options of tools that launch tasks. */
  readonly launching: TimeoutSettings & ForegroundOptions
  /** See `TaskToolOptions`. */
  readonly subagents: {
    readonly resolveSubagent: ResolveSubagent
    readonly listSubagents?: () => readonly SubagentEntry[]
    readonly parentId?: string
    readonly cwd?: string | undefined
  }
  /** The command tasks; present if there are instances or a cluster. */
  readonly taskManager?: TaskManager | ClusterTasks
  /** The allowed programs; present if the model may run programs. */
  readonly commands?: CommandPolicy
  readonly hasSchedules?: boolean
  /** The limits of monitors; present if the model may start monitors. */
  readonly monitors?: MonitorLimits
  /** The instances of `taskManager`, if they can be listed. */
  readonly instances?: InstanceSource
}

/** Hints of MCP about the effect of a call. If a hint is missing, clients assume the dangerous case: destructive, not idempotent, open to the world. */
export interface ToolHints {
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly idempotentHint?: boolean
  readonly openWorldHint?: boolean
}

export const READ_ONLY: ToolHints = { readOnlyHint: true, idempotentHint: true, openWorldHint: false }

/** The hints of a tool that starts work. Such work may have any effect. */
export const STARTS_WORK: ToolHints = { readOnlyHint: false, destructiveHint: true }

/** The kind of slot that a call takes. `background`: the task runs in the background. `inPlace`: the call waits for the task. `command`: a program. */
export type SlotKind = 'background' | 'inPlace' | 'command'

/** Changes to a tool for MCP clients. A client pays for the texts of all tools in each turn, so its tools have shorter texts than those of a host. */
export interface ServedForm {
  /** Creates the tool; undefined if an option that it needs is missing. Default: the tool of hosts. */
  readonly create?: (setting: ToolSetting) => Tool | undefined
  readonly description?: string | ((setting: ToolSetting) => string)
  /** Descriptions of parameters by name. An empty text means that the name is enough. */
  readonly texts?: Readonly<Record<string, string>>
  /** Parameters that the schema for clients does not contain, but that calls may use. */
  readonly unlisted?: readonly string[]
}

export interface ToolDescriptor {
  readonly name: string
  /** The name that people see in an MCP client. */
  readonly title: string
  /** What the tool does, as a sentence for docs/tools.md. */
  readonly summary: string
  /** When a model uses the tool, for the prompt of the MCP server. It follows the name of the tool in a sentence. */
  readonly purpose: string
  /** A short form of `purpose`, for the instructions of the MCP server. Default: the instructions do not name the tool. */
  readonly brief?: string
  /** What the tool starts, for the instructions of the MCP server. Only for a tool that starts work. */
  readonly starts?: string
  readonly hints: ToolHints
  readonly output: () => ToolOutput
  /** Whether a call without a task id concerns all tasks of its owner. Anonymous clients cannot make such a call. Default: false. */
  readonly listsTasks?: boolean
  /** Whether the tool needs instances. If there are none, MCP clients do not list it. Default: false. */
  readonly needsInstances?: boolean
  /** For a tool that launches tasks: the kind of slot that a call with these arguments takes. Such calls can become MCP tasks. */
  readonly slotOf?: (args: Readonly<Record<string, unknown>>) => SlotKind
  /** Whether a call with these arguments is answered before its work has ended. Anonymous clients cannot make such a call. Default: never. */
  readonly answersLater?: (args: Readonly<Record<string, unknown>>) => boolean
  /** Creates the tool for hosts; undefined if an option that it needs is missing. Hosts do not have tools without this function. */
  readonly create?: (setting: ToolSetting) => Tool | undefined
  readonly served?: ServedForm
}

/** A tool that hosts have. `Made` is the type of `tasks.tools.<name>`. */
export interface HostTool<Made extends Tool | undefined> extends ToolDescriptor {
  readonly create: (setting: ToolSetting) => Made
}
