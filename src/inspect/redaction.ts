/** What is not shown unless it is asked for: what people and models wrote, what runs gave back, and secrets. */
import { InvalidInputError } from '../errors.js'

/** What stands where something was left out. */
export const REDACTED = '[redacted]'

/**
 * Decides on one field of an event, a context or an output.
 * @param key the field's name; for an element of a list, the list's
 * @param value its value as it is; what is returned unchanged and is an object is looked into, field by field
 * @returns what to show in its place
 */
export type Redact = (key: string, value: unknown) => unknown

/** Fields of the charts' events and contexts, of records and of messages that hold what somebody wrote or a run gave back. */
const CONTENT = new Set(
  [
    ...['goalPrompt', 'goal_prompt', 'prompt', 'instructions', 'task_intention', 'intention', 'task_name'],
    ...['output', 'outputs', 'result', 'results', 'final_message', 'emitted_vars', 'content', 'structuredContent'],
    ...['message', 'messages', 'text', 'reminder', 'body', 'data', 'reason', 'stack', 'cause', 'stdout', 'stderr'],
    ...['args', 'arguments', 'params', 'metadata', 'env', 'headers', 'schema'],
  ].map((name) => name.toLowerCase()),
)

const SECRET = /token|secret|passw|passphrase|credential|authorization|cookie|private_?key|api_?-?key/i

/** The default: leaves out prompts, outputs, the words of errors, and whatever is called a token or another secret. */
export function redactByDefault(key: string, value: unknown): unknown {
  if (value === undefined || value === null) return value
  if (CONTENT.has(key.toLowerCase()) || SECRET.test(key)) return REDACTED
  // An error may quote what a run printed; its code says what happened.
  if (key === 'error' && typeof value !== 'object') return REDACTED
  return value
}

const redactNothing: Redact = (_key, value) => value

/**
 * The option as one function.
 * @throws InvalidInputError for anything but a boolean or a function
 */
export function toRedact(redact: boolean | Redact): Redact {
  if (typeof redact === 'function') return redact
  // JavaScript may pass anything, and must not turn it off by mistake.
  if (typeof redact !== 'boolean') throw new InvalidInputError('options.redact', redact, 'a function, true or false')
  return redact ? redactByDefault : redactNothing
}
