/** What a feature adds to the MCP server. `mcp-features.ts` lists the features. */
import type { ActiveTaskInfo } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { AsyncTaskManagerOptions } from '../async-tasks/manager-options.js'
import type { AsyncTaskReminderService } from '../features/delivery/reminder-service.js'
import type { AgentConfig } from '../protocol/agent-config.js'
import type { Log } from '../server/http/log.js'
import type { Clock } from '../system/clock.js'
import type { ToolSetting } from '../tools/tool-descriptor.js'
import type { Caller } from './callers.js'
import type { ClientIdentity } from './client-identity.js'
import type { ResultArrival } from './follow-ups.js'

export interface McpFeature {
  /** Returns options of the manager. `folder` is the directory that relative paths of the configuration start from. */
  readonly managerOptions?: (config: AgentConfig, folder: string) => AsyncTaskManagerOptions
  /** Returns what its tools need. */
  readonly toolSetting?: (config: AgentConfig, folder: string) => Partial<ToolSetting>
  readonly connect?: (manager: AsyncTaskManager, clients: Clients) => void
  /** Returns its part of the connection of one client. */
  readonly ofConnection?: (connection: Connection) => ConnectionPart
}

/** The connection of one client. */
export interface Connection {
  readonly app: ConnectedApp
  readonly caller: Caller
  /** The client, and its conversation. Undefined over HTTP. */
  readonly identity: ClientIdentity | undefined
  /** Whether it lasts longer than one request. */
  readonly isLasting: boolean
}

/** What the part of a feature needs of the server. `McpApp` documents the members. */
export interface ConnectedApp {
  readonly backend: {
    readonly untrusted: object | undefined
    readonly hasBegun: boolean
    readonly manager: AsyncTaskManager
    readonly session: object | undefined
    readonly clock: Clock
    readonly log: Log
  }
  readonly work: { readonly reminders: AsyncTaskReminderService }
  begin(): Promise<void>
}

/** A call of a tool. `meta` is the `_meta` of its parameters. */
export interface ToolRequest {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly meta: Readonly<Record<string, unknown>>
}

/** For whom a call of a tool is, and with which arguments. */
export interface RoutedCall {
  readonly owner: string
  readonly args: Readonly<Record<string, unknown>>
  /** How the results of what it starts reach the model. Default `call`. */
  readonly arrival?: ResultArrival
}

/** The part of a feature in the connection of one client. */
export interface ConnectionPart {
  /** Whether a later request says which conversation of the client this is, and so where its tasks are stored. Until then it has none. */
  readonly awaitsConversation: boolean
  /** The client has said its name (`clientInfo`). Called again with each request of 2026-07-28. */
  named(clientName: string): void
  /** Decides to which conversation of the client a call of a tool belongs. */
  route(request: ToolRequest): RoutedCall
  /**
   * Answers a call of a tool that is in no list; undefined if it is not one of this feature.
   * @returns the text of the answer, and a function that is called with whether the answer was written to the client
   */
  call(
    request: ToolRequest,
    signal: AbortSignal,
  ): Promise<{ readonly text: string; readonly end: (isWritten: boolean) => void }> | undefined
  close(): void
}

export interface Clients {
  /** Returns the client of an owner. */
  readonly groupOf: (owner: string) => string
  /** Launches a task that no call of the client launches. Throws AgentTasksError if the client has reached its limit. */
  readonly launching: (owner: string, launch: () => ActiveTaskInfo) => ActiveTaskInfo
}
