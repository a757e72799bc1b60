/** Adapts `callTool` to the tools of each SDK. Only the fields that this package reads are described, because the SDKs are optional dependencies. */
import { InvalidInputError, ToolCallError } from '../../errors.js'
import { parseJson } from '../../data/parse-json.js'
import { MAX_LEVELS } from '../../data/plain-data.js'
import { describeFailure } from '../../protocol/outcomes.js'
import { unwrapResult, type ToolCallResult } from '../../protocol/tool-result.js'
import { errorResult, type Tool, type ToolResult } from '../../tools/tool.js'
import { outputOfModelOutput, throwMcpError, type ModelOutput } from './ai-sdk-output.js'
import { isReference } from './schemas.js'
import { callTool, type ToolTasks } from './tool-call.js'

type Method = (...args: unknown[]) => unknown

type AiSdkTool = { readonly execute: Method; toModelOutput?(call: object): PromiseLike<ModelOutput> }

export function aiSdkTool(tool: AiSdkTool, tasks: ToolTasks): object {
  const modelOutput = tool.toModelOutput?.bind(tool)
  const execute = (given: unknown, options: { abortSignal?: AbortSignal; toolCallId?: string } = {}) =>
    callTool<unknown>(tasks, given, {
      signal: options.abortSignal,
      run: (input, { signal }) => tool.execute(input, { ...options, abortSignal: signal }),
      // As the SDK does, which ignores what a generator returns.
      resultIs: 'yielded',
      // The output of the task is what the model would read.
      outputOf: async (output, input) => {
        throwMcpError(output)
        if (modelOutput === undefined) return output
        return outputOfModelOutput(await modelOutput({ output, input, toolCallId: options.toolCallId }))
      },
      resultOf: (_text, task) => task,
      throws: true,
    })
  const toModelOutput = (call: object): unknown => {
    // Mastra calls it with the output alone.
    const output: unknown = isReference(call) ? call : (call as { readonly output?: unknown }).output
    return isReference(output) ? { type: 'json', value: output } : modelOutput?.(call)
  }
  return modelOutput ? { execute, toModelOutput } : { execute }
}

type OpenAIAgentsTool = {
  readonly name: string
  readonly invoke: Method
  readonly timeoutMs?: number
  readonly outputGuardrails?: readonly { readonly name: string }[]
}

/**
 * Wraps a tool of OpenAI Agents. The SDK converts an exception of the tool to a text, unless `errorFunction` is null. The task then completes with
 * that text.
 * @throws INVALID_INPUT for a tool with output guardrails
 */
export function openaiAgentsTool(tool: OpenAIAgentsTool, tasks: ToolTasks): object {
  // The SDK gives guardrails the agent and what `invoke` returns, which is not the result of a call in the background.
  if (tool.outputGuardrails?.length) {
    throw new InvalidInputError(
      'tool.outputGuardrails',
      tool.outputGuardrails.map(({ name }) => name).join(', '),
      `none: a guardrail of ${tool.name} would check the id of its task instead of its result. Check the result in execute, or use the mode 'never'`,
    )
  }
  const invoke = (runContext: unknown, text: string, details: { readonly signal?: AbortSignal } = {}) => {
    // If the arguments are not JSON, they are passed on unchanged, and the tool itself reports the error.
    const parsed = parseJson(text, MAX_LEVELS)
    return callTool<unknown>(tasks, 'value' in parsed ? parsed.value : text, {
      signal: details.signal,
      // The SDK applies the time limit of a tool to `invoke`, which returns before a call in the background has ended.
      timeoutMs: tool.timeoutMs,
      run: (input, { signal }) => {
        const own: unknown = Object.create(details, { signal: { value: signal, enumerable: true } })
        return tool.invoke(runContext, 'value' in parsed ? JSON.stringify(input) : text, own)
      },
      // The failure is returned as a text, because an exception of `invoke` would end the whole run of the agent.
      resultOf: (failure, task) => task ?? failure,
    })
  }
  return { invoke }
}

type LangChainTool = { readonly name: string; readonly _call: Method; readonly responseFormat?: string }

/** What LangGraph recognises: `interrupt()` throws an error with `is_bubble_up`, and a `Command` has the name `Command`. */
interface LangGraphValue {
  readonly is_bubble_up?: unknown
  readonly lg_name?: unknown
}

/** The graph has gone on without the tool, so that it can neither be paused nor be changed by it. */
const leftGraph = (name: string, what: string, { isChoice }: ToolTasks): Error =>
  new Error(
    `${name} ${what}, which has no effect in the background, because its call has returned. ` +
      (isChoice ? `Call ${name} with run_in_background: false.` : `Wrap ${name} with the mode 'never'.`),
  )

export function langChainTool(tool: LangChainTool, tasks: ToolTasks): object {
  const hasArtifact = tool.responseFormat === 'content_and_artifact'
  const _call = (given: unknown, runManager: unknown, config: { readonly signal?: AbortSignal } = {}) =>
    callTool<unknown>(tasks, given, {
      signal: config.signal,
      run: async (input, { signal }, hasLeft) => {
        try {
          return await tool._call(input, runManager, { ...config, signal })
        } catch (error) {
          if ((Object(error) as LangGraphValue).is_bubble_up !== true || !hasLeft()) throw error
          throw leftGraph(tool.name, 'has called interrupt()', tasks)
        }
      },
      outputOf: (result, _input, hasLeft) => {
        const shown = hasArtifact ? (result as readonly unknown[])[0] : result
        if ((Object(shown) as LangGraphValue).lg_name === 'Command') {
          if (hasLeft()) throw leftGraph(tool.name, 'has returned a Command', tasks)
          return undefined
        }
        const message = Object(shown) as { tool_call_id?: unknown; status?: unknown; content?: unknown }
        if (message.tool_call_id === undefined) return shown
        if (message.status === 'error') throw new Error(describeFailure(message.content))
        return message.content
      },
      // A failure is returned as a text, because LangChain agents treat exceptions in different ways.
      resultOf: (text, task) => (hasArtifact ? [text, task] : text),
    })
  return { _call }
}

type McpOptions = { signal?: AbortSignal; onprogress?: (progress: { progress: number }) => void }

export const mcpTool = (tool: { readonly call: Method }, tasks: ToolTasks): object => ({
  call: (given: unknown, options: McpOptions = {}) =>
    callTool<ToolCallResult>(tasks, given, {
      signal: options.signal,
      run: (input, context) => {
        const onprogress = (progress: { progress: number }): void => {
          context.report(progress)
          options.onprogress?.(progress)
        }
        return tool.call(input, { ...options, signal: context.signal, onprogress })
      },
      outputOf: (result) => {
        if (result.isError === true) throw new Error(result.content.map(({ text = '' }) => text).join('\n'))
        return unwrapResult(result)
      },
      resultOf: (text, task) => {
        const content = [{ type: 'text', text }]
        return task === undefined ? { content, isError: true } : { content, structuredContent: { ...task } }
      },
    }),
})

/** Wraps a tool of this package. What the tool writes is the output of the task, and a foreground call passes it on. */
export const neutralTool = (tool: Tool, tasks: ToolTasks): Pick<Tool, 'execute'> => ({
  execute: (given, context = {}) =>
    callTool<ToolResult>(tasks, given ?? {}, {
      ...context,
      run: (input, { signal, ...running }) =>
        tool.execute(input, { signal, toolCallId: context.toolCallId, onUpdate: ({ text }) => running.append(text) }),
      outputOf: ({ error, llmContent }) => {
        if (error !== undefined) throw new ToolCallError(error.type, llmContent)
        return llmContent
      },
      resultOf: (text, task) => {
        if (task === undefined) return errorResult('execution_failed', text)
        const { task_id: agentId, status, how_to_wait } = task
        return { llmContent: how_to_wait, returnDisplay: how_to_wait, metadata: { agentId, async: true, status } }
      },
    }).catch(() => errorResult('aborted', `The call of ${tool.name} was aborted.`)),
})
