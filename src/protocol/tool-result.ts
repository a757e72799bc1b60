/** Converts what a tool returned or threw to an MCP result. */
import { describeFailure } from './outcomes.js'
import { toPlainData } from './plain-data.js'
import { toolCallResultSchema, type ToolContent } from './tool-calls.js'

/** The result of a tool, as in MCP. */
export interface ToolCallResult {
  /** MCP content blocks. */
  readonly content: readonly ToolContent[]
  /** The result as JSON data. */
  readonly structuredContent?: Readonly<Record<string, unknown>> | undefined
  /** Whether the tool has failed. */
  readonly isError?: boolean | undefined
  readonly [field: string]: unknown
}

/** Results that were made here. They are deeply frozen, and need no other copy. */
const frozen = new WeakSet<object>()

export const isFrozenResult = (value: unknown): boolean => frozen.has(Object(value) as object)

/** The result as one that cannot be changed. */
export function toFrozenResult(result: ToolCallResult): ToolCallResult {
  if (isFrozenResult(result)) return result
  // Field by field: the content of an object of a class may be a getter.
  const copy = toPlainData({ ...result, content: result.content }) as ToolCallResult
  frozen.add(copy)
  return copy
}

/** Converts any value: an MCP result stays as it is, text becomes text, an object also becomes structured content. */
export function toToolCallResult(value: unknown): ToolCallResult {
  const plain = toPlainData(value)
  if (isMCPResult(plain)) {
    frozen.add(plain)
    return plain
  }
  if (plain === undefined) return resultOf([])
  if (typeof plain === 'string') return resultOf([text(plain)])
  if (isNeutralResult(plain)) return fromNeutralResult(plain)
  const content = [text(JSON.stringify(plain))]
  return isRecord(plain) ? resultOf(content, { structuredContent: plain }) : resultOf(content)
}

/** A failed result. MCP has no field for the code, so it is in `_meta`. */
export function failedResult(code: string, message: string): ToolCallResult {
  return resultOf([text(message)], { isError: true, _meta: Object.freeze({ code }) })
}

/** Converts what a tool threw. */
export function failureResult(error: unknown): ToolCallResult {
  const code: unknown = isRecord(error) || error instanceof Error ? (error as { code?: unknown }).code : undefined
  return failedResult(typeof code === 'string' && code !== '' ? code : 'EXECUTION_ERROR', describeFailure(error))
}

/** @param more frozen data */
function resultOf(content: ToolContent[], more?: Omit<ToolCallResult, 'content'>): ToolCallResult {
  const result = Object.freeze({ content: Object.freeze(content), ...more })
  frozen.add(result)
  return result
}

function isMCPResult(value: unknown): value is ToolCallResult {
  // Few values are, and a schema that does not match is slow.
  return isRecord(value) && 'content' in value && toolCallResultSchema.safeParse(value).success
}

/** The result of a tool of `agent-tasks/tools`, recognized by its shape. */
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
  return resultOf([text(llmContent)], metadata !== undefined ? { structuredContent: metadata } : undefined)
}

const text = (value: string): ToolContent => Object.freeze({ type: 'text', text: value })

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
