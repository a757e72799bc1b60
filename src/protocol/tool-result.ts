/** Converts what a function returned or threw to the format of MCP. */
import { omitUndefined } from '../data/omit-undefined.js'
import { describeFailure } from './outcomes.js'
import { parseJson } from '../data/parse-json.js'
import { MAX_LEVELS, toPlainData } from '../data/plain-data.js'
import { toolCallResultSchema, type ToolContent } from './tool-calls.js'

/** The result of a tool (MCP: `CallToolResult`). */
export interface ToolCallResult {
  /** Content blocks. */
  readonly content: readonly ToolContent[]
  /** The result as JSON data, in addition to the content. */
  readonly structuredContent?: Readonly<Record<string, unknown>> | undefined
  /** Whether the tool failed. */
  readonly isError?: boolean | undefined
  readonly [field: string]: unknown
}

/**
 * Converts any value to a result. A result in the format of MCP is unchanged. Text becomes a text block. An object becomes a text block and
 * structured content.
 */
export function toToolCallResult(value: unknown): ToolCallResult {
  const plain = toPlainData(value)
  if (isMCPResult(plain)) return plain
  if (plain === undefined) return { content: [] }
  if (typeof plain === 'string') return { content: [text(plain)] }
  if (isNeutralResult(plain)) return fromNeutralResult(plain)
  return {
    content: [text(JSON.stringify(plain))],
    ...(isRecord(plain) && { structuredContent: plain }),
  }
}

/**
 * Returns the value inside a result of MCP: the JSON value of its text, or the text if it is not JSON. A single block of another type is
 * returned unchanged, several blocks as a list.
 */
export function unwrapResult(result: unknown): unknown {
  if (!isMCPResult(result)) return result
  const [block, ...more] = result.content
  if (block === undefined) return result.structuredContent ?? null
  if (more.length > 0) return result.content
  if (block.type !== 'text' || block.text === undefined) return block
  const json = parseJson(block.text, MAX_LEVELS)
  return 'value' in json ? json.value : block.text
}

/** Creates a failed result. MCP has no field for the code, so the code is in `_meta`. */
export function failedResult(code: string, message: string): ToolCallResult {
  return { content: [text(message)], isError: true, _meta: { code } }
}

/** Converts what a function threw to a failed result. */
export function failureResult(error: unknown): ToolCallResult {
  const code: unknown = isRecord(error) || error instanceof Error ? (error as { code?: unknown }).code : undefined
  return failedResult(typeof code === 'string' && code !== '' ? code : 'EXECUTION_ERROR', describeFailure(error))
}

function isMCPResult(value: unknown): value is ToolCallResult {
  // The two quick checks come first, because few values are results of MCP and a schema that does not match is slow.
  return isRecord(value) && 'content' in value && toolCallResultSchema.safeParse(value).success
}

/** The result of a tool of `agent-tasks/tools`, which does not depend on MCP. It is recognised by its fields. */
interface NeutralResult {
  readonly llmContent: string
  readonly returnDisplay: string
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly error?: { readonly type: string }
}

function isNeutralResult(value: unknown): value is NeutralResult {
  return isRecord(value) && typeof value['llmContent'] === 'string' && typeof value['returnDisplay'] === 'string'
}

function fromNeutralResult({ llmContent, metadata, error }: NeutralResult): ToolCallResult {
  if (error !== undefined) return failedResult(error.type, llmContent)
  return { content: [text(llmContent)], ...omitUndefined({ structuredContent: metadata }) }
}

const text = (value: string): ToolContent => ({ type: 'text', text: value })

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
