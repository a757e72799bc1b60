/**
 * The failure of a step. Every run throws an error made from the stored form, including the run in which the step failed. So all runs see the same
 * error.
 */
import { describeFailure, MAX_ERROR_CHARS, readField } from '../../protocol/outcomes.js'
import { cutText } from '../../data/cut-text.js'

/** The fields of an error that are stored, because code distinguishes errors by them. */
const FIELDS = ['code', 'status', 'exitCode', 'retryAfterMs'] as const

const MAX_FIELD_CHARS = 256

interface StepFailure {
  readonly name: string
  readonly message: string
  readonly fields: Readonly<Record<string, string | number | boolean>>
}

/** Returns the JSON text to store for a thrown value. Never throws. */
export function toStepFailure(reason: unknown): string {
  const name = readField(reason, 'name')
  const fields: Record<string, string | number | boolean> = {}
  for (const field of FIELDS) {
    const value = readField(reason, field)
    if (typeof value === 'string') fields[field] = cutText(value, MAX_FIELD_CHARS)
    else if (typeof value === 'number' || typeof value === 'boolean') fields[field] = value
  }
  const failure: StepFailure = {
    name: typeof name === 'string' ? cutText(name, MAX_FIELD_CHARS) : 'Error',
    message: cutText(describeFailure(reason), MAX_ERROR_CHARS),
    fields,
  }
  return JSON.stringify(failure)
}

export function isStepFailure(text: string): boolean {
  try {
    const { name, message } = JSON.parse(text) as Partial<StepFailure>
    return typeof name === 'string' && typeof message === 'string'
  } catch {
    return false
  }
}

/**
 * Creates the error of a failed step from its stored form.
 * @param cause the value that was thrown; only known in the run in which the step failed
 */
export function stepError(failure: string, cause?: unknown): Error {
  const { name, message, fields } = JSON.parse(failure) as StepFailure
  return Object.assign(new Error(message, cause === undefined ? undefined : { cause }), { name, ...fields })
}
