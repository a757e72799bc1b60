/** What the results of SDK tools become in the background: failures, images, yielded values, and what an SDK does only for the result of a call. */
import type { BaseMessage } from '@langchain/core/messages'
import { AIMessage, HumanMessage } from '@langchain/core/messages'
import { fakeModel } from '@langchain/core/testing'
import { tool as langChainTool, type StructuredToolInterface } from '@langchain/core/tools'
import { Agent, Runner, tool as agentsTool } from '@openai/agents'
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents/testing'
import { tool as aiTool } from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { nothingLeft, settle, setUp } from './background-host.js'
import { waitFor } from '../../../support/wait-for.js'

// The names are variables, because the types of these packages are not needed, and slow to compile.
const packages = ['@langchain/langgraph', 'langchain'] as const
const { interrupt, Command, MemorySaver } = (await import(packages[0])) as {
  interrupt: (value: unknown) => unknown
  Command: new (fields: object) => object
  MemorySaver: new () => object
}
const { createAgent } = (await import(packages[1])) as {
  createAgent: (options: object) => {
    invoke(
      input: object,
      config?: object,
    ): Promise<{ readonly messages: readonly BaseMessage[]; readonly __interrupt__?: unknown }>
  }
}

type Host = ReturnType<typeof setUp>

const inputSchema = z.object({ query: z.string() })
const options = { toolCallId: 'c1', messages: [], context: {} }
const choice = { mode: 'choice', name: 'search' } as const
const always = { mode: 'always', name: 'search' } as const
const definition = { name: 'search', description: 'Searches.' }

type Shown = Awaited<ReturnType<NonNullable<ReturnType<typeof aiTool>['toModelOutput']>>>

/** A tool of the AI SDK whose results a model reads in this form. */
const toolShowing = (shown: Shown, output: unknown = 'raw') =>
  aiTool({ inputSchema, execute: () => Promise.resolve(output), toModelOutput: () => shown })

/** The parts have the types of each version of the SDK. */
const content = (...value: readonly object[]): Shown => ({ type: 'content', value }) as Shown

async function runInBackground(host: Host, shown: Shown, output?: unknown) {
  await host.tasks.background(toolShowing(shown, output), always).execute({ query: 'a' }, options)
  await settle()
  return host.last()
}

describe('a result of the AI SDK in the background', () => {
  it.each([
    ['error-text', { type: 'error-text', value: 'no index' }, 'no index'],
    ['error-json', { type: 'error-json', value: { code: 7 } }, '{"code":7}'],
    ['execution-denied', { type: 'execution-denied', reason: 'not today' }, 'The execution was denied: not today'],
    ['execution-denied without a reason', { type: 'execution-denied' }, 'The execution was denied.'],
  ] as const)('F21: fails its task when a model would read %s, and the agent reads why', async (_type, shown, text) => {
    const host = setUp()
    expect(await runInBackground(host, shown)).toMatchObject({ status: 'failed', error: text })
    expect(host.delivered()).toContain(JSON.stringify(text).slice(1, -1))
    expect(host.left()).toEqual(nothingLeft)
  })

  it('F21: is the text of its parts, and keeps images with their type for the host', async () => {
    const host = setUp()
    const texts = content({ type: 'text', text: 'one' }, { type: 'text', text: 'two' })
    expect((await runInBackground(host, texts)).output).toEqual({ final_message: 'one\ntwo' })
    const image = { type: 'image-data', data: 'aGVsbG8=', mediaType: 'image/png' }
    const mixed = content({ type: 'text', text: 'a picture' }, image)
    expect((await runInBackground(host, mixed)).output).toEqual({
      final_message: 'a picture\n[image/png]',
      model_output: mixed,
    })
    expect(host.delivered()).toContain('a picture\\n[image/png]')
  })

  it('F21: keeps a value that is not text', async () => {
    expect((await runInBackground(setUp(), { type: 'json', value: { n: 1 } })).output).toEqual({ n: 1 })
  })

  it('F21: of an MCP server is its text, and fails the task when the server says so', async () => {
    const host = setUp()
    // As the tools of @ai-sdk/mcp, which return what the server has answered.
    const shown = content({ type: 'text', text: 'no such file' })
    const answer = { content: [{ type: 'text', text: 'no such file' }] }
    expect((await runInBackground(host, shown, answer)).output).toEqual({ final_message: 'no such file' })
    const failed = { ...answer, isError: true }
    expect(await runInBackground(host, shown, failed)).toMatchObject({ status: 'failed', error: 'no such file' })
    const inPlace = host.tasks.background(toolShowing(shown, failed), choice)
    expect(await inPlace.execute({ query: 'a' }, options)).toBe(failed)
    expect(host.last().status).toBe('failed')
    // Only a result of MCP is read in this way.
    expect((await runInBackground(host, shown, { isError: true })).status).toBe('completed')
  })

  it('F21: is the last value that the tool yields, whatever it returns', async () => {
    const host = setUp()
    async function* execute() {
      yield await Promise.resolve('half')
      yield 'all'
      return 'ignored'
    }
    const search = host.tasks.background(aiTool({ inputSchema, execute: () => execute() }) as never, choice) as {
      execute: (input: object, given: object) => Promise<unknown>
    }
    expect(await search.execute({ query: 'a' }, options)).toBe('all')
    await search.execute({ query: 'a', run_in_background: true }, options)
    await settle()
    expect(host.last().output).toEqual({ final_message: 'all' })
  })

  it('F21: shows the reference to a task as JSON, also where Mastra passes the output alone', async () => {
    const host = setUp()
    const search = host.tasks.background(toolShowing({ type: 'text', value: 'shown' }), choice)
    const task = await search.execute({ query: 'a', run_in_background: true }, options)
    const { toModelOutput } = search as unknown as { toModelOutput: (given: unknown) => unknown }
    expect(toModelOutput(task)).toEqual({ type: 'json', value: task })
    expect(toModelOutput({ output: task })).toEqual({ type: 'json', value: task })
    expect(toModelOutput({ output: 'raw' })).toEqual({ type: 'text', value: 'shown' })
  })
})

describe('a tool of OpenAI Agents', () => {
  it('F21: with output guardrails is refused, which says why and what to do', () => {
    const { tasks } = setUp()
    const guard = { name: 'no secrets', run: () => Promise.resolve({ behavior: { type: 'allow' } as const }) }
    const given = { ...definition, parameters: inputSchema, execute: () => 'secret' }
    const search = agentsTool({ ...given, outputGuardrails: [guard] })
    for (const mode of ['choice', 'always'] as const) {
      expect(() => tasks.background(search, { mode })).toThrow(
        'tool.outputGuardrails: got "no secrets", expected none: a guardrail of search would check the id of its task ' +
          "instead of its result. Check the result in execute, or use the mode 'never'.",
      )
    }
    expect(tasks.background(search, { mode: 'never' })).toBe(search)
    const guarded = agentsTool({ ...given, inputGuardrails: [guard] })
    expect(() => tasks.background(guarded, { mode: 'choice' })).not.toThrow()
  })

  it('F21: keeps its time limit in the background, as the deadline of its task', async () => {
    const host = setUp()
    const search = agentsTool({
      ...definition,
      parameters: inputSchema,
      timeoutMs: 5000,
      execute: (input, _context, details) => host.work(input, details?.signal),
    })
    const model = new ScriptedModel([
      [functionCall('search', { query: 'a', run_in_background: true }, { callId: 'c1' })],
      [assistantMessage('done')],
    ])
    const agent = new Agent({
      name: 'Tester',
      model,
      tools: [host.tasks.background(search, { mode: 'choice' }) as never],
    })
    await new Runner({ tracingDisabled: true }).run(agent, 'go on')
    await settle()
    expect(host.last().status).toBe('running')
    host.clock.advance(5000)
    await settle()
    expect(host.last()).toMatchObject({ status: 'failed', errorCode: 'TASK_TIMEOUT' })
    expect(host.runs[0]?.signal.aborted).toBe(true)
    expect(host.left()).toEqual(nothingLeft)
  })

  it('F21: leaves its time limit to the SDK in the foreground, where its task has none', async () => {
    const host = setUp()
    const given = { ...definition, parameters: inputSchema, timeoutMs: 5000 }
    const search = agentsTool({ ...given, execute: (input, _context, details) => host.work(input, details?.signal) })
    const answer = host.tasks.background(search, { mode: 'choice' }).invoke({} as never, '{"query":"a"}')
    await settle()
    host.clock.advance(5000)
    await settle()
    expect(host.last().status).toBe('running')
    host.runs[0]?.resolve('found')
    expect(await answer).toBe('found')
  })

  it('F21: has the deadline of the host when that is earlier than its time limit', async () => {
    const host = setUp({ settings: { 'task-default-timeout-seconds': 2 } })
    const given = { ...definition, parameters: inputSchema, timeoutMs: 5000, execute: host.work }
    const search = agentsTool({ ...given, execute: (input, _context, details) => host.work(input, details?.signal) })
    await host.tasks.background(search, { mode: 'always' }).invoke({} as never, '{"query":"a"}')
    host.clock.advance(2000)
    await settle()
    expect(host.last().status).toBe('failed')
  })
})

describe('a tool of LangChain', () => {
  const toolOf = (work: () => unknown) =>
    langChainTool(work as () => Promise<string>, { ...definition, schema: inputSchema })

  /** One turn of an agent, whose model calls the tool once. */
  function turnOf(tool: StructuredToolInterface, args: object) {
    const model = fakeModel()
      .respondWithTools([{ id: 'c1', name: 'search', args: { query: 'a', ...args } }])
      .respond(new AIMessage('done'))
    const agent = createAgent({ model, tools: [tool], checkpointer: new MemorySaver() })
    return agent.invoke({ messages: [new HumanMessage('go on')] }, { configurable: { thread_id: 't' } })
  }

  it('F21: that calls interrupt() pauses its graph in the foreground, and fails in the background, which says what to do', async () => {
    const host = setUp()
    const asking = toolOf(() => interrupt({ question: 'really?' }))
    const search = host.tasks.background(asking, { mode: 'choice' })
    const paused = await turnOf(search as never, {})
    expect(paused.__interrupt__).toMatchObject([{ value: { question: 'really?' } }])
    expect((await turnOf(search as never, { run_in_background: true })).__interrupt__).toBeUndefined()
    await waitFor(() => expect(host.last().status).toBe('failed'))
    expect(host.last().error).toBe(
      'search has called interrupt(), which has no effect in the background, because its call has returned. ' +
        'Call search with run_in_background: false.',
    )
    expect(host.delivered()).toContain('has called interrupt()')
    await turnOf(host.tasks.background(asking, { mode: 'always' }) as never, {})
    await waitFor(() => expect(host.last().error).toMatch(/Wrap search with the mode 'never'\.$/))
  })

  it('F21: that returns a Command changes its graph in the foreground, and fails in the background', async () => {
    const host = setUp()
    const command = new Command({ update: { messages: [] } })
    const search = host.tasks.background(
      toolOf(() => Promise.resolve(command)),
      { mode: 'choice' },
    )
    expect(await search.invoke({ query: 'a' })).toBe(command)
    expect(host.last()).toMatchObject({ status: 'completed', output: {} })
    await search.invoke({ query: 'a', run_in_background: true })
    await settle()
    expect(host.last()).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('has returned a Command, which has no effect in the background') as unknown,
    })
  })

  it('F21: that calls interrupt() after its call has moved to the background fails, too', async () => {
    const host = setUp()
    const asking = toolOf(async () => {
      await host.work('', undefined)
      throw Object.assign(new Error('[{"value":1}]'), { is_bubble_up: true })
    })
    const pending = host.tasks.background(asking, { mode: 'choice', afterSeconds: 5 }).invoke({ query: 'a' })
    await settle()
    host.clock.advance(5000)
    expect(await pending).toContain('continues in the background')
    host.runs[0]?.resolve('')
    await settle()
    expect(host.last().error).toContain('search has called interrupt()')
  })

  it('F21: has the value that its generator returns as its result, and none when it returns none', async () => {
    const host = setUp()
    async function* yielding() {
      yield await Promise.resolve('half')
    }
    const silent = toolOf(() => yielding())
    const own = (await silent.invoke({ query: 'a' })) as unknown
    expect(await host.tasks.background(silent, { mode: 'choice' }).invoke({ query: 'a' })).toBe(own)
    expect(host.last().output).toEqual({})
  })
})
