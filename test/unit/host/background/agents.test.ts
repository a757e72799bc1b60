/** One tool of each SDK, called by a scripted model in the loop of its SDK, in the foreground and in the background. */
import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessage, HumanMessage, ToolMessage, type BaseMessage } from '@langchain/core/messages'
import { fakeModel } from '@langchain/core/testing'
import { tool as langChainTool } from '@langchain/core/tools'
import { Client } from '@modelcontextprotocol/client'
import { InMemoryTransport, McpServer } from '@modelcontextprotocol/server'
import { Agent, Runner, tool as agentsTool } from '@openai/agents'
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents/testing'
import { generateText, isStepCount, tool as aiTool } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { toOpenAIAgentsTools } from '../../../../src/tools/adapters/openai-agents.js'
import type { AgentTasks } from '../../../../src/index.js'
import { defineTool } from '../../../../src/tools/tool.js'
import { nothingLeft, settle, setUp } from './background-host.js'
import type { BackgroundMode, McpTool } from '../../../../src/host/background/background-types.js'

const packageOfTheLoop = 'langchain'
const { createAgent } = (await import(packageOfTheLoop)) as {
  createAgent: (options: { model: BaseChatModel; tools: readonly unknown[] }) => {
    invoke(input: { messages: BaseMessage[] }, config: object): Promise<{ readonly messages: readonly BaseMessage[] }>
  }
}

type Work = (input: unknown, signal: AbortSignal | undefined) => Promise<unknown>

interface Agent1 {
  readonly tasks: AgentTasks
  readonly work: Work
  readonly mode: BackgroundMode
}

/** A model that calls the tool `search` once, with these arguments. @returns what the model reads, and the schema that it was given */
type Turn = (
  agent: Agent1,
  args: Record<string, unknown>,
  signal?: AbortSignal,
) => Promise<{ shown: string; schema: object }>

const parameters = z.object({ query: z.string() })
const definition = { name: 'search', description: 'Searches.' }
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}

const aiSdk: Turn = async ({ tasks, work, mode }, args, abortSignal) => {
  const search = aiTool({
    description: definition.description,
    inputSchema: parameters,
    execute: async (input, options) => ({ found: await work(input, options.abortSignal) }),
  })
  const model = new MockLanguageModelV4({
    doGenerate: [
      {
        content: [{ type: 'tool-call', toolCallId: 'c1', toolName: 'search', input: JSON.stringify(args) }],
        finishReason: { unified: 'tool-calls', raw: undefined },
        usage,
        warnings: [],
      },
      {
        content: [{ type: 'text', text: 'done' }],
        finishReason: { unified: 'stop', raw: undefined },
        usage,
        warnings: [],
      },
    ],
  })
  await generateText({
    model,
    tools: { search: tasks.background(search, { mode, name: 'search' }) },
    prompt: 'go on',
    stopWhen: isStepCount(5),
    ...(abortSignal && { abortSignal }),
  })
  const offered = model.doGenerateCalls[0]?.tools?.[0] as { readonly inputSchema: object }
  const message = model.doGenerateCalls.at(-1)?.prompt.at(-1)
  const [part] = message?.role === 'tool' ? message.content : []
  const { value } = (part as { output: { value: unknown } }).output
  return { shown: typeof value === 'string' ? value : JSON.stringify(value), schema: offered.inputSchema }
}

async function runAgents(tool: unknown, args: Record<string, unknown>, signal?: AbortSignal) {
  const model = new ScriptedModel([[functionCall('search', args, { callId: 'c1' })], [assistantMessage('done')]])
  const agent = new Agent({ name: 'Tester', instructions: 'Go on.', model, tools: [tool as never] })
  await new Runner({ tracingDisabled: true }).run(agent, 'go on', { ...(signal && { signal }) })
  const input = model.lastCall?.request.input ?? []
  const item = (input as { type?: string; output?: { text: string } }[]).find(
    ({ type }) => type === 'function_call_result',
  )
  const [offered] = model.firstCall?.request.tools ?? []
  return { shown: item?.output?.text ?? '', schema: (offered as { parameters: object }).parameters }
}

const openaiAgents: Turn = ({ tasks, work, mode }, args, signal) => {
  const search = agentsTool({
    ...definition,
    parameters,
    errorFunction: null,
    execute: async (input, _context, details) => ({ found: await work(input, details?.signal) }),
  })
  // In strict mode a model sets every parameter.
  const all = mode === 'choice' ? { run_in_background: null, ...args } : args
  return runAgents(tasks.background(search, { mode }), all, signal)
}

const neutral: Turn = ({ tasks, work, mode }, args, signal) => {
  const search = defineTool({
    ...definition,
    inputSchema: z.strictObject({ query: z.string() }),
    run: async (input, context) => {
      const text = JSON.stringify({ found: await work(input, context.signal) })
      return { llmContent: text, returnDisplay: text }
    },
  })
  const [tool] = toOpenAIAgentsTools({ search: tasks.background(search, { mode }) })
  return runAgents(tool, args, signal)
}

const langChain: Turn = async ({ tasks, work, mode }, args, signal) => {
  const search = langChainTool(
    async (input, config: { signal?: AbortSignal }) => JSON.stringify({ found: await work(input, config.signal) }),
    {
      ...definition,
      schema: parameters,
    },
  )
  const tool = tasks.background(search, { mode })
  const model = fakeModel()
    .respondWithTools([{ id: 'c1', name: 'search', args }])
    .respond(new AIMessage('done'))
  const { messages } = await createAgent({ model, tools: [tool] }).invoke(
    { messages: [new HumanMessage('go on')] },
    { signal },
  )
  const shown = messages.find((message) => ToolMessage.isInstance(message))?.text ?? ''
  return { shown, schema: z.toJSONSchema(tool.schema) }
}

const mcp: Turn = async ({ tasks, work, mode }, args, signal) => {
  const server = new McpServer({ name: 'searcher', version: '1.0.0' })
  server.registerTool(
    'search',
    { description: definition.description, inputSchema: parameters, outputSchema: z.object({ found: z.unknown() }) },
    async (input, context) => {
      const structuredContent = { found: await work(input, context.mcpReq.signal) }
      return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent }
    },
  )
  const client = new Client({ name: 'host', version: '1.0.0' })
  const [here, there] = InMemoryTransport.createLinkedPair()
  await Promise.all([server.connect(there), client.connect(here)])
  onTestFinished(() => client.close())
  const [listed] = (await client.listTools()).tools
  const search: McpTool = {
    ...listed!,
    call: (given, options) => client.callTool({ name: 'search', arguments: given }, options),
  }
  const tool = tasks.background(search, { mode })
  const { content, isError } = await tool.call(args, { ...(signal && { signal }) })
  const text = content.map((block) => block.text).join('')
  if (isError === true && signal?.aborted === true) throw new Error(text)
  return { shown: text, schema: tool.inputSchema }
}

const SDKS: readonly (readonly [string, Turn])[] = [
  ['the AI SDK', aiSdk],
  ['OpenAI Agents', openaiAgents],
  ['LangChain', langChain],
  ['MCP', mcp],
  ['this package', neutral],
]

async function until(condition: () => boolean): Promise<void> {
  for (let turns = 0; !condition(); turns += 1) {
    if (turns > 1000) throw new Error('It did not happen.')
    await settle()
  }
}

describe.each(SDKS)('a tool of %s', (_name, turn) => {
  it('F21: returns its result in the foreground, where it is delivered, and owes it in the background', async () => {
    const { tasks, manager, work, runs, last, delivered, left } = setUp()
    const agent = { tasks, work, mode: 'choice' } as const
    const inPlace = turn(agent, { query: 'the parser' })
    await until(() => runs.length === 1)
    expect(last()).toMatchObject({
      subagentName: 'search',
      goalPrompt: '{"query":"the parser"}',
      status: 'running',
      owner: 'main',
      isForeground: true,
    })
    runs[0]?.resolve('parser.ts')
    expect(JSON.parse((await inPlace).shown)).toEqual({ found: 'parser.ts' })
    expect([delivered(), left()]).toEqual(['', nothingLeft])

    const { shown } = await turn(agent, { query: 'the lexer', run_in_background: true })
    const { id } = last()
    expect(shown).toContain(id)
    expect(shown).toContain('wait_for_async_tasks')
    await until(() => runs.length === 2)
    expect(runs[1]?.input).toEqual({ query: 'the lexer' })
    expect(manager.getTask(id)).not.toHaveProperty('isForeground')
    expect(left()).toEqual({ ...nothingLeft, task: 1 })
    runs[1]?.resolve('lexer.ts')
    await until(() => manager.getTask(id)?.status === 'completed')
    expect(delivered()).toMatch(/lexer\.ts/)
    expect([delivered(), left()]).toEqual(['', nothingLeft])
  })

  it('F21: has a parameter for the model to choose, and none where it always runs in the background', async () => {
    const { tasks, work, last } = setUp()
    const { schema } = await turn({ tasks, work, mode: 'choice' }, { query: 'a', run_in_background: true })
    expect(schema).toMatchObject({ properties: { query: {}, run_in_background: {} } })
    expect((schema as { required: unknown }).required).toEqual(
      turn === openaiAgents ? ['query', 'run_in_background'] : ['query'],
    )
    const always = await turn({ tasks, work, mode: 'always' }, { query: 'b' })
    expect(always.shown).toContain(last().id)
    expect(Object.keys((always.schema as { properties: object }).properties)).toEqual(['query'])
  })

  it('F21: fails its task in the background with the message of what it throws', async () => {
    const { tasks, manager, work, runs, last, delivered } = setUp()
    await turn({ tasks, work, mode: 'always' }, { query: 'a' })
    await until(() => runs.length === 1)
    runs[0]?.reject(new Error('no such index'))
    await until(() => last().status !== 'running')
    expect(last()).toMatchObject({ status: 'failed', error: expect.stringContaining('no such index') as unknown })
    expect(delivered()).toContain('no such index')
    expect(manager.getPendingNotifications()).toEqual([])
  })

  it('F21: is aborted when its task is cancelled, and when its call is', async () => {
    const { tasks, manager, work, runs, last, left } = setUp({ notifyCancelled: false })
    await turn({ tasks, work, mode: 'always' }, { query: 'a' })
    await until(() => runs.length === 1)
    manager.cancelTask(last().id, 'not needed')
    await until(() => runs[0]?.signal.aborted === true)
    const abort = new AbortController()
    const pending = turn({ tasks, work, mode: 'choice' }, { query: 'b' }, abort.signal)
    const ended = pending.then(
      ({ shown }) => shown,
      () => 'aborted',
    )
    await until(() => runs.length === 2)
    abort.abort()
    await ended
    await until(() => runs[1]?.signal.aborted === true)
    expect(last().status).toBe('cancelled')
    await settle()
    expect(left()).toEqual(nothingLeft)
  })

  it('F21: shows the model why a task was refused, and is not called', async () => {
    const { tasks, work, runs } = setUp({ maxAsyncTasks: 0 })
    const { shown } = await turn({ tasks, work, mode: 'always' }, { query: 'a' })
    expect(shown).toContain('Max async tasks (0) reached')
    expect(runs).toEqual([])
  })
})
