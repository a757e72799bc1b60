/** The input of every adapter: the tools by name, and the names under which a model sees them. */
import { InvalidInputError } from '../../errors.js'
import { modelSchemaOf } from '../../protocol/json-schema.js'
import { aText, checkOptions, recordOf, type OptionTypes } from '../../protocol/option-checks.js'
import { expectedName } from '../../data/nearest-name.js'
import type { Tool } from '../tool.js'

/** Tools by name, such as `createAgentTasks().tools`. */
export type NeutralTools = Readonly<Record<string, Tool>>

/** Other names for some tools: the new name, by the name of the tool. */
export type ToolNames = Readonly<Record<string, string>>

/** The options of every adapter. */
export interface AdapterOptions<Names extends ToolNames = ToolNames> {
  /**
   * Other names for tools, such as `{ task: 'delegate' }`, when the SDK or another tool has taken a name. The description of a renamed tool says how
   * the texts of the other tools call it.
   */
  readonly names?: Names
}

export interface OfferedTool {
  readonly name: string
  readonly description: string
  /** JSON Schema (draft 2020-12) of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>
  readonly tool: Tool
}

/** What the providers of models accept as the name of a tool. */
const TOOL_NAME = /^[A-Za-z0-9_-]{1,64}$/

const optionTypes: OptionTypes<AdapterOptions> = {
  names: recordOf(aText('1 to 64 letters, digits, _ and -', TOOL_NAME)),
}

/**
 * Returns the tools in the order of their keys. Each key must be the name of its tool, because the texts of tools mention other tools by name.
 * @throws INVALID_INPUT when a key is not the name of its tool, or for an invalid name
 */
export function offeredTools(tools: NeutralTools, options: AdapterOptions = {}): readonly OfferedTool[] {
  checkOptions<AdapterOptions>(options, optionTypes)
  for (const [key, { name }] of Object.entries(tools)) {
    if (key === name) continue
    throw new InvalidInputError(
      `tools.${key}`,
      name,
      'the name of the tool as its key; the option names renames a tool',
    )
  }
  const names = new Map(Object.entries(options.names ?? {}))
  for (const [key, name] of names) {
    if (!Object.hasOwn(tools, key)) {
      throw new InvalidInputError(`options.names.${key}`, name, expectedName(key, Object.keys(tools)))
    }
  }
  const taken = new Map<string, string>()
  return Object.values(tools).map((tool) => {
    const name = names.get(tool.name) ?? tool.name
    const other = taken.get(name)
    if (other !== undefined) {
      throw new InvalidInputError(
        'options.names',
        options.names,
        `one name for each tool: ${other} and ${tool.name} are both ${name}`,
      )
    }
    taken.set(name, tool.name)
    return { name, description: descriptionOf(tool, name), parameters: modelSchemaOf(tool.inputSchema), tool }
  })
}

/** The texts of tools and messages mention tools by their own names. */
const descriptionOf = (tool: Tool, name: string): string =>
  name === tool.name ? tool.description : `${tool.description}\n\nOther texts call this tool ${tool.name}.`
