/** `agent-tasks/adapters/json-schema`: the tools as plain JSON Schema and one function, for whatever has no adapter. */
import { preview } from '../preview.js'
import { errorResult, validationError, type Tool, type ToolContext, type ToolResult } from '../tools/tool.js'
import { listTools, parametersOf, type NeutralTools } from './neutral-tools.js'

export type { NeutralTools } from './neutral-tools.js'

/** A tool as a model's API is told of it. */
export interface JsonSchemaTool {
  /** What the model calls it. */
  readonly name: string
  /** What the model is told of it. */
  readonly description: string
  /** JSON Schema (draft 2020-12) of the arguments: plain data. */
  readonly parameters: Readonly<Record<string, unknown>>
}

/** Tools that are described by data and called by name. */
export interface JsonSchemaTools {
  /** The tools as data, for a request to a model. */
  readonly tools: readonly JsonSchemaTool[]
  /**
   * Checks the arguments and calls the tool. Never rejects: whatever is wrong is a result with `error`, whose `llmContent`
   * is the text for the model.
   * @param args the arguments, or their JSON text as many APIs hand it over; nothing at all counts as no arguments
   */
  readonly call: (name: string, args: unknown, context?: ToolContext) => Promise<ToolResult>
}

/**
 * Describes the tools as data.
 * @param tools neutral tools by name, such as `createAgentTasks().tools`
 * @throws InvalidInputError when a key is not the name of its tool
 */
export function toJsonSchemaTools(tools: NeutralTools): JsonSchemaTools {
  const byName = new Map(listTools(tools).map((tool) => [tool.name, tool]))
  return {
    tools: Array.from(byName.values(), describeTool),
    call: async (name, args, context) => {
      const tool = byName.get(name)
      if (tool === undefined) return unknownTool(name, [...byName.keys()])
      const input = readArguments(args)
      if (input === undefined) return validationError(name, 'params', args, 'an object, as JSON')
      return tool.execute(input.value, context)
    },
  }
}

function describeTool(tool: Tool): JsonSchemaTool {
  return { name: tool.name, description: tool.description, parameters: parametersOf(tool) }
}

/** Undefined for a text that is not JSON. */
function readArguments(args: unknown): { readonly value: unknown } | undefined {
  if (typeof args !== 'string') return { value: args }
  try {
    return { value: args.trim() === '' ? {} : JSON.parse(args) }
  } catch {
    return undefined
  }
}

function unknownTool(name: string, known: readonly string[]): ToolResult {
  return errorResult('unknown_tool', `There is no tool ${preview(name)}. Known: ${known.join(', ') || 'none'}.`)
}
