/**
 * `agent-tasks/adapters/ai-sdk`: the tools for the AI SDK (`ai` 6 or 7, an optional peer dependency).
 *
 * The model gets only the text of a result. The host gets the whole result in `toolResults`; the result of a failed call is in the error of its
 * `tool-error`.
 */
import { jsonSchema, tool as aiTool, type JSONSchema7, type Tool as AiTool } from 'ai'
import type { z } from 'zod'
import type { ToolResult } from '../tool.js'
import {
  offeredTools,
  type AdapterOptions,
  type NeutralTools,
  type OfferedTool,
  type ToolNames,
} from './neutral-tools.js'
import { executeOrThrow } from './tool-failure.js'

/** Tools of the AI SDK by name, with typed inputs. */
export type AiSdkTools<Tools extends NeutralTools, Names extends ToolNames = never> = {
  [Name in keyof Tools as [Names] extends [never] ? Name : Name extends keyof Names ? Names[Name] : Name]: AiTool<
    z.input<Tools[Name]['inputSchema']>,
    ToolResult
  >
}

/**
 * Converts tools to a tool set for `generateText`, `streamText` and `ToolLoopAgent`. A tool gets the `abortSignal` and the `toolCallId` of its call. A
 * failed call throws `TOOL_FAILED`, and the model gets its message as `error-text`.
 * @param tools tools by name, such as `createAgentTasks().tools`
 * @param options.names other names for some tools
 * @returns the tool set, with the names that the model sees
 * @throws INVALID_INPUT when a key is not the name of its tool, or for an invalid option
 */
export function toAiSdkTools<Tools extends NeutralTools, const Names extends ToolNames = never>(
  tools: Tools,
  options?: AdapterOptions<Names>,
): AiSdkTools<Tools, Names> {
  const entries = offeredTools(tools, options).map((offered): [string, AiTool] => [offered.name, toAiSdkTool(offered)])
  return Object.fromEntries(entries) as unknown as AiSdkTools<Tools, Names>
}

function toAiSdkTool({ tool, description, parameters }: OfferedTool): AiTool<Record<string, unknown>, ToolResult> {
  return aiTool({
    description,
    // The SDK gets no validator, because the tool validates its input, with errors that are written for models.
    inputSchema: jsonSchema<Record<string, unknown>>(parameters as JSONSchema7),
    execute: (input: Record<string, unknown>, { abortSignal: signal, toolCallId }) =>
      executeOrThrow(tool, input, { signal, toolCallId }),
    // Mastra calls it with the result alone.
    toModelOutput: (call: { output: ToolResult } | ToolResult) => ({
      type: 'text',
      value: ('output' in call ? call.output : call).llmContent,
    }),
  })
}
