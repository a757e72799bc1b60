/** The default redaction. It leaves out texts of people and models, outputs of runs, and secrets. */
import { InvalidInputError } from '../../errors.js'

/** The replacement for a value that is left out. */
export const REDACTED = '[redacted]'

/**
 * Redacts one field of an event, a context or an output.
 * @param key the name of the field. For an element of an array, the name of the array
 * @param value the value of the field. If the function returns an object, its fields are redacted one by one
 * @returns the value to show
 */
export type Redact = (key: string, value: unknown) => unknown

/** The names of fields that hold a text of people or models, or the output of a run. */
const CONTENT = new Set(
  [
    ...['goalPrompt', 'goal_prompt', 'prompt', 'instructions', 'task_intention', 'intention', 'task_name'],
    ...[
      'output',
      'outputs',
      'lateOutput',
      'late_output',
      'result',
      'results',
      'final_message',
      'emitted_vars',
      'content',
      'structuredContent',
    ],
    ...['message', 'messages', 'text', 'reminder', 'body', 'data', 'reason', 'stack', 'cause', 'stdout', 'stderr'],
    ...['args', 'arguments', 'params', 'metadata', 'env', 'headers', 'schema'],
  ].map((name) => name.toLowerCase()),
)

const SECRET = /token|secret|passw|passphrase|credential|authorization|cookie|private_?key|api_?-?key/i

/** The default: leaves out prompts, outputs, error messages, and fields named like a token or another secret. */
export function redactByDefault(key: string, value: unknown): unknown {
  if (value === undefined || value === null) return value
  if (CONTENT.has(key.toLowerCase()) || SECRET.test(key)) return REDACTED
  // An error message may quote what a run printed.
  if (key === 'error' && typeof value !== 'object') return REDACTED
  return value
}

/**
 * Converts the option `redact` to a function.
 * @throws INVALID_INPUT for a value that is not a boolean or a function
 */
export function toRedact(redact: boolean | Redact): Redact {
  if (typeof redact === 'function') return redact
  // Callers in JavaScript may pass any value. An invalid value must not turn the redaction off.
  if (typeof redact !== 'boolean') throw new InvalidInputError('options.redact', redact, 'a function, true or false')
  return redact ? redactByDefault : (_key, value) => value
}
