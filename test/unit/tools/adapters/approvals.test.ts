/** With each SDK: a turn that waits for a person's approval is suspended, so that no delivery breaks the pending call. */
import { Agent, Runner, tool as agentsTool, user, type AgentInputItem } from '@openai/agents'
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents/testing'
import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from '@langchain/core/messages'
import { fakeModel } from '@langchain/core/testing'
import { tool as langChainTool } from '@langchain/core/tools'
import { generateText, isStepCount, tool as aiTool, type ModelMessage } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { createAgentTasks } from '../../../../src/index.js'
import { createManualClock } from '../../../../src/testing/manual-clock.js'
import { createTurns, type AgentTurns } from '../../../../src/parts.js'

// As in langchain.test.ts: tsc must not follow these imports.
const packages = ['langchain', '@langchain/langgraph']
const [{ createAgent }, { interrupt, Command, MemorySaver }] = (await Promise.all(
  packages.map((name) => import(name)),
)) as [
  {
    createAgent: (options: { model: unknown; tools: readonly unknown[]; checkpointer: unknown }) => {
      invoke(input: unknown, config: object): Promise<{ messages: BaseMessage[]; __interrupt__?: readonly unknown[] }>
    }
  },
  {
    interrupt: (value: unknown) => unknown
    Command: new (options: { resume: unknown }) => unknown
    MemorySaver: new () => unknown
  },
]

interface Sdk {
  /** Takes a turn. Returns a function that continues it with a decision, if it waits for one. */
  readonly turn: (text: string) => Promise<((isApproved: boolean) => Promise<void>) | undefined>
  /** The messages so far, as JSON. */
  readonly messages: () => string
}

const usage = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
}

function aiSdk(pay: () => string): Sdk {
  const call = { type: 'tool-call', toolCallId: 'c1', toolName: 'pay', input: '{}' } as const
  const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      // A provider refuses a conversation in which a call has no result.
      const parts = prompt.flatMap(({ content }) =>
        typeof content === 'string' ? [] : (content as readonly { type: string }[]),
      )
      const calls = parts.filter(({ type }) => type === 'tool-call').length
      expect(parts.filter(({ type }) => type === 'tool-result')).toHaveLength(calls)
      return calls === 0
        ? { content: [call], finishReason: { unified: 'tool-calls', raw: undefined }, usage, warnings: [] }
        : {
            content: [{ type: 'text', text: 'done' }],
            finishReason: { unified: 'stop', raw: undefined },
            usage,
            warnings: [],
          }
    },
  })
  const tools = { pay: aiTool({ inputSchema: z.object({}), execute: pay }) }
  const toolApproval = { pay: 'user-approval' } as const
  let messages: ModelMessage[] = []
  const generate = async (): Promise<((isApproved: boolean) => Promise<void>) | undefined> => {
    const answer = await generateText({ model, tools, messages, toolApproval, stopWhen: isStepCount(5) })
    messages = [...messages, ...answer.responseMessages]
    const request = answer.content.find((part) => part.type === 'tool-approval-request')
    if (request === undefined) return undefined
    return async (approved) => {
      const { approvalId } = request
      messages = [...messages, { role: 'tool', content: [{ type: 'tool-approval-response', approvalId, approved }] }]
      await generate()
    }
  }
  return {
    turn: (text) => {
      messages = [...messages, { role: 'user', content: text }]
      return generate()
    },
    messages: () => JSON.stringify(messages),
  }
}

function openaiAgents(pay: () => string): Sdk {
  const model = new ScriptedModel([
    [functionCall('pay', {}, { callId: 'c1' })],
    [assistantMessage('paid')],
    [assistantMessage('done')],
  ])
  const tools = [
    agentsTool({ name: 'pay', description: 'Pays.', parameters: z.object({}), needsApproval: true, execute: pay }),
  ]
  const agent = new Agent({ name: 'Assistant', instructions: 'Go on.', model, tools })
  const runner = new Runner({ tracingDisabled: true })
  let history: AgentInputItem[] = []
  return {
    turn: async (text) => {
      const result = await runner.run(agent, [...history, user(text)])
      if (result.interruptions.length === 0) {
        history = result.history
        return undefined
      }
      return async (isApproved) => {
        for (const item of result.interruptions) {
          if (isApproved) result.state.approve(item)
          else result.state.reject(item)
        }
        history = (await runner.run(agent, result.state)).history
      }
    },
    messages: () => JSON.stringify(history),
  }
}

function langGraph(pay: () => string): Sdk {
  const model = fakeModel()
    .respondWithTools([{ id: 'c1', name: 'pay', args: {} }])
    .respond(new AIMessage('paid'))
    .respond(new AIMessage('done'))
  const tool = langChainTool(() => (interrupt('May I pay?') === true ? pay() : 'The person said no.'), {
    name: 'pay',
    description: 'Pays.',
    schema: z.object({}),
  })
  const agent = createAgent({ model, tools: [tool], checkpointer: new MemorySaver() })
  const config = { configurable: { thread_id: '1' } }
  let messages: BaseMessage[] = []
  const step = async (input: unknown): Promise<((isApproved: boolean) => Promise<void>) | undefined> => {
    const state = await agent.invoke(input, config)
    messages = state.messages
    if (state.__interrupt__ === undefined) return undefined
    return async (isApproved) => {
      await step(new Command({ resume: isApproved }))
    }
  }
  return {
    turn: (text) => step({ messages: [new HumanMessage(text)] }),
    messages: () => {
      const calls = messages.flatMap((message) => (AIMessage.isInstance(message) ? (message.tool_calls ?? []) : []))
      expect(messages.filter((message) => ToolMessage.isInstance(message))).toHaveLength(calls.length)
      return JSON.stringify(messages)
    },
  }
}

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A host whose first turn waits for an approval. */
function setUp(
  create: (pay: () => string) => Sdk,
  wait: (turns: AgentTurns<string>, decide: (isApproved: boolean) => Promise<void>) => Promise<string>,
) {
  const clock = createManualClock()
  const pay = vi.fn(() => 'It is paid.')
  const sdk = create(pay)
  const texts: string[] = []
  const turns: AgentTurns<string> = createTurns(async (text) => {
    texts.push(text)
    const decide = await sdk.turn(text)
    return decide === undefined ? 'done' : wait(turns, decide)
  })
  const tasks = createAgentTasks({
    clock,
    subagents: { echo: ({ goal }) => `echo ${goal}` },
    isAgentBusy: turns.isBusy$,
    triggerAgentTurn: turns.triggerAgentTurn,
    autoTrigger: { deliveryTimeoutMs: 10_000 },
  })
  onTestFinished(async () => {
    await turns.dispose()
    await tasks.dispose()
    expect(clock.pending).toBe(0)
  })
  const pass = async (ms = 0): Promise<void> => {
    await tick()
    clock.advance(ms)
    await tick()
    // The steps of the SDKs take macrotasks.
    for (let step = 0; step < 20; step += 1) await tick()
  }
  return { pay, sdk, texts, turns, tasks, pass }
}

describe.each([
  ['the AI SDK', aiSdk],
  ['OpenAI Agents', openaiAgents],
  ['LangGraph', langGraph],
] as const)('with %s', (_sdk, create) => {
  it.each([
    [true, 1],
    [false, 0],
  ])(
    'H6: a suspended turn goes on with the decision (approved: %s), and what ended meanwhile follows',
    async (isApproved, times) => {
      let decide: ((isApproved: boolean) => Promise<void>) | undefined
      const { pay, sdk, texts, turns, tasks, pass } = setUp(create, (running, next) => {
        running.suspend()
        decide = next
        return Promise.resolve('Please approve.')
      })
      expect(await turns.take('Pay the bill.')).toBe('Please approve.')
      await tasks.tools.task.execute({ subagent_name: 'echo', goal_prompt: 'one', async: true })
      await pass(60_000)
      expect(texts).toEqual(['Pay the bill.'])
      expect(pay).not.toHaveBeenCalled()

      await turns.resume(async () => {
        await decide?.(isApproved)
        return 'done'
      })
      expect(pay).toHaveBeenCalledTimes(times)
      await pass()
      await pass(1000)
      expect(texts).toHaveLength(2)
      await turns.dispose()
      expect(sdk.messages().split('echo one').length - 1).toBe(1)
    },
  )

  it('H6: a turn that decides inside respond needs no more', async () => {
    let answer: (isApproved: boolean) => void = () => undefined
    const approval = new Promise<boolean>((resolve) => (answer = resolve))
    const { pay, sdk, texts, turns, tasks, pass } = setUp(create, async (_running, decide) => {
      await decide(await approval)
      return 'done'
    })
    const turn = turns.take('Pay the bill.')
    await tasks.tools.task.execute({ subagent_name: 'echo', goal_prompt: 'one', async: true })
    await pass(60_000)
    expect(texts).toEqual(['Pay the bill.'])
    answer(true)
    expect(await turn).toBe('done')
    await pass()
    await pass(1000)
    await turns.dispose()
    expect(pay).toHaveBeenCalledTimes(1)
    expect(sdk.messages().split('echo one').length - 1).toBe(1)
  })
})
