/** `agent-tasks/adapters/json-schema`: the tools as JSON Schema and one function, for APIs without an adapter. */
import { preview } from '../../data/preview.js'
import { errorResult, validationError, type ToolContext, type ToolResult } from '../tool.js'
import { offeredTools, type AdapterOptions, type NeutralTools } from './neutral-tools.js'

/** The description of a tool for a model's API. */
export interface JsonSchemaTool {
  /** The name. */
  readonly name: string
  /** The description for the model. */
  readonly description: string
  /** JSON Schema (draft 2020-12) of the arguments: plain data of the type that `input_schema` of Anthropic's SDK has. */
  readonly parameters: {
    readonly type: 'object'
    readonly properties?: Record<string, unknown>
    // The SDKs have lists that they may change.
    readonly required?: string[]
    readonly [keyword: string]: unknown
  }
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
 * @param options.names other names for some tools
 * @returns the descriptions of the tools, and a function that calls them
 * @throws INVALID_INPUT when a key is not the name of its tool, or for an invalid option
 */
export function toJsonSchemaTools(tools: NeutralTools, options?: AdapterOptions): JsonSchemaTools {
  const offered = offeredTools(tools, options)
  const byName = new Map(offered.map(({ name, tool }) => [name, tool]))
  return {
    tools: offered.map(({ name, description, parameters }): JsonSchemaTool => ({
      name,
      description,
      parameters: parameters as JsonSchemaTool['parameters'],
    })),
    call: async (name, args, context) => {
      const tool = byName.get(name)
      if (tool === undefined) return unknownTool(name, [...byName.keys()])
      const input = readArguments(args)
      if (input === undefined) return validationError(name, 'params', args, 'an object, as JSON')
      return tool.execute(input.value, context)
    },
  }
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
