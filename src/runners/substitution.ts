/** Replaces placeholders in the arguments of a program. */
import type { RunInput } from '../engine/runner.js'

/**
 * Replaces the placeholders `{goal}`, `{name}` and `{id}` in one argument. When a task is continued, `{session}` and `{message}` are replaced, too.
 * Other text in braces is not changed. The inserted text is not searched again, so a goal that contains `{name}` is passed unchanged.
 */
export function substitute(argument: string, input: RunInput, session?: string): string {
  const { goal, subagent: name, id } = input
  const texts = { goal, name, id, ...(session !== undefined && { session, message: goal }) }
  // The replacement is a function, because `$&` has a special meaning in a replacement string.
  return argument.replace(/\{([a-z]+)\}/g, (placeholder, key: string) =>
    Object.hasOwn(texts, key) ? (texts[key as keyof typeof texts] ?? '') : placeholder,
  )
}
