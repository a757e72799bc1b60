/** Turns a preset and the options beside it into the arguments of a program. */
import type { AgentPresetData } from '../../protocol/agents/agent-preset.js'

export interface PresetChoices {
  readonly access: keyof AgentPresetData['access']
  readonly trust: boolean
  /** Further arguments, from the options. */
  readonly args: readonly string[]
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
