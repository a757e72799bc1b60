/** What can run commands: the port that in-process functions, MCP servers and remote workers are brought behind. */
import type { InstanceTiming } from '../../machines/instance.js'
import type { ToolCallResult } from '../protocol/tool-result.js'

/** A tool that an instance offers. */
export interface ToolDescription {
  /** What commands call it. */
  readonly name: string
  /** What it does. */
  readonly description?: string | undefined
  /** JSON Schema of its arguments. */
  readonly inputSchema?: Readonly<Record<string, unknown>> | undefined
}

/** How far a call has come, in MCP's words. */
export interface CallProgress {
  /** How far it is, in a unit of the tool's own. */
  readonly progress: number
  /** Where it ends, in the same unit. */
  readonly total?: number
  /** What it is doing. */
  readonly message?: string
}

/** One call of a tool. */
export interface ToolCall {
  /** The tool. */
  readonly name: string
  /** What the tool is called with. */
  readonly arguments: Readonly<Record<string, unknown>>
  /** The task that calls, if one does. */
  readonly taskId?: string
  /** The command that calls, if one does. */
  readonly commandId?: string
  /** Aborts when the call is given up; the instance tells whoever runs it. */
  readonly signal: AbortSignal
  /** Told how far the call has come. */
  readonly onProgress: (progress: CallProgress) => void
}

/**
 * Why an instance is closed: someone disconnected it, it showed no sign of life (or never connected), or all are closed because the
 * process goes away. Whoever is behind a connection that is closed comes back in the second and third case.
 */
export type InstanceEnd = 'disconnected' | 'silent' | 'goingAway'

/** What runs commands. Every kind passes one shared suite of tests. */
export interface Instance {
  /** Unique among the instances that are known. */
  readonly id: string
  /** How it is reached. */
  readonly kind: 'local' | 'mcp' | 'websocket'
  /** Whether tasks name this instance in the arguments of their commands (seed 004; remote workers only). */
  readonly passesInstanceId?: boolean
  /** What it can do. */
  listTools(): Promise<readonly ToolDescription[]>
  /**
   * Calls a tool. Rejects with an `InstanceError` when the connection is lost, a `ToolCallError` with the tool's own code for a JSON-RPC error.
   */
  callTool(call: ToolCall): Promise<ToolCallResult>
  /** Calls `onLost` once if the connection ends by itself. */
  onLost(onLost: (reason: string) => void): void
  /** Only for an instance whose connection comes and goes; without it, it is connected when it is made, until it is lost. */
  readonly connection?: InstanceConnection
  /** Answers that came when nobody waited for them, and were dropped. */
  readonly lateAnswers?: number
  /** Ends the connection; resolves when nothing of it is left. */
  close(why?: InstanceEnd): Promise<void>
}

/** A connection that is opened later, can be taken over, and must show signs of life. */
export interface InstanceConnection {
  /** How long it may take, and be silent, in ms. */
  readonly timing: InstanceTiming
  /** Calls `listener` with each thing that happens to it. */
  onEvent(listener: (event: 'connection.opened' | 'connection.alive' | 'connection.takenOver') => void): void
  /** Fails every call of the connection that is gone, at once. */
  failCalls(reason: string): void
}
