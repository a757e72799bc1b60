/** Puts a task's goal, name and id into the arguments of a program. */
import type { RunInput } from '../engine/runner.js'

/**
 * Replaces `{goal}`, `{name}` and `{id}` in one argument; other text in braces stays. The inserted text is not searched again: a goal
 * that contains `{name}` arrives unchanged.
 */
export function substitute(argument: string, input: RunInput): string {
  // A function: in a replacement string, `$&` in a goal would have a meaning.
  return argument.replace(/\{(?:goal|name|id)\}/g, (placeholder) => {
    if (placeholder === '{goal}') return input.goalPrompt
    return placeholder === '{name}' ? input.subagentName : input.id
  })
}
