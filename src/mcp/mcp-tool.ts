/** A tool of the MCP server: how it is called, what it returns, and whether a call can become a task. */
import type { CallToolResult, InputRequiredResult, ToolAnnotations } from '@modelcontextprotocol/server'
import type { z } from 'zod'
import type { SettledTaskInfo } from '../../machines/records.js'
import type { HoldLease } from '../features/delivery/leases.js'
import type { QuestionAsker } from '../features/questions/question-askers.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { OutputUpdate, ToolResult } from '../tools/tool.js'
import type { ToolOutput } from '../tools/tool-output.js'
import { shortSchemaOf } from '../protocol/json-schema.js'

export interface McpCall {
  /** Aborts when the client cancels the request or disconnects. */
  readonly signal: AbortSignal
  /** The client's answers to the requests that an earlier round of this call returned (MCP: multi round-trip requests). */
  readonly inputResponses?: Readonly<Record<string, unknown>> | undefined
  /** Aborts when the connection closes before the answer was written out. */
  readonly detach: AbortSignal
  /** Takes over the leases of the results in the answer. The receiver acknowledges or releases them. */
  readonly hold: HoldLease
  /** Called with the output of a task that the call waits for; undefined if the client wants no notifications. */
  readonly onUpdate?: ((update: OutputUpdate) => void) | undefined
  /** Asks the client's user the questions of the tasks that the call waits for; undefined if the client shows no forms. */
  readonly asker?: QuestionAsker | undefined
  /** The id of the task that the call waits for, instead of launching one: an earlier round of the call has launched it. */
  readonly rejoin?: string | undefined
  /** Called with the id of the task that the call launches and waits for. */
  readonly onLaunched?: (taskId: string) => void
}

/** The result of a call, or a request for input that the client must answer first. */
export type McpResult = CallToolResult | InputRequiredResult

export interface StartedTask {
  readonly taskId: string
  /**
   * Makes the result of the call when the task has completed or failed. A failure of the tool is returned as a result with `isError`. An exception
   * becomes a JSON-RPC error.
   */
  readonly toResult: (task: SettledTaskInfo) => CallToolResult
}

/** One tool. */
export interface McpTool {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly inputSchema: z.ZodType
  /** The schema of `structuredContent`. */
  readonly outputSchema?: z.ZodType
  readonly annotations?: ToolAnnotations
  /** Checks the arguments and does the work. An exception becomes a JSON-RPC error. */
  call(args: Readonly<Record<string, unknown>>, call: McpCall): Promise<McpResult>
  /**
   * Starts the work as a task, for a client that follows tasks. Returns undefined if this call is to be answered directly. Calls of a tool without this
   * method never become tasks.
   */
  start?(args: Readonly<Record<string, unknown>>, call: McpCall): Promise<StartedTask | McpResult | undefined>
  /**
   * Whether the tool can be called only as a task. Then a direct call fails: with error -32021 if the client does not declare the Tasks extension, with
   * -32601 for a client of 2025.
   */
  readonly requiresTask?: boolean
  /** Whether a call with these arguments is answered before its work has ended. Default: never. */
  readonly answersLater?: (args: Readonly<Record<string, unknown>>) => boolean
  /** Whether a call without a task id is about all tasks of the caller. Default: false. */
  readonly listsTasks?: boolean
  /** Whether `tools/list` contains the tool. Tools that are not listed can be called, too. Default: true. */
  readonly isListed?: boolean
}

export function isStarted(result: StartedTask | McpResult): result is StartedTask {
  return typeof (result as Partial<StartedTask>).toResult === 'function'
}

interface ListedTool {
  readonly [field: string]: unknown
  readonly name: string
  readonly inputSchema: { readonly [field: string]: unknown; readonly type: 'object' }
}

const schemas = new WeakMap<z.ZodType, Readonly<Record<string, unknown>>>()

/**
 * The entry of a tool in `tools/list`.
 * @param hasTasks whether the client may call tools as tasks of 2025-11-25
 */
export function listed(tool: McpTool, hasTasks: boolean): ListedTool {
  const { name, title, description, annotations, outputSchema } = tool
  return {
    name,
    ...omitUndefined({ title }),
    description,
    inputSchema: objectSchemaOf(tool.inputSchema),
    ...(outputSchema !== undefined && { outputSchema: objectSchemaOf(outputSchema) }),
    ...(annotations !== undefined && { annotations: { ...annotations } }),
    ...(hasTasks &&
      tool.start !== undefined && { execution: { taskSupport: tool.requiresTask === true ? 'required' : 'optional' } }),
  }
}

/** Cached, because every client gets its own tools, but the schemas of the tools are shared. */
function objectSchemaOf(schema: z.ZodType): ListedTool['inputSchema'] {
  let json = schemas.get(schema)
  if (json === undefined) schemas.set(schema, (json = shortSchemaOf(schema)))
  return { ...json, type: 'object' }
}

/** The result of a call whose tool failed. */
export function toToolResult(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true }
}

/**
 * Converts the result of a tool of `src/tools`. The result of a failed call has structured content only if the call ran a task, because other failures
 * do not match the output schema.
 */
export function toCallToolResult(result: ToolResult, { fieldsOf }: ToolOutput): CallToolResult {
  const { llmContent, metadata = {}, error } = result
  const content: CallToolResult['content'] = [{ type: 'text', text: llmContent }]
  const structured = { structuredContent: { text: llmContent, ...fieldsOf(metadata) } }
  if (error === undefined) return { content, ...structured }
  return { content, isError: true, _meta: { code: error.type }, ...('agentId' in metadata && structured) }
}
