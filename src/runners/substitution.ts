/** Puts a task's goal, name and id into the arguments of a program. */
import type { RunInput } from '../engine/runner.js'

/**
 * Replaces `{goal}`, `{name}` and `{id}` in one argument, and with a session `{session}` and `{message}`; other text in braces stays. The inserted text
 * is not searched again: a goal that contains `{name}` arrives unchanged.
 */
export function substitute(argument: string, input: RunInput, session?: string): string {
  const { goalPrompt: goal, subagentName: name, id } = input
  const texts = { goal, name, id, ...(session !== undefined && { session, message: goal }) }
  // A function: in a replacement string, `$&` in a goal would have a meaning.
  return argument.replace(/\{([a-z]+)\}/g, (placeholder, key: string) =>
    Object.hasOwn(texts, key) ? (texts[key as keyof typeof texts] ?? '') : placeholder,
  )
}
