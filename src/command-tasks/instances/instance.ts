/** The interface of an instance: something that runs commands. An instance is made of functions of this process, an MCP server, or a remote worker. */
import type { InstanceTiming } from '../../../machines/instance.js'
import type { TaskProgress } from '../../../machines/records.js'
import type { TraceContext } from '../../protocol/telemetry.js'
import type { ToolCallResult } from '../../protocol/tool-result.js'

/** A tool of an instance. */
export interface ToolDescription {
  /** The name of the tool. Commands use it as `tool_name`. */
  readonly name: string
  /** What the tool does, for a model. */
  readonly description?: string | undefined
  /** The JSON Schema of the arguments. */
  readonly inputSchema?: Readonly<Record<string, unknown>> | undefined
}

/** One call of a tool. */
export interface ToolCall {
  /** The name of the tool. */
  readonly name: string
  /** The arguments of the tool. */
  readonly arguments: Readonly<Record<string, unknown>>
  /** The id of the task that the call belongs to. Undefined for a call without a task. */
  readonly taskId?: string
  /** The id of the command that the call belongs to. Undefined for a call without a task. */
  readonly commandId?: string
  /** The span of the call, for telemetry. */
  readonly trace?: TraceContext | undefined
  /** Aborts when the result is not needed any more. Stop the tool then. The signal may be created on first use. */
  readonly signal: AbortSignal
  /** Returns whether the call was aborted, without creating `signal`. If this method is missing, `signal.aborted` is read. */
  isAborted?(): boolean
  /** Call this function with each progress report of the tool. */
  readonly onProgress: (progress: TaskProgress) => void
}

/**
 * Why an instance is closed. `disconnected`: someone has disconnected it. `silent`: it did not connect or answer in time. `goingAway`: the process is
 * shutting down. After `silent` and `goingAway`, a remote worker connects again.
 */
export type InstanceEnd = 'disconnected' | 'silent' | 'goingAway'

/** Where the connection of a remote worker comes from. */
export interface InstancePeer {
  /** The network address of the worker. */
  readonly address?: string | undefined
  /** The port of this server that the worker is connected to. */
  readonly port?: number | undefined
  /** The `User-Agent` of the worker, at most 512 characters. */
  readonly userAgent?: string | undefined
}

/** Runs commands. Implement this interface for an instance of your own. */
export interface Instance {
  /** The id, which is unique among the registered instances. */
  readonly id: string
  /** How the instance is reached: `local` (functions of this process), `mcp`, `websocket` (a remote worker), or a word of your own. */
  readonly kind: string
  /** Whether a remote worker runs in a browser. Default true. */
  readonly isBrowser?: boolean | undefined
  /** Where the connection comes from. Only remote workers have it. */
  readonly peer?: InstancePeer | undefined
  /** Whether `instanceId` is added to the arguments of each call. Only remote workers use it. */
  readonly passesInstanceId?: boolean
  /** The names of the tools, if they are known. A submitted task without `instanceId` goes to an instance that has all its tools. */
  readonly toolNames?: readonly string[] | undefined
  /** Resolves with the tools of the instance. */
  listTools(): Promise<readonly ToolDescription[]>
  /**
   * Calls a tool. Resolves with its result.
   * @throws AgentTasksError when the connection is lost
   * @throws AgentTasksError with the tool's own code when the tool answers with an error
   */
  callTool(call: ToolCall): Promise<ToolCallResult>
  /** Sets the function to call once if the connection ends without `close`. */
  onLost(onLost: (reason: string) => void): void
  /**
   * Present only if the connection opens later or can be replaced. Without it, the instance is connected from its registration until `onLost` or
   * `close`.
   */
  readonly connection?: InstanceConnection
  /** The number of answers that were dropped, because their call had already ended. */
  readonly lateAnswers?: number
  /** Closes the connection. Resolves when it is closed. */
  close(why?: InstanceEnd): Promise<void>
}

/** A connection that opens later, can be replaced by a new one, and is lost after a silence. */
export interface InstanceConnection {
  /** The time limits of the connection. */
  readonly timing: InstanceTiming
  /** Calls `listener` with each event of the connection. */
  onEvent(listener: (event: 'connection.opened' | 'connection.alive' | 'connection.takenOver') => void): void
  /**
   * Resolves when all calls over the previous connection have ended, or their grace period has passed. Commands wait for this promise. Returns
   * undefined if there are no such calls.
   */
  freed?(): Promise<void> | undefined
  /** Fails all running calls at once. */
  failCalls(reason: string): void
}
