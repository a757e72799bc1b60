/** The input of every adapter: the tools by name, and their parameters as JSON Schema. */
import { InvalidInputError } from '../errors.js'
import { modelSchemaOf } from '../protocol/json-schema.js'
import type { Tool } from '../tools/tool.js'

/** Tools by name, such as `createAgentTasks().tools`. */
export type NeutralTools = Readonly<Record<string, Tool>>

/**
 * Returns the tools in the order of their keys. Each key must be the name of its tool, because the texts of tools mention other tools by name.
 * @throws InvalidInputError when a key is not the name of its tool
 */
export function listTools(tools: NeutralTools): readonly Tool[] {
  for (const [key, { name }] of Object.entries(tools)) {
    if (key !== name) throw new InvalidInputError(`tools.${key}`, name, 'the name of the tool as its key')
  }
  return Object.values(tools)
}

/** A tool's parameters as JSON Schema (draft 2020-12). */
export function parametersOf({ inputSchema }: Tool): Readonly<Record<string, unknown>> {
  return modelSchemaOf(inputSchema)
}
