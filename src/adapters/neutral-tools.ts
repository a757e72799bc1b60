/** What every adapter starts from: the neutral tools by name, and their parameters in the JSON Schema that models are shown. */
import { z } from 'zod'
import { InvalidInputError } from '../errors.js'
import type { Tool } from '../tools/tool.js'

/** Neutral tools by their names, as `createAgentTasks().tools` holds them. */
export type NeutralTools = Readonly<Record<string, Tool>>

/**
 * The tools in the order of the record.
 * @throws InvalidInputError when a key is not the name of its tool: the tools name each other in what they say
 */
export function listTools(tools: NeutralTools): readonly Tool[] {
  for (const [key, { name }] of Object.entries(tools)) {
    if (key !== name) throw new InvalidInputError(`tools.${key}`, name, `the tool under its own name`)
  }
  return Object.values(tools)
}

/**
 * A tool's parameters as plain JSON Schema (draft 2020-12), without the words that say nothing: several providers refuse
 * a `propertyNames`, and 2^53-1 is no bound that a model needs to read.
 */
export function parametersOf({ inputSchema }: Tool): Readonly<Record<string, unknown>> {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(inputSchema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      if (isAnyString(jsonSchema.propertyNames)) delete jsonSchema.propertyNames
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    },
  })
  // The result carries a hidden reference to the zod schema; a copy is plain data.
  return JSON.parse(JSON.stringify(schema)) as Record<string, unknown>
}

function isAnyString(schema: unknown): boolean {
  return JSON.stringify(schema) === '{"type":"string"}'
}
