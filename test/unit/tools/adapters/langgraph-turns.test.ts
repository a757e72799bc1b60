/** Turns of a LangGraph agent with a checkpointer. LangGraph keeps its current run in an `AsyncLocalStorage`. */
import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessage, HumanMessage, type BaseMessage } from '@langchain/core/messages'
import { AsyncLocalStorageProviderSingleton } from '@langchain/core/singletons'
import { fakeModel } from '@langchain/core/testing'
import { tool } from '@langchain/core/tools'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { toLangChainTools } from '../../../../src/tools/adapters/langchain.js'
import { createAgentTasks } from '../../../../src/index.js'
import { memoryStore } from '../../../../src/store/index.js'
import { deferred } from '../tool-host.js'
import { createTurns } from '../../../../src/parts.js'

// LangGraph's declarations augment zod's types for the whole program, so tsc must not follow these imports. The used part is typed here.
const packages = ['langchain', '@langchain/langgraph'] as const
const { createAgent } = (await import(packages[0])) as {
  createAgent: (options: { model: BaseChatModel; tools: readonly unknown[]; checkpointer?: object }) => {
    invoke(input: { messages: BaseMessage[] }, config: object): Promise<{ readonly messages: readonly BaseMessage[] }>
    getState(config: object): Promise<{ readonly values: { readonly messages: readonly BaseMessage[] } }>
  }
}
const { MemorySaver } = (await import(packages[1])) as { MemorySaver: new () => object }

const ofThread = (thread_id: string) => ({ configurable: { thread_id } })

/** A host whose agent launches the subagent `researcher`, another LangGraph agent, in its first turn. */
function setUp(given: object, secondStep: (signal: AbortSignal) => Promise<string>) {
  const gate = deferred<undefined>()
  const runs: unknown[] = []
  const errors: unknown[] = []
  const tasks = createAgentTasks({
    ...given,
    autoTrigger: { retry: { initialMs: 1, maxMs: 1 } },
    onError: (error) => errors.push(error),
    subagents: {
      researcher: async () => {
        runs.push(AsyncLocalStorageProviderSingleton.getRunnableConfig())
        await gate.promise
        const own = createAgent({ model: fakeModel().respond(new AIMessage('forty-two')), tools: [] })
        const { messages } = await own.invoke({ messages: [new HumanMessage('look')] }, {})
        return messages.at(-1)?.text ?? ''
      },
    },
  })
  onTestFinished(() => tasks.dispose())
  const launch = { subagent_name: 'researcher', goal_prompt: 'look', async: true }
  const tools = [
    ...toLangChainTools({ task: tasks.tools.task }),
    tool((_input, { signal }: { signal?: AbortSignal }) => secondStep(signal ?? new AbortController().signal), {
      name: 'second_step',
      description: 'Works.',
      schema: z.object({}),
    }),
  ]
  const model = fakeModel()
    .respondWithTools([{ id: 'c1', name: 'task', args: launch }])
    .respondWithTools([{ id: 'c2', name: 'second_step', args: {} }])
    .respond(new AIMessage('read it'))
    .respond(new AIMessage('read it again'))
  const agent = createAgent({ model, tools, checkpointer: new MemorySaver() })
  const turns = createTurns(async (text, signal) => {
    const { messages } = await agent.invoke(
      { messages: [new HumanMessage(text)] },
      { ...ofThread('main'), signal, recursionLimit: 10 },
    )
    return messages.at(-1)?.text ?? ''
  })
  onTestFinished(() => turns.dispose())
  tasks.setupAsyncTaskAutoTrigger(turns.isBusy$, turns.triggerAgentTurn)
  const thread = async (): Promise<string[]> =>
    (await agent.getState(ofThread('main'))).values.messages.map((message) => message.text)
  return { tasks, turns, gate, runs, errors, thread }
}

it.each([
  ['without a store', () => ({})],
  ['with a store', () => ({ store: memoryStore() })],
])('H5: a LangGraph agent gets a result in a turn of its own after the turn that launched it, %s', async (_, given) => {
  const { tasks, turns, gate, runs, errors, thread } = setUp(given(), () => Promise.resolve('worked'))
  await turns.take('start')
  gate.resolve(undefined)
  await tasks.manager.onIdle()
  // The run is not a part of the LangGraph run that launched it, so that its own agent keeps its own state.
  expect(runs).toEqual([undefined])
  expect(errors).toEqual([])
  const texts = await thread()
  expect(texts.filter((text) => text.includes('forty-two'))).toHaveLength(1)
  expect(texts.at(-1)).toBe('read it again')
})

it.each([
  ['without a store', () => ({})],
  ['with a store', () => ({ store: memoryStore() })],
])(
  'H5: a result reaches a LangGraph agent after its user has aborted the turn that launched it, %s',
  async (_, given) => {
    const controller = new AbortController()
    const working = deferred<undefined>()
    const { tasks, turns, gate, errors, thread } = setUp(given(), (signal) => {
      working.resolve(undefined)
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    })
    const turn = turns.take('start', { signal: controller.signal })
    turn.catch(() => undefined)
    await working.promise
    controller.abort(new Error('the user pressed Escape'))
    await expect(turn).rejects.toThrow()
    gate.resolve(undefined)
    await tasks.manager.onIdle()
    expect(errors).toEqual([])
    expect((await thread()).filter((text) => text.includes('forty-two'))).toHaveLength(1)
  },
)
