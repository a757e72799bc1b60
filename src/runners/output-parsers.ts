/** Parses the stdout of a program into the output of its task. */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import type { OutputObject } from '../../machines/records.js'
import { toOutput } from '../protocol/outcomes.js'
import { withoutByteOrderMark } from '../data/byte-order-mark.js'
import { preview } from '../data/preview.js'
import { terminalText } from '../data/terminal-text.js'

/** The last part of a text, whose beginning may have been dropped. */
export interface KeptText {
  /** The kept text, without a partial character at its start. */
  readonly text: string
  /** How many bytes were dropped before the kept text. */
  readonly droppedBytes: number
  /** Whether a part of the text is missing, because it could not be written to a file. */
  readonly isLost?: boolean
}

export const LOST_OUTPUT = '[a part of the output is missing: it could not be written to the store]'

/** Inserted where output was too long to keep. */
export const leftOut = (bytes: number): string => `[${bytes} bytes are left out here]`

export interface ProcessDetails {
  /** The path or name of the program. */
  readonly command: string
  /** Its arguments after substitution. */
  readonly args: readonly string[]
  /** The end of its stderr. */
  readonly stderr: string
}

/** Parses the stdout of a program that exited with code 0. If the function throws, the task fails with its error. */
export type ParseFunction = (stdout: string, details: ProcessDetails) => OutputObject | Promise<OutputObject>

/**
 * How stdout is parsed, as a terminal shows it: without escape sequences, and with the last state of lines that were redrawn.
 * - `text`: the trimmed stdout is the final message.
 * - `json`: stdout is one JSON value.
 * - `json-last-line`: the last line that is not blank is one JSON value.
 */
export type OutputFormat = 'text' | 'json' | 'json-last-line'

/** Whether a format needs all of stdout. Other formats need only its end. */
export function needsWholeOutput(parse: OutputFormat | ParseFunction): boolean {
  return parse === 'json' || typeof parse === 'function'
}

/**
 * Parses stdout in one of the formats.
 * @throws Error with the expected and the received text
 */
export function parseOutput(format: OutputFormat, { text: raw, droppedBytes, isLost = false }: KeptText): OutputObject {
  const text = terminalText(raw)
  switch (format) {
    case 'text': {
      const message = text.trim()
      if (isLost) return { final_message: `${LOST_OUTPUT}\n${message}` }
      return { final_message: droppedBytes === 0 ? message : `${leftOut(droppedBytes)}\n${message}` }
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
    return JSON.parse(withoutByteOrderMark(text))
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
 * Converts a JSON value into an output. An object that has a field of an output (such as `final_message`) is the output. Any other object becomes its
 * `emitted_vars`, because a message to the model contains only the fields of an output.
 */
function outputOf(value: unknown): OutputObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return toOutput(value)
  const hasFields = Object.keys(outputFields().shape).some((field) => Object.hasOwn(value, field))
  const isOutput = hasFields && outputFields().safeParse(value).success
  if (isOutput || Object.keys(value).length === 0) return value as OutputObject
  return { emitted_vars: value as Record<string, unknown> }
}
