import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from '@langchain/core/messages'
import { fakeModel } from '@langchain/core/testing'
import { convertToOpenAITool } from '@langchain/core/utils/function_calling'
import { expect, it, onTestFinished } from 'vitest'
import { toLangChainTools, type LangChainTool } from '../../../../src/tools/adapters/langchain.js'
import { createAgentTasks } from '../../../../src/host/agent-tasks.js'
import type { AdapterSubject, ShownResult } from './adapter-subject.js'
import { describeAdapter } from './adapter-suite.js'

// LangGraph's declarations augment zod's types for the whole program, and the server no longer compiles. So tsc must not follow
// this import; the used part is typed here.
const packageOfTheLoop = 'langchain'
const { createAgent } = (await import(packageOfTheLoop)) as {
  createAgent: (options: { model: BaseChatModel; tools: readonly LangChainTool[] }) => {
    invoke(
      input: { messages: BaseMessage[] },
      config: { signal?: AbortSignal },
    ): Promise<{ readonly messages: readonly BaseMessage[] }>
  }
}

const subject: AdapterSubject = {
  takesText: false,
  rejectsAborted: true,
  turn: async (neutral, calls, signal, options) => {
    const tools = toLangChainTools(neutral, options)
    const said = calls.map(({ id, name, args }) => ({ id, name, args: args as Record<string, unknown> }))
    const model = said.length > 0 ? fakeModel().respondWithTools(said) : fakeModel()
    const agent = createAgent({ model: model.respond(new AIMessage('done')), tools })
    const input = { messages: [new HumanMessage('go on')] }
    const { messages } = await agent.invoke(input, { ...(signal && { signal }) })
    // The conversion that the integrations of OpenAI and others use.
    const offered = tools.map((tool) => {
      const { name, description = '', parameters } = convertToOpenAITool(tool).function
      return { name, description, parameters }
    })
    const shown = messages
      .filter((message) => ToolMessage.isInstance(message))
      .map((message): ShownResult => {
        return { id: message.tool_call_id, text: message.text, isError: message.status === 'error' }
      })
    return { offered, shown, end: messages.at(-1)?.text ?? '' }
  },
}

describeAdapter('LangChain', subject)

function setUp() {
  const agent = createAgentTasks({
    subagents: { echo: ({ goal }) => Promise.resolve({ final_message: `echo ${goal}` }) },
  })
  onTestFinished(() => agent.dispose())
  const [task] = toLangChainTools(agent.tools)
  return task
}

it('gives the host of LangChain whole results and failures as artifacts', async () => {
  const task = setUp()
  const args = { subagent_name: 'echo', goal_prompt: 'one' }
  const good: unknown = await task.invoke({ type: 'tool_call', id: 'c1', name: 'task', args })
  expect(good).toMatchObject({ status: 'success', artifact: { metadata: { async: false } } })
  const bad: unknown = await task.invoke({ type: 'tool_call', id: 'c2', name: 'task', args: {} })
  expect(bad).toMatchObject({
    status: 'error',
    name: 'task',
    tool_call_id: 'c2',
    artifact: { error: { type: 'parameter_validation' } },
  })
})

it('returns text when a LangChain tool is invoked without a call id', async () => {
  const task = setUp()
  await expect(task.invoke({ subagent_name: 'echo', goal_prompt: 'one' })).resolves.toContain('echo one')
  await expect(task.invoke({ subagent_name: 'nobody', goal_prompt: 'one' })).resolves.toContain('Known: echo.')
})

it('F2: passes what a task writes to the writer of LangGraph', async () => {
  const agent = createAgentTasks({
    subagents: {
      writer: (_request, context) => {
        context.append('step 1\n')
        return { final_message: 'done' }
      },
    },
  })
  onTestFinished(() => agent.dispose())
  const [task] = toLangChainTools(agent.tools)
  const written: unknown[] = []
  const call = {
    type: 'tool_call' as const,
    id: 'c1',
    name: 'task',
    args: { subagent_name: 'writer', goal_prompt: 'go' },
  }
  const config: object = { writer: (chunk: unknown) => written.push(chunk) }
  await task.invoke(call, config)
  expect(written).toEqual([{ tool: 'task', toolCallId: 'c1', text: 'step 1\n', cursor: 7 }])
})
