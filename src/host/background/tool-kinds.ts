/** Adapts `callTool` to the tools of each SDK. Only the fields that this package reads are described, because the SDKs are optional dependencies. */
import { ToolCallError } from '../../errors.js'
import { parseJson } from '../../json/parse-json.js'
import { MAX_LEVELS } from '../../json/plain-data.js'
import { describeFailure } from '../../protocol/outcomes.js'
import { unwrapResult, type ToolCallResult } from '../../protocol/tool-result.js'
import { errorResult, type Tool, type ToolResult } from '../../tools/tool.js'
import { isReference } from './schemas.js'
import { callTool, type ToolTasks } from './tool-call.js'

type Method = (...args: unknown[]) => unknown

type AiSdkTool = { readonly execute: Method; toModelOutput?(call: object): PromiseLike<{ readonly value?: unknown }> }

export function aiSdkTool(tool: AiSdkTool, tasks: ToolTasks): object {
  const modelOutput = tool.toModelOutput?.bind(tool)
  const execute = (given: unknown, options: { abortSignal?: AbortSignal; toolCallId?: string } = {}) =>
    callTool<unknown>(tasks, given, {
      signal: options.abortSignal,
      run: (input, { signal }) => tool.execute(input, { ...options, abortSignal: signal }),
      // The output of the task is the text that the model would read.
      outputOf: async (output, input) =>
        modelOutput ? (await modelOutput({ output, input, toolCallId: options.toolCallId })).value : output,
      resultOf: (_text, task) => task,
      throws: true,
    })
  const toModelOutput = (call: { readonly output: unknown }): unknown =>
    isReference(call.output) ? { type: 'json', value: call.output } : modelOutput?.(call)
  return modelOutput ? { execute, toModelOutput } : { execute }
}

/**
 * Wraps a tool of OpenAI Agents. The SDK converts an exception of the tool to a text, unless `errorFunction` is null. The task then completes with
 * that text.
 */
export const openaiAgentsTool = (tool: { readonly invoke: Method }, tasks: ToolTasks): object => ({
  invoke: (runContext: unknown, text: string, details: { readonly signal?: AbortSignal } = {}) => {
    // If the arguments are not JSON, they are passed on unchanged, and the tool itself reports the error.
    const parsed = parseJson(text, MAX_LEVELS)
    return callTool<unknown>(tasks, 'value' in parsed ? parsed.value : text, {
      signal: details.signal,
      run: (input, { signal }) => {
        const own: unknown = Object.create(details, { signal: { value: signal, enumerable: true } })
        return tool.invoke(runContext, 'value' in parsed ? JSON.stringify(input) : text, own)
      },
      // The failure is returned as a text, because an exception of `invoke` would end the whole run of the agent.
      resultOf: (failure, task) => task ?? failure,
    })
  },
})

type LangChainTool = { readonly _call: Method; readonly responseFormat?: string }

export function langChainTool(tool: LangChainTool, tasks: ToolTasks): object {
  const hasArtifact = tool.responseFormat === 'content_and_artifact'
  const _call = (given: unknown, runManager: unknown, config: { readonly signal?: AbortSignal } = {}) =>
    callTool<unknown>(tasks, given, {
      signal: config.signal,
      run: (input, { signal }) => tool._call(input, runManager, { ...config, signal }),
      outputOf: (result) => {
        const shown = hasArtifact ? (result as readonly unknown[])[0] : result
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
