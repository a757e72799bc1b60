/** Records the content of a task in attributes of its span, if the option `captureContent` is true. */
import type { Attributes } from '@opentelemetry/api'
import { cutText } from '../../data/cut-text.js'
import type { OperationEnd, OperationStart } from '../../protocol/telemetry.js'

/** The maximum length of one recorded content, in characters. */
const MAX_CHARS = 16_384

export const shownText = (text: string): string => cutText(text, MAX_CHARS)

export function inputAttributes({ type, input }: OperationStart): Attributes {
  if (input === undefined) return {}
  return type === 'invoke_agent'
    ? { 'gen_ai.input.messages': messages('user', input) }
    : { 'gen_ai.tool.call.arguments': shownText(jsonOf(input)) }
}

export function outputAttributes({ type }: OperationStart, { output }: OperationEnd): Attributes {
  if (output === undefined) return {}
  return type === 'invoke_agent'
    ? { 'gen_ai.output.messages': messages('assistant', output) }
    : { 'gen_ai.tool.call.result': shownText(jsonOf(output)) }
}

function messages(role: string, content: unknown): string {
  const text = typeof content === 'string' ? content : jsonOf(content)
  return JSON.stringify([{ role, parts: [{ type: 'text', content: shownText(text) }] }])
}

/** Writes a value as JSON. A tool may return a value that JSON cannot represent. */
function jsonOf(value: unknown): string {
  try {
    const text: unknown = JSON.stringify(value)
    return typeof text === 'string' ? text : String(value)
  } catch {
    return '[not JSON]'
  }
}
