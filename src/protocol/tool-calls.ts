/** Calls of tools as MCP words them: JSON-RPC `tools/call`, its answer, and what a tool returns. */
import { z } from 'zod'

/** One block of what a tool returns. MCP adds kinds over time, so only what is read here is checked. */
const toolContentSchema = z.looseObject({ type: z.string(), text: z.string().optional() })

export type ToolContent = z.infer<typeof toolContentSchema>

/** A tool that an instance offers. */
export const toolDescriptionSchema = z.object({
  name: z.string().min(1).max(256),
  description: z.string().max(10_000).optional(),
  inputSchema: z.record(z.string(), z.unknown()).optional().describe('JSON Schema of the arguments.'),
})

/** What a tool returned. */
export const toolCallResultSchema = z.looseObject({
  content: z.array(toolContentSchema),
  structuredContent: z.record(z.string(), z.unknown()).optional(),
  isError: z.boolean().optional().describe('The tool reports a failure of its own.'),
})

/** How far a call has come. */
export const callProgressSchema = z.object({
  progress: z.number(),
  total: z.number().optional(),
  message: z.string().optional(),
})

const requestId = z.union([z.string(), z.number()])

/** A JSON-RPC request that calls a tool (seed 004). */
export const mcpRequestSchema = z.object({
  /** The protocol's version. */
  jsonrpc: z.literal('2.0'),
  /** The answer bears it, too. */
  id: requestId,
  /** What is asked for. */
  method: z.literal('tools/call'),
  /** Which tool is called, and with what. */
  params: z.object({
    name: z.string().min(1).max(256),
    arguments: z.record(z.string(), z.unknown()).optional(),
  }),
})

/**
 * A JSON-RPC request that calls a tool (seed 004).
 * @useDeclaredType
 */
export type MCPRequest = z.infer<typeof mcpRequestSchema>

/** A JSON-RPC error. `data.code` is the code of a tool that does not number its errors. */
export interface MCPError {
  /** A code of JSON-RPC, or the tool's own. */
  readonly code: number
  /** What went wrong. */
  readonly message: string
  /** What there is to say besides. */
  readonly data?: unknown
}

/** What every answer has. */
export interface MCPAnswer {
  /** The protocol's version. */
  readonly jsonrpc: '2.0'
  /** The request that it answers. */
  readonly id: string | number
}

/**
 * The answer to a request: exactly one of `result` and `error`.
 * @useDeclaredType
 */
export type MCPResponse =
  | (MCPAnswer & { readonly result: z.infer<typeof toolCallResultSchema>; readonly error?: undefined })
  | (MCPAnswer & { readonly error: MCPError; readonly result?: undefined })

/** Codes of JSON-RPC that this package answers with. */
export const JSON_RPC = { invalidRequest: -32600, unknownTool: -32602, internal: -32603, failed: -32000 } as const
