/** `agent-tasks/adapters/langchain`: the tools for LangChain (`@langchain/core` 1, an optional peer). */
import { ToolMessage } from '@langchain/core/messages'
import { tool as langChainTool, type DynamicStructuredTool } from '@langchain/core/tools'
import { z } from 'zod'
import type { OutputUpdate, Tool, ToolResult } from '../tools/tool.js'
import { listTools, parametersOf, type NeutralTools } from './neutral-tools.js'

/** A structured tool of LangChain. Its artifact is the whole result of the call. */
export type LangChainTool = DynamicStructuredTool<
  z.ZodType<Record<string, unknown>>,
  Record<string, unknown>,
  Record<string, unknown>
>

/**
 * Converts tools for `bindTools`, `createAgent` and `ToolNode`. A tool gets the `signal` and the id of its call. While a call waits for a task, the
 * output of the task goes to the `writer` of LangGraph, as `{ tool, toolCallId, text, cursor }` (stream mode `custom`). A failed call returns a
 * `ToolMessage` with status `error`. It does not throw, because agents handle exceptions in different ways.
 * @param tools tools by name, such as `createAgentTasks().tools`
 * @returns the tools, in the order of their keys
 * @throws InvalidInputError when a key is not the name of its tool
 */
export function toLangChainTools(tools: NeutralTools): LangChainTool[] {
  return listTools(tools).map(toLangChainTool)
}

function toLangChainTool(tool: Tool): LangChainTool {
  // LangChain throws when its own validation fails. So this schema describes the input but accepts any input, and the tool validates it.
  const schema: z.ZodType<Record<string, unknown>> = z.any().meta(parametersOf(tool))
  return langChainTool(
    async (input: Record<string, unknown>, { signal, toolCall, writer }: CallConfig) => {
      const toolCallId = toolCall?.id
      const onUpdate = (update: OutputUpdate): void => writer?.({ tool: tool.name, toolCallId, ...update })
      const result = await tool.execute(input, { signal, toolCallId, ...(writer && { onUpdate }) })
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

/** The part of a `ToolRunnableConfig` that is used here. */
interface CallConfig {
  readonly signal?: AbortSignal
  readonly toolCall?: { readonly id?: string }
  /** Writes to the stream of LangGraph's mode `custom`. */
  readonly writer?: ((chunk: unknown) => void) | null
}

/** A `ToolMessage` needs the id of its call. A tool that is invoked directly has no call id, so it returns the text alone. */
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
