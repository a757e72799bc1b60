import { generateText, isStepCount, streamText, type ModelMessage } from 'ai'
import { convertArrayToReadableStream, MockLanguageModelV4 } from 'ai/test'
import { expect, expectTypeOf, it, onTestFinished } from 'vitest'
import { toAiSdkTools } from '../../../../src/tools/adapters/ai-sdk.js'
import { createAgentTasks } from '../../../../src/host/agent-tasks.js'
import type { ToolResult } from '../../../../src/tools/tool.js'
import type { AdapterSubject, ModelCall, ShownResult } from './adapter-subject.js'
import { describeAdapter } from './adapter-suite.js'
import { ToolFailure } from '../../../../src/tools/adapters/tool-failure.js'

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

type Generated = Awaited<ReturnType<MockLanguageModelV4['doGenerate']>>
type CallContent = { type: 'tool-call'; toolCallId: string; toolName: string; input: string }

function callsOf(calls: readonly ModelCall[]): CallContent[] {
  return calls.map(({ id, name, args }) => ({
    type: 'tool-call',
    toolCallId: id,
    toolName: name,
    input: typeof args === 'string' ? args : JSON.stringify(args),
  }))
}

const step = (content: Generated['content'], unified: 'stop' | 'tool-calls'): Generated => ({
  content,
  finishReason: { unified, raw: undefined },
  usage,
  warnings: [],
})

const modelThatCalls = (calls: readonly ModelCall[]) =>
  new MockLanguageModelV4({
    doGenerate: [
      ...(calls.length > 0 ? [step(callsOf(calls), 'tool-calls')] : []),
      step([{ type: 'text', text: 'done' }], 'stop'),
    ],
  })

/** The results in a prompt. */
function shownIn(prompt: MockLanguageModelV4['doGenerateCalls'][number]['prompt'] | ModelMessage[]): ShownResult[] {
  return prompt.flatMap(({ role, content }) => {
    if (role !== 'tool' || typeof content === 'string') return []
    return content.flatMap((part) => {
      if (part.type !== 'tool-result') return []
      const { type, value } = part.output as { type: string; value: unknown }
      expect(type).toMatch(/^(error-)?text$/)
      return [{ id: part.toolCallId, text: String(value), isError: type === 'error-text' }]
    })
  })
}

const subject: AdapterSubject = {
  takesText: true,
  rejectsAborted: true,
  turn: async (tools, calls, abortSignal, options) => {
    const model = modelThatCalls(calls)
    const { text } = await generateText({
      model,
      tools: toAiSdkTools(tools, options),
      prompt: 'go on',
      stopWhen: isStepCount(5),
      ...(abortSignal && { abortSignal }),
    })
    const [first] = model.doGenerateCalls
    const offered = (first?.tools ?? []).map((tool) => {
      if (tool.type !== 'function') throw new Error(`not a function: ${tool.name}`)
      return { name: tool.name, description: tool.description ?? '', parameters: tool.inputSchema }
    })
    return { offered, shown: shownIn(model.doGenerateCalls.at(-1)?.prompt ?? []), end: text }
  },
}

describeAdapter('the AI SDK', subject)

function setUp() {
  const agent = createAgentTasks({
    subagents: { echo: ({ goal }) => Promise.resolve({ final_message: `echo ${goal}` }) },
  })
  onTestFinished(() => agent.dispose())
  return { agent, tools: toAiSdkTools(agent.tools) }
}

it('gives the host of the AI SDK whole results and failures', async () => {
  const { tools } = setUp()
  const model = modelThatCalls([
    { id: 'c1', name: 'task', args: { subagent_name: 'echo', goal_prompt: 'one' } },
    { id: 'c2', name: 'task', args: { subagent_name: 'nobody', goal_prompt: 'two' } },
  ])
  const { steps } = await generateText({ model, tools, prompt: 'go on', stopWhen: isStepCount(5) })
  const content = steps[0]?.content ?? []
  const result = content.find((part) => part.type === 'tool-result' && part.toolCallId === 'c1')
  expect(result).toMatchObject({ output: { returnDisplay: expect.any(String) as string, metadata: { async: false } } })
  const failure = content.find((part) => part.type === 'tool-error')
  expect(failure?.error).toBeInstanceOf(ToolFailure)
  expect(failure?.error).toMatchObject({
    code: 'TOOL_FAILED',
    tool: 'task',
    result: { error: { type: 'parameter_validation' } },
  })
})

it('works in the streaming loop of the AI SDK', async () => {
  const { tools } = setUp()
  const calls = callsOf([
    { id: 'c1', name: 'task', args: { subagent_name: 'echo', goal_prompt: 'one' } },
    { id: 'c2', name: 'task', args: { subagent_name: 'nobody', goal_prompt: 'two' } },
  ])
  const finish = (unified: 'stop' | 'tool-calls') =>
    ({ type: 'finish', usage, finishReason: { unified, raw: undefined } }) as const
  const model = new MockLanguageModelV4({
    doStream: [
      { stream: convertArrayToReadableStream([...calls, finish('tool-calls')]) },
      {
        stream: convertArrayToReadableStream([
          { type: 'text-start', id: 't' } as const,
          { type: 'text-delta', id: 't', delta: 'done' } as const,
          { type: 'text-end', id: 't' } as const,
          finish('stop'),
        ]),
      },
    ],
  })
  const result = streamText({ model, tools, prompt: 'go on', stopWhen: isStepCount(5) })
  await expect(result.text).resolves.toBe('done')
  const shown = shownIn(model.doStreamCalls.at(-1)?.prompt ?? [])
  expect(shown.map(({ isError }) => isError)).toEqual([false, true])
  expect(shown[0]?.text).toContain('echo one')
})

it('types the input and the output of each tool for the AI SDK', () => {
  const { tools } = setUp()
  expectTypeOf(tools.task.execute!).parameter(0).toHaveProperty('subagent_name').toBeString()
  expectTypeOf<Awaited<ReturnType<NonNullable<typeof tools.task.execute>>>>().toExtend<
    ToolResult | AsyncIterable<ToolResult>
  >()
  // @ts-expect-error no such tool
  expect(tools.nothing).toBeUndefined()
})

it('shows the model the text of a result also in Mastra, which calls toModelOutput with the result alone', async () => {
  const { tools } = setUp()
  const output = { llmContent: 'for the model', returnDisplay: 'for a person' }
  const { toModelOutput } = tools.task as { toModelOutput?: (given: unknown) => unknown }
  const shown = { type: 'text', value: 'for the model' }
  expect(toModelOutput?.(output)).toEqual(shown)
  expect(toModelOutput?.({ toolCallId: 'c1', input: {}, output })).toEqual(shown)
})
