/** Finds placeholders in the arguments of configured programs that are not replaced, such as `{prompt}`. */
import type { AgentConfig } from '../protocol/agent-config.js'
import { preview } from '../text/preview.js'

const KNOWN: ReadonlySet<string> = new Set(['goal', 'name', 'id'])

/** A placeholder as a whole argument, or as the value of one: `{word}`, `--prompt={word}`. Other braces may be code. */
const PLACEHOLDER = /^(?:-{0,2}[\w-]+=)?\{(\w+)\}$/

/** @returns a sentence for each unknown placeholder */
export function unknownPlaceholders({ subagents }: Pick<AgentConfig, 'subagents'>): string[] {
  return subagents.flatMap(({ args }, index) =>
    args.flatMap((argument, at) => {
      const [, word] = PLACEHOLDER.exec(argument) ?? []
      if (word === undefined || KNOWN.has(word)) return []
      return [
        `subagents[${index}].args[${at}]: ${preview(argument)} is not replaced. Placeholders are {goal}, {name} and {id}.`,
      ]
    }),
  )
}
