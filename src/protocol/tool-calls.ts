/** Tool calls in the format of MCP: the JSON-RPC request `tools/call`, its response, and the result of a tool. */
import { z } from 'zod'
import { expectedName } from '../data/nearest-name.js'
import { preview } from '../data/preview.js'

/** One content block of a result. MCP adds types over time, so only the fields that this package reads are checked. */
const toolContentSchema = z.looseObject({ type: z.string(), text: z.string().optional() })

export type ToolContent = z.infer<typeof toolContentSchema>

/** A tool that an instance offers. */
export const toolDescriptionSchema = z.object({
  name: z.string().min(1).max(256),
  description: z.string().max(10_000).optional(),
  inputSchema: z.record(z.string(), z.unknown()).optional().describe('JSON Schema of the arguments.'),
})

/** The result of a tool (MCP: `CallToolResult`). */
export const toolCallResultSchema = z.looseObject({
  content: z.array(toolContentSchema),
  structuredContent: z.record(z.string(), z.unknown()).optional(),
  isError: z.boolean().optional().describe('Whether the tool failed.'),
})

/** The progress of a call (MCP: `notifications/progress`). */
export const callProgressSchema = z.object({
  progress: z.number(),
  total: z.number().optional(),
  message: z.string().optional(),
})

const requestId = z.union([z.string(), z.number()])

/** A JSON-RPC request for a tool call. */
export const mcpRequestSchema = z.object({
  /** The JSON-RPC version. */
  jsonrpc: z.literal('2.0'),
  /** The id of the request. The response repeats it. */
  id: requestId,
  /** The method. */
  method: z.literal('tools/call'),
  /** The tool and its arguments. */
  params: z.object({
    name: z.string().min(1).max(256),
    arguments: z.record(z.string(), z.unknown()).optional(),
  }),
})

/**
 * A JSON-RPC request for a tool call.
 * @useDeclaredType
 */
export type MCPRequest = z.infer<typeof mcpRequestSchema>

/** A JSON-RPC error. The code of a tool may be a text; then it is in `data.code`. */
export interface MCPError {
  /** An error code of JSON-RPC, or of the tool. */
  readonly code: number
  /** What went wrong. */
  readonly message: string
  /** Further data. */
  readonly data?: unknown
}

/** The fields that every response has. */
export interface MCPAnswer {
  /** The JSON-RPC version. */
  readonly jsonrpc: '2.0'
  /** The id of the request. */
  readonly id: string | number
}

/**
 * The JSON-RPC response to an `MCPRequest`, with either `result` or `error`.
 * @useDeclaredType
 */
export type MCPResponse =
  | (MCPAnswer & { readonly result: z.infer<typeof toolCallResultSchema>; readonly error?: undefined })
  | (MCPAnswer & { readonly error: MCPError; readonly result?: undefined })

/** The code of a command whose tool does not exist. JSON-RPC has the number `JSON_RPC.unknownTool` for it, and for invalid parameters as well. */
export const UNKNOWN_TOOL = 'UNKNOWN_TOOL'

/** The maximum number of tools that an error names. */
const MAX_NAMED = 50

/** Returns the error message for an unknown tool. It names the nearest known tool, or the known tools when none is near. */
export function unknownTool(name: string, known: Iterable<string>): string {
  return `Unknown tool: ${preview(name)}, expected ${expectedName(name, [...known].slice(0, MAX_NAMED))}.`
}

/** The JSON-RPC error codes that this package uses. */
export const JSON_RPC = { invalidRequest: -32600, unknownTool: -32602, internal: -32603, failed: -32000 } as const
