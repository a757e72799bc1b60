/** `agent-tasks/adapters/langchain`: the tools for LangChain (`@langchain/core` 0.3 or 1, an optional peer). */
import { ToolMessage } from '@langchain/core/messages'
import { AsyncLocalStorageProviderSingleton } from '@langchain/core/singletons'
import { DynamicStructuredTool, tool as langChainTool } from '@langchain/core/tools'
import { z } from 'zod'
import { AgentTasksError } from '../../errors.js'
import type { OutputUpdate, ToolResult } from '../tool.js'
import { offeredTools, type AdapterOptions, type NeutralTools, type OfferedTool } from './neutral-tools.js'

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
 * @param options.names other names for some tools
 * @returns the tools, in the order of their keys
 * @throws INVALID_INPUT when a key is not the name of its tool, or for an invalid option
 * @throws AgentTasksError `PACKAGES_MISSING` with `@langchain/core` before 0.3.58
 */
export function toLangChainTools<Tools extends NeutralTools>(
  tools: Tools,
  options?: AdapterOptions,
): LangChainTools<Tools> {
  return offeredTools(tools, options).map(toLangChainTool) as LangChainTools<Tools>
}

/** At least one tool for a record of known keys, because `createAgent` does not accept `[...tools, own]` for a list that may be empty. */
type LangChainTools<Tools> = string extends keyof Tools ? LangChainTool[] : [LangChainTool, ...LangChainTool[]]

function toLangChainTool({ tool, name, description, parameters }: OfferedTool): LangChainTool {
  // LangChain throws when its own validation fails. So this schema describes the input but accepts any input, and the tool validates it.
  const schema: z.ZodType<Record<string, unknown>> = z.any().meta(parameters)
  const made = langChainTool(
    async (input: Record<string, unknown>, { signal, toolCall, writer }: CallConfig) => {
      const toolCallId = toolCall?.id
      const onUpdate = (update: OutputUpdate): void => writer?.({ tool: name, toolCallId, ...update })
      // LangChain keeps the current run in an AsyncLocalStorage. A task outlives this run, and an agent that the task runs is not a part of it.
      const result = await AsyncLocalStorageProviderSingleton.runWithConfig(
        undefined,
        () => tool.execute(input, { signal, toolCallId, ...(writer && { onUpdate }) }),
        true,
      )
      return [result.error === undefined ? result.llmContent : failureOf(name, result, toolCall?.id), result]
    },
    {
      name,
      description,
      schema,
      responseFormat: 'content_and_artifact',
    },
  )
  // Without support for zod 4, LangChain makes a tool of one text, and drops the arguments of each call.
  if (made instanceof DynamicStructuredTool) return made
  throw new AgentTasksError(
    'PACKAGES_MISSING',
    'toLangChainTools needs @langchain/core 0.3.58 or newer. Run: npm install @langchain/core@1',
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
function failureOf(name: string, result: ToolResult, callId: string | undefined): ToolMessage | string {
  if (callId === undefined) return result.llmContent
  return new ToolMessage({
    status: 'error',
    content: result.llmContent,
    artifact: result,
    tool_call_id: callId,
    name,
  })
}
