/** What a run returned or threw, as an output or as text. */
import type { OutputObject } from '../../machines/records.js'
import { toJsonText } from './json-text.js'
import { toPlainData } from './plain-data.js'
import { preview } from '../preview.js'

/** Converts a result to an output: an object as it is, text as the final message, nothing as an empty output. */
export function toOutput(value: unknown): OutputObject {
  if (value === undefined || value === null) return EMPTY
  const plain = toPlainData(value)
  if (typeof plain === 'object' && plain !== null && !Array.isArray(plain)) return plain as OutputObject
  return Object.freeze({ final_message: typeof plain === 'string' ? plain : toJsonText(plain) })
}

const EMPTY: OutputObject = Object.freeze({})

/** The reason of a failure as text: the message of an error, or a preview of another value. Never throws. */
export function describeFailure(reason: unknown): string {
  if (typeof reason === 'string' && reason !== '') return reason
  if (reason === undefined || reason === null || reason === '') return 'The run failed without saying why.'
  return messageOf(reason) ?? `The run failed with ${preview(reason)}.`
}

/** A thrown value may be anything, and reading it may throw. */
function messageOf(reason: unknown): string | undefined {
  if (typeof reason !== 'object' || reason === null) return undefined
  try {
    const { message, name } = reason as { readonly message?: unknown; readonly name?: unknown }
    if (typeof message === 'string' && message !== '') return message
    return reason instanceof Error && typeof name === 'string' && name !== '' ? name : undefined
  } catch {
    return undefined
  }
}
