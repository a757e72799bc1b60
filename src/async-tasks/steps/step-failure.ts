/** How a step has failed: what is stored of an error, and thrown in its place, so that each run of the task sees the same. */
import { describeFailure, MAX_ERROR_CHARS, readField } from '../../protocol/outcomes.js'
import { cutText } from '../../text/cut-text.js'

/** The fields of an error by which code tells errors apart. */
const FIELDS = ['code', 'status', 'exitCode', 'retryAfterMs'] as const

const MAX_FIELD_CHARS = 256

interface StepFailure {
  readonly name: string
  readonly message: string
  readonly fields: Readonly<Record<string, string | number | boolean>>
}

/** What is stored of what a step threw: the JSON text of it. Never throws. */
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

/** Whether a text that was read from a store is that of a failure. */
export function isStepFailure(text: string): boolean {
  try {
    const { name, message } = JSON.parse(text) as Partial<StepFailure>
    return typeof name === 'string' && typeof message === 'string'
  } catch {
    return false
  }
}

/** The error of a step that has failed. @param cause what it threw, in the run that it failed in */
export function stepError(failure: string, cause?: unknown): Error {
  const { name, message, fields } = JSON.parse(failure) as StepFailure
  return Object.assign(new Error(message, cause === undefined ? undefined : { cause }), { name, ...fields })
}
