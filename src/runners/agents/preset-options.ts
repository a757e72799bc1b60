/** Turns a preset and the options beside it into the arguments of a program. */
import type { AgentPresetData } from '../../protocol/agents/agent-preset.js'

export interface PresetChoices {
  readonly access: keyof AgentPresetData['access']
  readonly trust: boolean
  /** Further arguments, from the options. */
  readonly args: readonly string[]
}

/** The elements that stand for the words of the goal or of the message. */
const WORDS: ReadonlySet<string> = new Set(['{goal:words}', '{message:words}'])

/**
 * The words of a text in place of the elements `{goal:words}` and `{message:words}`, and what `toArgument` makes of the others. A program that joins
 * its arguments with spaces gets the text unchanged; `opencode run` puts quotes around an argument with a space.
 */
export function wordArguments(
  template: readonly string[],
  text: string,
  toArgument: (argument: string) => string,
): string[] {
  return template.flatMap((argument) => (WORDS.has(argument) ? text.split(' ') : [toArgument(argument)]))
}

/** Replaces the elements `{access}`, `{trust}` and `{args}` by their lists. */
export function presetArguments(
  template: readonly string[],
  preset: AgentPresetData,
  { access, trust, args }: PresetChoices,
): string[] {
  const lists: ReadonlyMap<string, readonly string[]> = new Map([
    ['{access}', preset.access[access]],
    ['{trust}', trust ? preset.trust : []],
    ['{args}', args],
  ])
  return template.flatMap((argument) => lists.get(argument) ?? [argument])
}

/** Removes the elements that have the goal or the message, and `--` before them. The agent then reads it from stdin. */
export function withoutGoal(template: readonly string[]): string[] {
  const hasGoal = (argument = ''): boolean => /\{(?:goal|message)(?::words)?\}/.test(argument)
  return template.filter((argument, at) => !hasGoal(argument) && !(argument === '--' && hasGoal(template[at + 1])))
}
