/** Converts the return value of a run to an output, and an exception to a text. */
import type { z } from 'zod'
import type { OutputObject, TaskFailure } from '../../machines/records.js'
import { toJsonText } from '../data/json-text.js'
import { toPlainData } from '../data/plain-data.js'
import { cutText, lastChars } from '../data/cut-text.js'
import { preview } from '../data/preview.js'

/** The maximum length of a failure's text, name and code in a record, in UTF-16 units. */
export const MAX_ERROR_CHARS = 65_536
const MAX_NAME_CHARS = 256

/** Converts the result of a run to an output. An object is unchanged, text becomes the `final_message`, and undefined an empty output. */
export function toOutput(value: unknown): OutputObject {
  if (value === undefined || value === null) return EMPTY
  const plain = toPlainData(value)
  if (typeof plain === 'object' && plain !== null && !Array.isArray(plain)) return plain as OutputObject
  return Object.freeze({ final_message: typeof plain === 'string' ? plain : toJsonText(plain) })
}

const EMPTY: OutputObject = Object.freeze({})

/** Returns the reason of a failure as text: the message of an error, or a preview of another value. Never throws. */
export function describeFailure(reason: unknown): string {
  if (typeof reason === 'string' && reason !== '') return reason
  if (reason === undefined || reason === null || reason === '') return 'The run failed without saying why.'
  return messageOf(reason) ?? `The run failed with ${preview(reason)}.`
}

const dotPath = (path: readonly PropertyKey[]): string =>
  path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '')

/**
 * One line for each problem that a zod schema found, such as `width: expected number, received string`. The message of a ZodError is JSON
 * of many lines, which is hard to read.
 */
function zodProblems(reason: object): string | undefined {
  const { name, issues } = reason as { readonly name?: unknown; readonly issues?: unknown }
  if ((name !== 'ZodError' && name !== '$ZodError') || !Array.isArray(issues) || issues.length === 0) return undefined
  return (issues as readonly z.core.$ZodIssue[])
    .map(({ path, message }) => {
      const problem = message.replace(/^Invalid input: /, '')
      return path.length === 0 ? problem : `${dotPath(path)}: ${problem}`
    })
    .join('\n')
}

/** Returns the message of an error, or its name if the message is empty. A thrown value can be anything, so reading its fields may throw. */
export function messageOf(reason: unknown): string | undefined {
  if (typeof reason !== 'object' || reason === null) return undefined
  try {
    const problems = zodProblems(reason)
    if (problems !== undefined) return problems
    const { message, name } = reason as { readonly message?: unknown; readonly name?: unknown }
    if (typeof message === 'string' && message !== '') return message
    return reason instanceof Error && typeof name === 'string' && name !== '' ? name : undefined
  } catch {
    return undefined
  }
}

/** Describes why a run failed: the text, the name and the code of the error, and the thrown value. Never throws. */
export function failureOf(reason: unknown): TaskFailure {
  const error = boundedError(describeFailure(reason))
  if (typeof reason !== 'object' || reason === null) return { error }
  const [name, code] = [readField(reason, 'name'), readField(reason, 'code')]
  return {
    error,
    ...(typeof name === 'string' && name !== '' && name !== 'Error' && { errorName: cutText(name, MAX_NAME_CHARS) }),
    ...((typeof code === 'string' || typeof code === 'number') &&
      code !== '' && { errorCode: cutText(String(code), MAX_NAME_CHARS) }),
    cause: reason,
  }
}

/** Cuts the middle out of a text that is too long. */
function boundedError(error: string): string {
  if (error.length <= MAX_ERROR_CHARS) return error
  const end = lastChars(error, MAX_ERROR_CHARS / 4)
  const start = cutText(error, MAX_ERROR_CHARS - end.length - 100)
  return `${start}\n[${error.length - start.length - end.length} characters are left out here]\n${end}`
}

/** Returns a field of a thrown value; undefined when reading it throws. */
export function readField(from: unknown, field: string): unknown {
  try {
    return typeof from === 'object' && from !== null ? (from as Record<string, unknown>)[field] : undefined
  } catch {
    return undefined
  }
}
