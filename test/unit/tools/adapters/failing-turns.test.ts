/** With each SDK: a turn fails at some point, its messages are dropped, and the agent still reads each result once. */
import { Agent, Runner, user, type AgentInputItem } from '@openai/agents'
import { assistantMessage, functionCall, modelError, modelStream, ScriptedModel } from '@openai/agents/testing'
import { AIMessage, HumanMessage, type BaseMessage } from '@langchain/core/messages'
import { fakeModel } from '@langchain/core/testing'
import { generateText, isStepCount, streamText, type ModelMessage } from 'ai'
import { convertArrayToReadableStream, MockLanguageModelV4 } from 'ai/test'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { toAiSdkTools } from '../../../../src/tools/adapters/ai-sdk.js'
import { toLangChainTools, type LangChainTool } from '../../../../src/tools/adapters/langchain.js'
import { toOpenAIAgentsTools } from '../../../../src/tools/adapters/openai-agents.js'
import { createAgentTasks, type AgentTasks } from '../../../../src/index.js'
import { createManualClock } from '../../../../src/testing/manual-clock.js'
import { createTurns } from '../../../../src/parts.js'

// As in langchain.test.ts: tsc must not follow this import.
const packageOfTheLoop = 'langchain'
const { createAgent } = (await import(packageOfTheLoop)) as {
  createAgent: (options: { model: unknown; tools: readonly LangChainTool[] }) => {
    invoke(input: { messages: BaseMessage[] }): Promise<{ readonly messages: readonly BaseMessage[] }>
    stream(
      input: { messages: BaseMessage[] },
      options: { streamMode: 'values' },
    ): Promise<AsyncIterable<{ readonly messages: readonly BaseMessage[] }>>
  }
}

/** What the model does in one step of a turn. `break off`: it fails in the middle of its answer. */
type ModelStep = 'wait' | 'say' | 'fail' | 'break off'

interface Sdk {
  /** Runs one turn, and returns the messages to keep. */
  readonly turn: (kept: readonly unknown[], text: string, steps: readonly ModelStep[]) => Promise<readonly unknown[]>
}

const FAILURE = 'the provider is overloaded'
const usage = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
}

/** The AI SDK, streamed: only a stream can break off. */
function aiSdk({ tools: neutral }: AgentTasks, isStreamed: boolean): Sdk {
  const tools = toAiSdkTools(neutral)
  const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'wait_for_async_tasks', input: '{}' } as const
  const reason = (unified: 'stop' | 'tool-calls') => ({ unified, raw: undefined })
  return {
    turn: async (kept, text, steps) => {
      const left = [...steps]
      const next = (): ModelStep => {
        const step = left.shift() ?? 'say'
        if (step === 'fail') throw new Error(FAILURE)
        return step
      }
      const model = new MockLanguageModelV4({
        doGenerate: async () =>
          next() === 'wait'
            ? { content: [call], finishReason: reason('tool-calls'), usage, warnings: [] }
            : { content: [{ type: 'text', text: 'done' }], finishReason: reason('stop'), usage, warnings: [] },
        doStream: async () => {
          const step = next()
          const begun = [
            { type: 'text-start', id: 't' } as const,
            { type: 'text-delta', id: 't', delta: 'do' } as const,
          ]
          if (step === 'break off') {
            return {
              stream: convertArrayToReadableStream([...begun, { type: 'error', error: new Error(FAILURE) } as const]),
            }
          }
          return step === 'wait'
            ? {
                stream: convertArrayToReadableStream([
                  call,
                  { type: 'finish', usage, finishReason: reason('tool-calls') } as const,
                ]),
              }
            : {
                stream: convertArrayToReadableStream([
                  ...begun,
                  { type: 'text-end', id: 't' } as const,
                  { type: 'finish', usage, finishReason: reason('stop') } as const,
                ]),
              }
        },
      })
      const messages = [...kept, { role: 'user', content: text }] as ModelMessage[]
      const options = { model, tools, messages, stopWhen: isStepCount(5), maxRetries: 0 }
      if (!isStreamed) return [...messages, ...(await generateText(options)).responseMessages]
      let error: unknown
      const result = streamText({ ...options, onError: (event) => void (error = event.error) })
      await result.consumeStream()
      if (error !== undefined) throw error as Error
      return [...messages, ...(await result.responseMessages)]
    },
  }
}

function openaiAgents({ tools }: AgentTasks, isStreamed: boolean): Sdk {
  const steps = {
    wait: [functionCall('wait_for_async_tasks', {}, { callId: 'c1' })],
    say: [assistantMessage('done')],
  }
  return {
    turn: async (kept, text, given) => {
      const model = new ScriptedModel(
        given.map((step) => {
          if (step === 'fail') return modelError(new Error(FAILURE))
          if (step !== 'break off') return steps[step]
          return modelStream(
            (function* () {
              yield { type: 'output_text_delta', delta: 'do' } as never
              throw new Error(FAILURE)
            })(),
          )
        }),
      )
      const agent = new Agent({ name: 'Assistant', instructions: 'Go on.', model, tools: toOpenAIAgentsTools(tools) })
      const runner = new Runner({ tracingDisabled: true })
      const input = [...(kept as AgentInputItem[]), user(text)]
      if (!isStreamed) return (await runner.run(agent, input)).history
      const result = await runner.run(agent, input, { stream: true })
      await result.completed
      return result.history
    },
  }
}

function langChain({ tools }: AgentTasks, isStreamed: boolean): Sdk {
  return {
    turn: async (kept, text, steps) => {
      let model = fakeModel()
      for (const step of steps) {
        if (step === 'wait') model = model.respondWithTools([{ id: 'c1', name: 'wait_for_async_tasks', args: {} }])
        else model = model.respond(step === 'say' ? new AIMessage('done') : new Error(FAILURE))
      }
      const agent = createAgent({ model, tools: toLangChainTools(tools) })
      const input = { messages: [...(kept as BaseMessage[]), new HumanMessage(text)] }
      if (!isStreamed) return (await agent.invoke(input)).messages
      let messages: readonly BaseMessage[] = []
      for await (const state of await agent.stream(input, { streamMode: 'values' })) messages = state.messages
      return messages
    },
  }
}

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe.each([
  ['the AI SDK', aiSdk],
  ['OpenAI Agents', openaiAgents],
  ['LangChain', langChain],
] as const)('with %s', (_sdk, create) => {
  it.each([
    ['before the tool call', ['fail'], false],
    ['after the result of the tool', ['wait', 'fail'], false],
    ['after the result of the tool, streamed', ['wait', 'fail'], true],
    ['in the middle of a streamed answer', ['wait', 'break off'], true],
    ['after the final answer', ['wait', 'say'], false],
  ] as const)('H6: a turn that fails %s delivers each result once', async (_point, steps, isStreamed) => {
    const clock = createManualClock()
    let kept: readonly unknown[] = []
    const scripts: (readonly ModelStep[])[] = [steps]
    const turns = createTurns(async (text) => {
      const script = scripts.shift()
      const messages = await sdk.turn(kept, text, script ?? ['say'])
      if (script !== undefined) throw new Error('the messages could not be saved')
      kept = messages
    })
    const tasks = createAgentTasks({
      clock,
      onError: vi.fn(),
      subagents: { echo: ({ goal }) => `echo ${goal}` },
      isAgentBusy: turns.isBusy$,
      triggerAgentTurn: turns.triggerAgentTurn,
    })
    onTestFinished(() => tasks.dispose())
    const sdk = create(tasks, isStreamed)
    // The turn begins before the result starts one.
    const turn = turns.take('What is new?').then(
      () => 'accepted',
      () => 'failed',
    )
    await tasks.tools.task.execute({ subagent_name: 'echo', goal_prompt: 'one', async: true })
    expect(await turn).toBe('failed')
    for (let next = 0; next < 3; next += 1) {
      await tick()
      clock.advance(2000)
      await tick()
      await turns.take('')
    }
    const told = JSON.stringify(kept).split('echo one').length - 1
    expect(told).toBe(1)
    expect(tasks.manager.getAllTasks()).toMatchObject([{ delivery: 'delivered' }])
  })
})
