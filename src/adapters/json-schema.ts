/** `agent-tasks/adapters/json-schema`: the tools as JSON Schema and one function, for APIs without an adapter. */
import { preview } from '../text/preview.js'
import { errorResult, validationError, type Tool, type ToolContext, type ToolResult } from '../tools/tool.js'
import { listTools, parametersOf, type NeutralTools } from './neutral-tools.js'

/** The description of a tool for a model's API. */
export interface JsonSchemaTool {
  /** The name. */
  readonly name: string
  /** The description for the model. */
  readonly description: string
  /** JSON Schema (draft 2020-12) of the arguments: plain data. */
  readonly parameters: Readonly<Record<string, unknown>>
}

/** Tools as data, and a function that calls them by name. */
export interface JsonSchemaTools {
  /** The descriptions, for a request to a model. */
  readonly tools: readonly JsonSchemaTool[]
  /**
   * Validates the arguments and calls the tool. Never rejects: a failed call resolves with a result that has `error`. Its `llmContent` is the text for
   * the model.
   * @param name the name of the tool
   * @param args the arguments, or their JSON text; an empty text and undefined mean no arguments
   * @param context the context of the call, such as its `signal`
   */
  readonly call: (name: string, args: unknown, context?: ToolContext) => Promise<ToolResult>
}

/**
 * Converts tools to data.
 * @param tools tools by name, such as `createAgentTasks().tools`
 * @returns the descriptions of the tools, and a function that calls them
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

/** @returns undefined for a text that is not JSON */
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
