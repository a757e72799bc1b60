/** Puts what a task is about into the arguments of a program. No shell ever sees the result. */
import type { RunInput } from '../engine/runner.js'

/**
 * Replaces `{goal}`, `{name}` and `{id}` in one argument; whatever else stands in braces stays. What was put in is not
 * looked at again: a goal that holds `{name}` arrives as it is.
 */
export function substitute(argument: string, input: RunInput): string {
  // A function, as a replacement text would give `$&` and the like in a goal a meaning.
  return argument.replace(/\{(?:goal|name|id)\}/g, (placeholder) => {
    if (placeholder === '{goal}') return input.goalPrompt
    return placeholder === '{name}' ? input.subagentName : input.id
  })
}
