/** What a function returned or threw, in MCP's words. */
import { describeFailure } from './outcomes.js'
import { toPlainData } from './plain-data.js'
import { isToolCallResult, type ToolContent } from './tool-calls.js'

/** What a tool returned, in MCP's words. */
export interface ToolCallResult {
  /** What it says, in MCP's content blocks. */
  readonly content: readonly ToolContent[]
  /** The same as data. */
  readonly structuredContent?: Readonly<Record<string, unknown>> | undefined
  /** The tool reports a failure of its own. */
  readonly isError?: boolean | undefined
  readonly [field: string]: unknown
}

/** Any value as the result of a tool: what already is one as it is, text as text, an object also as structured content. */
export function toToolCallResult(value: unknown): ToolCallResult {
  const plain = toPlainData(value)
  if (isToolCallResult(plain)) return plain
  if (plain === undefined) return { content: [] }
  if (typeof plain === 'string') return { content: [text(plain)] }
  if (isNeutralResult(plain)) return fromNeutralResult(plain)
  return {
    content: [text(JSON.stringify(plain))],
    ...(isRecord(plain) && { structuredContent: plain }),
  }
}

/** A failure with a code of its own, which MCP has no field for. */
export function failedResult(code: string, message: string): ToolCallResult {
  return { content: [text(message)], isError: true, _meta: { code } }
}

/** What a function threw. */
export function failureResult(error: unknown): ToolCallResult {
  const code: unknown = isRecord(error) || error instanceof Error ? (error as { code?: unknown }).code : undefined
  return failedResult(typeof code === 'string' && code !== '' ? code : 'EXECUTION_ERROR', describeFailure(error))
}

/** What the neutral tool of this package gives back; told by its shape, as anybody's tool may have it. */
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
  return { content: [text(llmContent)], ...(metadata !== undefined && { structuredContent: metadata }) }
}

const text = (value: string): ToolContent => ({ type: 'text', text: value })

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
