/**
 * `agent-tasks/adapters/ai-sdk`: the tools for the AI SDK (`ai` 7, an optional peer dependency).
 *
 * The model gets only the text of a result. The host gets the whole result in `toolResults`; the result of a failed call is in the error of its
 * `tool-error`.
 */
import { jsonSchema, tool as aiTool, type JSONSchema7, type Tool as AiTool } from 'ai'
import type { z } from 'zod'
import type { Tool, ToolResult } from '../tools/tool.js'
import { listTools, parametersOf, type NeutralTools } from './neutral-tools.js'
import { executeOrThrow } from './tool-failure.js'

export { ToolFailure } from './tool-failure.js'

/** Tools of the AI SDK by name, with typed inputs. */
export type AiSdkTools<Tools extends NeutralTools> = {
  [Name in keyof Tools]: AiTool<z.input<Tools[Name]['inputSchema']>, ToolResult>
}

/**
 * Converts tools to a tool set for `generateText`, `streamText` and `ToolLoopAgent`. A tool gets the `abortSignal` and the `toolCallId` of its call. A
 * failed call throws `ToolFailure`, and the model gets its message as `error-text`.
 * @param tools tools by name, such as `createAgentTasks().tools`
 * @returns the tool set, with the same names
 * @throws InvalidInputError when a key is not the name of its tool
 */
export function toAiSdkTools<Tools extends NeutralTools>(tools: Tools): AiSdkTools<Tools> {
  const entries = listTools(tools).map((tool): [string, AiTool] => [tool.name, toAiSdkTool(tool)])
  return Object.fromEntries(entries) as unknown as AiSdkTools<Tools>
}

function toAiSdkTool(tool: Tool): AiTool<Record<string, unknown>, ToolResult> {
  return aiTool({
    description: tool.description,
    // The SDK gets no validator, because the tool validates its input, with errors that are written for models.
    inputSchema: jsonSchema<Record<string, unknown>>(parametersOf(tool) as JSONSchema7),
    execute: (input: Record<string, unknown>, { abortSignal: signal, toolCallId }) =>
      executeOrThrow(tool, input, { signal, toolCallId }),
    toModelOutput: ({ output }: { output: ToolResult }) => ({ type: 'text', value: output.llmContent }),
  })
}
