/** The input of every adapter: the tools by name, and their parameters as JSON Schema. */
import { z } from 'zod'
import { InvalidInputError } from '../errors.js'
import type { Tool } from '../tools/tool.js'

/** Tools by name, such as `createAgentTasks().tools`. */
export type NeutralTools = Readonly<Record<string, Tool>>

/**
 * The tools in the order of the record.
 * @throws InvalidInputError when a key is not the name of its tool: tools refer to each other by name
 */
export function listTools(tools: NeutralTools): readonly Tool[] {
  for (const [key, { name }] of Object.entries(tools)) {
    if (key !== name) throw new InvalidInputError(`tools.${key}`, name, 'the name of the tool as its key')
  }
  return Object.values(tools)
}

/**
 * A tool's parameters as JSON Schema (draft 2020-12), without redundant keywords: several providers reject `propertyNames`, and
 * a bound of 2^53-1 means nothing to a model.
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
  // The copy drops a hidden reference to the zod schema.
  return JSON.parse(JSON.stringify(schema)) as Record<string, unknown>
}

function isAnyString(schema: unknown): boolean {
  return JSON.stringify(schema) === '{"type":"string"}'
}
