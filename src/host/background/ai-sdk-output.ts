/** What a model reads of the result of an AI SDK tool, as the output of a task: the `ToolResultOutput` that `toModelOutput` returns. */
import { toJsonText } from '../../data/json-text.js'
import { toolCallResultSchema } from '../../protocol/tool-calls.js'

/** A `ToolResultOutput` of the AI SDK. Only the fields that are read here. */
export interface ModelOutput {
  readonly type?: string
  readonly value?: unknown
  /** Why the execution was denied. */
  readonly reason?: string
}

interface ContentPart {
  readonly type: string
  readonly text?: string
  readonly mediaType?: string
}

/**
 * Converts what a model would read to the output of a task. The texts of a `content` are the message, and a `content` with other parts is kept as
 * `model_output`, so that a host can show its images.
 * @throws an error with the text for the model, when the output is that of a failed or denied call
 */
export function outputOfModelOutput(output: ModelOutput): unknown {
  switch (output.type) {
    case 'error-text':
    case 'error-json':
      throw new Error(textOf(output.value))
    case 'execution-denied':
      throw new Error(`The execution was denied${output.reason === undefined ? '.' : `: ${output.reason}`}`)
    case 'content':
      return outputOfContent(output as { readonly value: readonly ContentPart[] })
    default:
      return output.value
  }
}

/**
 * The tools of @ai-sdk/mcp return the result of the server, which does not throw when the server's tool has failed.
 * @throws an error with the texts of a failed result
 */
export function throwMcpError(output: unknown): void {
  if ((Object(output) as { isError?: unknown }).isError !== true) return
  const { success, data } = toolCallResultSchema.safeParse(output)
  if (success) throw new Error(data.content.map(({ text = '' }) => text).join('\n'))
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : toJsonText(value))

function outputOfContent(output: { readonly value: readonly ContentPart[] }): unknown {
  const text = output.value.map((part) => part.text ?? `[${part.mediaType ?? part.type}]`).join('\n')
  const isText = output.value.every(({ type }) => type === 'text')
  return isText ? text : { final_message: text, model_output: { type: 'content', value: output.value } }
}
