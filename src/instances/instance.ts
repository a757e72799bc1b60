/** The port for what runs commands: functions of this process, MCP servers and remote workers. */
import type { InstanceTiming } from '../../machines/instance.js'
import type { TaskProgress } from '../../machines/records.js'
import type { TraceContext } from '../protocol/telemetry.js'
import type { ToolCallResult } from '../protocol/tool-result.js'

/** A tool of an instance. */
export interface ToolDescription {
  /** The `tool_name` of commands. */
  readonly name: string
  /** What it does. */
  readonly description?: string | undefined
  /** JSON Schema of its arguments. */
  readonly inputSchema?: Readonly<Record<string, unknown>> | undefined
}

/** One call of a tool. */
export interface ToolCall {
  /** The name of the tool. */
  readonly name: string
  /** The arguments of the tool. */
  readonly arguments: Readonly<Record<string, unknown>>
  /** The task that calls, if one does. */
  readonly taskId?: string
  /** The command that calls, if one does. */
  readonly commandId?: string
  /** The span of the call. */
  readonly trace?: TraceContext | undefined
  /** Aborts when the call is aborted. It may be created on first use. */
  readonly signal: AbortSignal
  /** Whether `signal` has aborted, without creating it. Default: reads the signal. */
  isAborted?(): boolean
  /** Called with the progress of the call. */
  readonly onProgress: (progress: TaskProgress) => void
}

/**
 * Why an instance is closed: it was disconnected on purpose, it was silent for too long (or never connected), or the process is shutting down.
 * After `silent` and `goingAway`, a remote worker reconnects.
 */
export type InstanceEnd = 'disconnected' | 'silent' | 'goingAway'

/** The other end of the connection of a remote worker. */
export interface InstancePeer {
  /** The network address of the worker. */
  readonly address?: string | undefined
  /** The port of this server that the worker is connected to. */
  readonly port?: number | undefined
  /** The `User-Agent` of the worker, at most 512 characters. */
  readonly userAgent?: string | undefined
}

/** Runs commands. Implement it for an instance of your own. */
export interface Instance {
  /** Unique among the registered instances. */
  readonly id: string
  /** How it is reached. */
  readonly kind: 'local' | 'mcp' | 'websocket'
  /** Whether a remote worker runs in a browser. Default true. */
  readonly isBrowser?: boolean | undefined
  /** Where its connection comes from (remote workers only). */
  readonly peer?: InstancePeer | undefined
  /** Whether the arguments of each call include `instanceId` (remote workers only). */
  readonly passesInstanceId?: boolean
  /** The names of its tools, if they are known without asking. A task without an `instanceId` then goes to an instance that has all its tools. */
  readonly toolNames?: readonly string[] | undefined
  /** Resolves with its tools. */
  listTools(): Promise<readonly ToolDescription[]>
  /**
   * Calls a tool. Rejects with an `InstanceError` when the connection is lost, and with a `ToolCallError` with the tool's own code for a
   * JSON-RPC error.
   */
  callTool(call: ToolCall): Promise<ToolCallResult>
  /** Calls `onLost` once if the connection ends without `close`. */
  onLost(onLost: (reason: string) => void): void
  /** Only for an instance that reconnects. Without it, the instance is connected until it is lost. */
  readonly connection?: InstanceConnection
  /** The number of answers that arrived after their call had ended, and were dropped. */
  readonly lateAnswers?: number
  /** Closes the connection; resolves when it is closed. */
  close(why?: InstanceEnd): Promise<void>
}

/** A connection that opens later, can be taken over, and has a limit for silence. */
export interface InstanceConnection {
  /** Its time limits. */
  readonly timing: InstanceTiming
  /** Calls `listener` with each event of the connection. */
  onEvent(listener: (event: 'connection.opened' | 'connection.alive' | 'connection.takenOver') => void): void
  /**
   * Resolves when the calls of an earlier connection have ended, or their grace period has passed; undefined without such calls. Commands wait for
   * it. Default: no such calls.
   */
  freed?(): Promise<void> | undefined
  /** Fails every call of the connection at once. */
  failCalls(reason: string): void
}
