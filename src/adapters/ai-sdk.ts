/**
 * `agent-tasks/adapters/ai-sdk`: the tools for the AI SDK (`ai` 7, an optional peer).
 *
 * The model is told a result's text and nothing else; the host finds the whole result in `toolResults`, and in the error
 * of a `tool-error` when the call failed.
 */
import { jsonSchema, tool as aiTool, type JSONSchema7, type Tool as AiTool } from 'ai'
import type { z } from 'zod'
import type { Tool, ToolResult } from '../tools/tool.js'
import { listTools, parametersOf, type NeutralTools } from './neutral-tools.js'
import { executeOrThrow } from './tool-failure.js'

export type { NeutralTools } from './neutral-tools.js'

export { ToolFailure } from './tool-failure.js'

/** Tools of the AI SDK under the names of the neutral ones, with their inputs typed. */
export type AiSdkTools<Tools extends NeutralTools> = {
  [Name in keyof Tools]: AiTool<z.input<Tools[Name]['inputSchema']>, ToolResult>
}

/**
 * Makes a tool set for `generateText`, `streamText` and `ToolLoopAgent`. A call's `abortSignal` and `toolCallId` reach the
 * tool; a call that fails throws `ToolFailure`, which the SDK tells the model as `error-text`.
 * @param tools neutral tools by name, such as `createAgentTasks().tools`
 * @throws InvalidInputError when a key is not the name of its tool
 */
export function toAiSdkTools<Tools extends NeutralTools>(tools: Tools): AiSdkTools<Tools> {
  const entries = listTools(tools).map((tool): [string, AiTool] => [tool.name, toAiSdkTool(tool)])
  return Object.fromEntries(entries) as unknown as AiSdkTools<Tools>
}

function toAiSdkTool(tool: Tool): AiTool<Record<string, unknown>, ToolResult> {
  return aiTool({
    description: tool.description,
    // Without a validator of its own: the tool checks what comes, and words what is wrong with it.
    inputSchema: jsonSchema<Record<string, unknown>>(parametersOf(tool) as JSONSchema7),
    execute: (input: Record<string, unknown>, { abortSignal: signal, toolCallId }) =>
      executeOrThrow(tool, input, { signal, toolCallId }),
    toModelOutput: ({ output }: { output: ToolResult }) => ({ type: 'text', value: output.llmContent }),
  })
}
