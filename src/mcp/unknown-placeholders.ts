/** Finds unknown placeholders, such as `{prompt}`, in the arguments of configured programs. Programs get them unchanged. */
import type { AgentConfig } from '../protocol/agent-config.js'
import { preview } from '../data/preview.js'

const KNOWN: ReadonlySet<string> = new Set(['goal', 'goal:file', 'results', 'name', 'id'])

/** A placeholder that is a whole argument or the value of one: `{word}`, `--prompt={word}`. Braces elsewhere may be code, so they are ignored. */
const PLACEHOLDER = /^(?:-{0,2}[\w-]+=)?\{(\w+(?::\w+)?)\}$/

/** @returns a sentence for each unknown placeholder */
export function unknownPlaceholders({ subagents }: Pick<AgentConfig, 'subagents'>): string[] {
  return subagents.flatMap(({ args }, index) =>
    args.flatMap((argument, at) => {
      const [, word] = PLACEHOLDER.exec(argument) ?? []
      if (word === undefined || KNOWN.has(word)) return []
      return [
        `subagents[${index}].args[${at}]: ${preview(argument)} is passed on unchanged. The placeholders are {goal}, {goal:file}, {results}, {name} and {id}.`,
      ]
    }),
  )
}
