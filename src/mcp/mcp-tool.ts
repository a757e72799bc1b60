/** A tool as the MCP server offers it: what it is called with, what it gives back, and whether it can be a task. */
import type { CallToolResult, InputRequiredResult, ToolAnnotations } from '@modelcontextprotocol/server'
import type { z } from 'zod'
import type { SettledTaskInfo } from '../../machines/records.js'
import { jsonSchemaOf } from '../protocol/json-schema.js'

/** The circumstances of one call. */
export interface McpCall {
  /** Aborts when the client gives the call up, or its connection ends. */
  readonly signal: AbortSignal
  /** Answers to what an earlier round of this call asked for (MCP: multi round-trip requests). */
  readonly inputResponses?: Readonly<Record<string, unknown>> | undefined
}

/** What a call gives back: a result, or a request for input that must come first. */
export type McpResult = CallToolResult | InputRequiredResult

/** A task that a call has started in the registry, and what becomes of its end. */
export interface StartedTask {
  readonly taskId: string
  /**
   * The result of the call, once the task has completed or failed. A tool's own failure is a result with `isError`; what
   * this throws is a JSON-RPC error.
   */
  readonly toResult: (task: SettledTaskInfo) => CallToolResult
}

/** One tool. */
export interface McpTool {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly inputSchema: z.ZodType
  /** Of `structuredContent`. */
  readonly outputSchema?: z.ZodType
  readonly annotations?: ToolAnnotations
  /** Does the work. What it throws is a JSON-RPC error. */
  call(args: Readonly<Record<string, unknown>>, call: McpCall): Promise<McpResult>
  /**
   * Starts the work as a task instead, for a client that declares the Tasks extension; undefined says that this call is to
   * be answered in place. Without it no call becomes a task.
   */
  start?(args: Readonly<Record<string, unknown>>, call: McpCall): Promise<StartedTask | McpResult | undefined>
  /** It cannot be answered in place: a client that does not declare the extension gets -32021. */
  readonly requiresTask?: boolean
}

/** Whether a call has started a task. */
export function isStarted(result: StartedTask | McpResult): result is StartedTask {
  return typeof (result as Partial<StartedTask>).toResult === 'function'
}

interface ListedTool {
  readonly [field: string]: unknown
  readonly name: string
  readonly inputSchema: { readonly [field: string]: unknown; readonly type: 'object' }
}

const schemas = new WeakMap<z.ZodType, Readonly<Record<string, unknown>>>()

/** What tools/list says of a tool. */
export function listed(tool: McpTool): ListedTool {
  const { name, title, description, annotations, outputSchema } = tool
  return {
    name,
    ...(title !== undefined && { title }),
    description,
    inputSchema: objectSchemaOf(tool.inputSchema),
    ...(outputSchema !== undefined && { outputSchema: objectSchemaOf(outputSchema) }),
    ...(annotations !== undefined && { annotations: { ...annotations } }),
  }
}

/** Tools are made anew for each client; their schemas are not. */
function objectSchemaOf(schema: z.ZodType): ListedTool['inputSchema'] {
  let json = schemas.get(schema)
  if (json === undefined) schemas.set(schema, (json = jsonSchemaOf(schema)))
  return { ...json, type: 'object' }
}

/** A failure of the tool's own, in words. */
export function toToolResult(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true }
}
