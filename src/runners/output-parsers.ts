/** What a program printed, as the output of its task. */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import type { OutputObject } from '../../machines/records.js'
import { toOutput } from '../protocol/outcomes.js'
import { preview } from '../preview.js'
import type { KeptText } from './byte-tail.js'

/** What a parse function is told besides the text. */
export interface ProcessDetails {
  /** The program. */
  readonly command: string
  /** The arguments it was started with, after substitution. */
  readonly args: readonly string[]
  /** The end of what it wrote to stderr. */
  readonly stderr: string
}

/** Reads what a program that exited with 0 wrote to stdout. What it throws is why the task fails. */
export type ParseFunction = (stdout: string, details: ProcessDetails) => OutputObject | Promise<OutputObject>

/**
 * How stdout is read. `text`: it is the final message, without the white space around it. `json`: it is one JSON value.
 * `json-last-line`: its last line that is not blank is one.
 */
export type OutputFormat = 'text' | 'json' | 'json-last-line'

/** Whether a format needs all of stdout, not only its end. */
export function needsWholeOutput(parse: OutputFormat | ParseFunction): boolean {
  return parse === 'json' || typeof parse === 'function'
}

/**
 * Reads stdout in one of the formats.
 * @throws Error that says what was expected and what came
 */
export function parseOutput(format: OutputFormat, { text, droppedBytes }: KeptText): OutputObject {
  switch (format) {
    case 'text': {
      const message = text.trim()
      return { final_message: droppedBytes === 0 ? message : `[${droppedBytes} bytes are left out here]\n${message}` }
    }
    case 'json':
      return outputOf(parseJson(text, 'its stdout to be one JSON value'))
    case 'json-last-line': {
      const lines = text.trimEnd().split('\n')
      if (lines.length === 1 && droppedBytes > 0) {
        throw new Error('expected a last line that fits into maxOutputBytes, got a longer one')
      }
      return outputOf(parseJson(lines.at(-1) ?? '', 'the last line of its stdout to be a JSON value'))
    }
  }
}

function parseJson(text: string, expected: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Error(`expected ${expected}, got ${preview(text)}`, { cause })
  }
}

const outputFields = lazily(() =>
  z.object({
    emitted_vars: z.record(z.string(), z.unknown()).optional(),
    terminate_reason: z.string().optional(),
    final_message: z.string().optional(),
  }),
)

/**
 * A JSON value as an output. An object with at least one of the fields of an output is one, and is kept as it is. Any
 * other object becomes the `emitted_vars`, since a message to the model tells nothing but those fields.
 */
function outputOf(value: unknown): OutputObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return toOutput(value)
  const hasFields = Object.keys(outputFields().shape).some((field) => Object.hasOwn(value, field))
  const isOutput = hasFields && outputFields().safeParse(value).success
  if (isOutput || Object.keys(value).length === 0) return value as OutputObject
  return { emitted_vars: value as Record<string, unknown> }
}
