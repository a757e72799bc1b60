/** `agent-tasks/adapters/langchain`: the tools for LangChain (`@langchain/core` 1, an optional peer). */
import { ToolMessage } from '@langchain/core/messages'
import { tool as langChainTool, type DynamicStructuredTool } from '@langchain/core/tools'
import { z } from 'zod'
import type { Tool, ToolResult } from '../tools/tool.js'
import { listTools, parametersOf, type NeutralTools } from './neutral-tools.js'

export type { NeutralTools } from './neutral-tools.js'

/** A structured tool of LangChain. Its artifact is the neutral tool's whole result. */
export type LangChainTool = DynamicStructuredTool<
  z.ZodType<Record<string, unknown>>,
  Record<string, unknown>,
  Record<string, unknown>
>

/**
 * Makes the tools for `bindTools`, `createAgent` and `ToolNode`. A call's `signal` and id reach the tool; a call that fails
 * is a `ToolMessage` with status `error`, and no exception: agents differ in what they do with one.
 * @param tools neutral tools by name, such as `createAgentTasks().tools`
 * @throws InvalidInputError when a key is not the name of its tool
 */
export function toLangChainTools(tools: NeutralTools): LangChainTool[] {
  return listTools(tools).map(toLangChainTool)
}

function toLangChainTool(tool: Tool): LangChainTool {
  // LangChain throws on input that its own check refuses. This schema says what is wanted and lets everything pass to the
  // tool, which checks it and answers in words.
  const schema: z.ZodType<Record<string, unknown>> = z.any().meta(parametersOf(tool))
  return langChainTool(
    async (input: Record<string, unknown>, { signal, toolCall }: CallConfig) => {
      const result = await tool.execute(input, { signal, toolCallId: toolCall?.id })
      return [result.error === undefined ? result.llmContent : failureOf(tool, result, toolCall?.id), result]
    },
    {
      name: tool.name,
      description: tool.description,
      schema,
      responseFormat: 'content_and_artifact',
    },
  )
}

/** The part of a `ToolRunnableConfig` that counts here. */
interface CallConfig {
  readonly signal?: AbortSignal
  readonly toolCall?: { readonly id?: string }
}

/** Without a call's id, which a tool has that is invoked directly, there is no message to make: it is the text alone. */
function failureOf(tool: Tool, result: ToolResult, callId: string | undefined): ToolMessage | string {
  if (callId === undefined) return result.llmContent
  return new ToolMessage({
    status: 'error',
    content: result.llmContent,
    artifact: result,
    tool_call_id: callId,
    name: tool.name,
  })
}
