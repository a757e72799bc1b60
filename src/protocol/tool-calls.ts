/** Tool calls in MCP's format: JSON-RPC `tools/call`, its response, and the result of a tool. */
import { z } from 'zod'
import { expectedName } from '../text/nearest-name.js'
import { preview } from '../text/preview.js'

/** One content block of a result. MCP adds types over time, so only the fields that are read here are checked. */
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
  /** The id of the request; the response repeats it. */
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

/** A JSON-RPC error. `data.code` is the code of a tool whose codes are not numbers. */
export interface MCPError {
  /** A JSON-RPC code, or the tool's own. */
  readonly code: number
  /** What went wrong. */
  readonly message: string
  /** Further data. */
  readonly data?: unknown
}

/** The common fields of a response. */
export interface MCPAnswer {
  /** The JSON-RPC version. */
  readonly jsonrpc: '2.0'
  /** The id of the request. */
  readonly id: string | number
}

/**
 * The response to a request, with either `result` or `error`.
 * @useDeclaredType
 */
export type MCPResponse =
  | (MCPAnswer & { readonly result: z.infer<typeof toolCallResultSchema>; readonly error?: undefined })
  | (MCPAnswer & { readonly error: MCPError; readonly result?: undefined })

/** The code of a command whose tool does not exist. In JSON-RPC it is `JSON_RPC.unknownTool`, which invalid parameters share. */
export const UNKNOWN_TOOL = 'UNKNOWN_TOOL'

/** The maximum number of tools that an error names. */
const MAX_NAMED = 50

/** The error message for an unknown tool, with the nearest known one or all of them. */
export function unknownTool(name: string, known: Iterable<string>): string {
  return `Unknown tool: ${preview(name)}, expected ${expectedName(name, [...known].slice(0, MAX_NAMED))}.`
}

/** The JSON-RPC error codes that this package uses. */
export const JSON_RPC = { invalidRequest: -32600, unknownTool: -32602, internal: -32603, failed: -32000 } as const
