/** `tasks.background`: what it refuses, how calls move to the background, and what is left of them. */
import { tool as agentsTool } from '@openai/agents'
import { StructuredTool, tool as langChainTool } from '@langchain/core/tools'
import { dynamicTool, jsonSchema, tool as aiTool } from 'ai'
import { ToolMessage } from '@langchain/core/messages'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { createAgentTasks } from '../../../../src/index.js'
import { memoryStore } from '../../../../src/store/index.js'
import { defineTool } from '../../../../src/tools/tool.js'
import { nothingLeft, settle, setUp } from './background-host.js'
import type { McpTool, BackgroundTask } from '../../../../src/host/background/background-types.js'
import { ownerOfRun } from '../../../../src/parts.js'

const options = { toolCallId: 'c1', messages: [], context: {} }
const parameters = z.object({ query: z.string() })
const choice = { mode: 'choice', name: 'search' } as const
const always = { mode: 'always', name: 'search' } as const

type Host = ReturnType<typeof setUp>

/** A tool of the AI SDK whose runs the test ends. */
const searchOf = ({ work }: Host) =>
  aiTool({ inputSchema: parameters, execute: (input, { abortSignal }) => work(input, abortSignal) })

const neutralOf = ({ work }: Host) =>
  defineTool({
    name: 'search',
    description: 'Searches.',
    inputSchema: z.strictObject({ query: z.string() }),
    run: async (input, context) => {
      context.onUpdate?.({ text: 'half\n', cursor: 5 })
      const text = String(await work(input, context.signal))
      return { llmContent: text, returnDisplay: text }
    },
  })

const mcpOf = ({ work }: Host, more: object = {}): McpTool => ({
  name: 'search',
  inputSchema: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  call: async (args, given) => {
    given?.onprogress?.({ progress: 1, total: 2, message: 'half' })
    const text = String(await work(args, given?.signal))
    return { content: [{ type: 'text', text }] }
  },
  ...more,
})

describe('background()', () => {
  it('F21: returns the same tool with the mode never, and does not change the tool that it wraps', () => {
    const host = setUp()
    const search = mcpOf(host)
    const before = { ...search }
    expect(host.tasks.background(search, { mode: 'never' })).toBe(search)
    expect(host.tasks.background(search, { mode: 'choice' })).not.toBe(search)
    expect({ ...search }).toEqual(before)
  })

  it.each([
    ['zod', 'tool.inputSchema', aiTool({ inputSchema: z.object({ run_in_background: z.string() }), execute: () => 1 })],
    [
      'jsonSchema()',
      'tool.inputSchema',
      dynamicTool({
        inputSchema: jsonSchema({ type: 'object', properties: { run_in_background: {} } }),
        execute: () => Promise.resolve(1),
      }),
    ],
    [
      'a schema that is made when it is needed',
      'tool.inputSchema',
      aiTool({ inputSchema: () => z.object({ run_in_background: z.string() }) as never, execute: () => 1 }),
    ],
    [
      'OpenAI Agents',
      'tool.parameters',
      agentsTool({
        name: 'x',
        description: 'd',
        parameters: z.object({ run_in_background: z.null() }),
        execute: () => '',
      }),
    ],
    [
      'LangChain',
      'tool.schema',
      langChainTool(() => '', { name: 'x', schema: z.object({ run_in_background: z.string(), b: z.string() }) }),
    ],
    [
      'this package',
      'tool.inputSchema',
      defineTool({
        name: 'x',
        description: 'd',
        inputSchema: z.object({ run_in_background: z.string() }),
        run: () => ({ llmContent: '', returnDisplay: '' }),
      }),
    ],
  ])('F21: refuses a tool that has the parameter, by name: %s', (_kind, field, tool) => {
    const { tasks } = setUp()
    expect(() => tasks.background(tool, choice)).toThrow(`${field}.run_in_background: got `)
    expect(() => tasks.background(tool, always)).not.toThrow()
  })

  it('F21: refuses wrong options, and what is no tool, by the name of the field', () => {
    const host = setUp()
    const { tasks } = host
    const search = searchOf(host)
    const background = (tool: unknown, given: object): unknown => tasks.background(tool, given as typeof choice)
    expect(() => background(search, { mode: 'often', name: 'a' })).toThrow(
      `options.mode: got "often", expected 'never', 'choice' or 'always'.`,
    )
    expect(() => background(search, {})).toThrow('options.mode: got undefined')
    expect(() => background(search, { mode: 'choice' })).toThrow(
      'options.name: got undefined, expected a name for the tasks, because the tool has no name.',
    )
    expect(() => background(search, { ...choice, afterSecond: 1 })).toThrow('options.afterSecond')
    expect(() => background(search, { ...choice, afterSeconds: 0 })).toThrow(
      'Setting afterSeconds: got 0, expected a number of seconds > 0, or -1 for no limit.',
    )
    for (const mode of ['always', 'never']) {
      expect(() => background(search, { mode, name: 'a', afterSeconds: 1 })).toThrow(
        `options.afterSeconds: got 1, expected no value, because only the mode 'choice' uses it (the mode is '${mode}').`,
      )
    }
    for (const wrong of [
      undefined,
      'search',
      {},
      { inputSchema: parameters },
      { invoke: () => 1, schema: parameters },
    ]) {
      expect(() => background(wrong, choice)).toThrow(/^tool: got .*, expected a tool of the AI SDK/)
    }
    for (const schema of [undefined, z.string(), { type: 'array' }, jsonSchema({ type: 'string' })]) {
      expect(() => background({ inputSchema: schema, execute: () => 1 }, choice)).toThrow(
        /^tool\.inputSchema: got .*, expected an object of zod 4, or the JSON Schema of an object\.$/,
      )
    }
  })

  it('F21: keeps the rest of a tool: its class, its getters and its fields', () => {
    const host = setUp()
    const lc = langChainTool(() => '', { name: 'x', description: 'd', schema: parameters, metadata: { a: 1 } })
    const wrapped = host.tasks.background(lc, { mode: 'choice' })
    expect(wrapped).toBeInstanceOf(StructuredTool)
    expect([wrapped.name, wrapped.description, wrapped.metadata]).toEqual(['x', 'd', { a: 1 }])
    let description = 'first'
    const neutral = Object.defineProperty(neutralOf(host), 'description', { get: () => description, enumerable: true })
    const listed = host.tasks.background(neutral, { mode: 'choice' })
    description = 'second'
    expect(listed.description).toBe('second')
    expect(listed.describe({ query: 'a' })).toBe('search')
    expect(Object.keys(listed.inputSchema.shape)).toEqual(['query', 'run_in_background'])
  })
})

describe('a call in the foreground', () => {
  it('F21: returns and throws what the tool does, itself', async () => {
    const host = setUp()
    const search = host.tasks.background(searchOf(host), choice)
    const result = { found: new Date(0) }
    const error = Object.assign(new Error('no index'), { code: 'ENOENT' })
    const [good, bad] = [search.execute({ query: 'a' }, options), search.execute({ query: 'b' }, options)]
    await settle()
    host.runs[0]?.resolve(result)
    host.runs[1]?.reject(error)
    expect(await good).toBe(result)
    await expect(bad).rejects.toBe(error)
    expect(host.delivered()).toBe('')
    expect(host.left()).toEqual(nothingLeft)
    expect(host.manager.getAllTasks().map(({ status }) => status)).toEqual(['completed', 'failed'])
  })

  it('F21: moves to the background after afterSeconds, and its result is owed', async () => {
    const host = setUp({ backgroundAfterSeconds: 60 })
    const search = host.tasks.background(searchOf(host), { ...choice, afterSeconds: 5 })
    const pending = search.execute({ query: 'a' }, options)
    await settle()
    const { id } = host.last()
    host.clock.advance(4999)
    await settle()
    expect(host.last().isForeground).toBe(true)
    host.clock.advance(1)
    const task = (await pending) as BackgroundTask
    expect(task).toMatchObject({ task_id: id, status: 'running' })
    expect(task.how_to_wait).toMatch(/^Task \S+ has not ended within 5 s: it continues in the background\. .*delivered/)
    expect(host.left()).toEqual({ ...nothingLeft, task: 1 })
    host.runs[0]?.resolve('found it')
    await settle()
    expect(host.delivered()).toContain('found it')
    expect(host.delivered()).toBe('')
  })

  it('F21: takes the time from the host by default, and -1 is no limit', async () => {
    const host = setUp({ backgroundAfterSeconds: 5 })
    const [search, patient] = [choice, { ...choice, afterSeconds: -1 }].map((given) =>
      host.tasks.background(searchOf(host), given),
    )
    const pending = search!.execute({ query: 'a' }, options)
    const waiting = patient!.execute({ query: 'b' }, options)
    await settle()
    host.clock.advance(5000)
    expect(await pending).toMatchObject({ status: 'running' })
    host.clock.advance(60_000)
    host.runs[1]?.resolve('b')
    expect(await waiting).toBe('b')
  })

  it('F21: returns a reference when a person moves its task to the background', async () => {
    const host = setUp()
    const pending = host.tasks.background(searchOf(host), choice).execute({ query: 'a' }, options)
    await settle()
    expect(host.tasks.detach(host.last().id)).toEqual({ detached: true })
    expect(await pending).toMatchObject({ task_id: host.last().id })
    host.runs[0]?.resolve('found it')
    await settle()
    expect(host.delivered()).toContain('found it')
  })

  it('F21: cancels its task when it is aborted, and throws the reason', async () => {
    const host = setUp()
    const abort = new AbortController()
    const search = host.tasks.background(searchOf(host), choice)
    const pending = search.execute({ query: 'a' }, { ...options, abortSignal: abort.signal })
    await settle()
    const reason = new Error('the user left')
    abort.abort(reason)
    await expect(pending).rejects.toBe(reason)
    expect(host.last()).toMatchObject({ status: 'cancelled', cancelReason: 'the user left' })
    const again = search.execute({ query: 'a' }, { ...options, abortSignal: abort.signal })
    await expect(again).rejects.toBe(reason)
    expect(host.manager.getAllTasks()).toHaveLength(1)
    expect(host.left()).toEqual(nothingLeft)
  })

  it('F21: that is aborted leaves its task in the background, where the host keeps them', async () => {
    const host = setUp({ onForegroundAbort: 'keep' })
    const abort = new AbortController()
    const search = host.tasks.background(searchOf(host), choice)
    const pending = search.execute({ query: 'a' }, { ...options, abortSignal: abort.signal })
    await settle()
    abort.abort()
    await expect(pending).rejects.toBe(abort.signal.reason)
    expect(host.last()).toMatchObject({ status: 'running' })
    host.runs[0]?.resolve('found it')
    await settle()
    expect(host.delivered()).toContain('found it')
  })

  it('F21: says that its task was cancelled, or has exceeded its deadline, and not what the tool threw then', async () => {
    const host = setUp({ settings: { 'task-default-timeout-seconds': 10 } })
    const search = host.tasks.background(searchOf(host), choice)
    const cancelled = search.execute({ query: 'a' }, options)
    await settle()
    host.manager.cancelTask(host.last().id, 'too slow')
    await expect(cancelled).rejects.toMatchObject({
      message: expect.stringContaining('too slow') as unknown,
    })
    const late = search.execute({ query: 'b' }, options)
    const caught = late.then(
      () => undefined,
      (error: unknown) => error as Error,
    )
    await settle()
    host.clock.advance(10_000)
    expect((await caught)?.message).toMatch(/timed out|deadline|10 ?s/i)
    expect(host.last().status).toBe('failed')
    expect(host.delivered()).toBe('')
    expect(host.left()).toEqual(nothingLeft)
  })

  it('F21: returns a reference to a task that someone else has completed', async () => {
    const host = setUp()
    const pending = host.tasks.background(searchOf(host), choice).execute({ query: 'a' }, options)
    await settle()
    host.manager.completeTask(host.last().id, { final_message: 'by hand' })
    const task = (await pending) as BackgroundTask
    expect(task.status).toBe('completed')
    expect(task.how_to_wait).toContain('by hand')
    expect(host.delivered()).toBe('')
    host.runs[0]?.resolve('')
  })

  it('F21: is refused at the limit of the foreground, and while tasks are paused', async () => {
    const host = setUp({ maxForegroundTasks: 1 })
    const search = host.tasks.background(mcpOf(host), { mode: 'choice' })
    const first = search.call({ query: 'a' })
    const second = await search.call({ query: 'b' })
    expect(second).toEqual({
      isError: true,
      content: [{ type: 'text', text: 'Max foreground tasks (1) reached' }],
    })
    host.tasks.pause()
    expect((await search.call({ query: 'c' })).content[0]?.text).toContain('are paused')
    host.runs[0]?.resolve('a')
    expect((await first).content[0]?.text).toBe('a')
    expect(host.runs).toHaveLength(1)
  })

  it('F21: ends when the host is disposed', async () => {
    const host = setUp()
    const pending = host.tasks.background(searchOf(host), choice).execute({ query: 'a' }, options)
    const ended = expect(pending).rejects.toThrow('disposed')
    await settle()
    await host.tasks.dispose()
    await ended
  })
})

describe('a call in the background', () => {
  it('F21: belongs to the owner and to the run that the options name', async () => {
    const host = setUp({ subagents: { lead: (_request, { signal }) => host.work('lead', signal) as Promise<string> } })
    const call = async (given: object) => {
      const task = (await host.tasks
        .background(searchOf(host), { ...always, ...given })
        .execute({ query: 'a' }, options)) as BackgroundTask
      return host.manager.getTask(task.task_id)
    }
    expect((await call({ owner: 'anna' }))?.owner).toBe('anna')
    const { id } = host.tasks.launch('lead', 'g')
    await settle()
    expect(await call({ parentId: id })).toMatchObject({ owner: ownerOfRun(id), parentId: id, subagentName: 'search' })
  })

  it('F21: waits for a slot where launches may, and its input counts for the limit of the queue in bytes', async () => {
    const host = setUp({ maxAsyncTasks: 1, whenFull: 'queue', queue: { maxBytes: 2000 } })
    const search = host.tasks.background(searchOf(host), always)
    await search.execute({ query: 'first' }, options)
    expect(await search.execute({ query: 'second' }, options)).toMatchObject({ status: 'queued' })
    await expect(search.execute({ query: 'x'.repeat(2000) }, options)).rejects.toThrow('no room for')
    expect(host.last().goalPrompt).toBe('{"query":"second"}')
    host.runs[0]?.resolve('1')
    await settle()
    expect(host.runs[1]?.input).toEqual({ query: 'second' })
  })

  it('F21: has a goal of limited length', async () => {
    const host = setUp()
    await host.tasks.background(searchOf(host), always).execute({ query: 'x'.repeat(100_000) }, options)
    expect(host.last().goalPrompt.length).toBeLessThan(2200)
    expect(host.runs).toHaveLength(1)
  })

  it.each([
    ['in the background', { run_in_background: true }],
    ['in the foreground', {}],
  ])('F21: is interrupted by a crash %s, is not run again, and that is owed', async (_where, more) => {
    const store = memoryStore()
    const before = setUp({ store })
    await before.tasks.recovered
    const search = before.tasks.background(mcpOf(before), { mode: 'choice' })
    const pending = search.call({ query: 'secret words', ...more })
    await settle()
    expect(before.runs).toHaveLength(1)
    const copy = store.copy()
    const { id } = before.last()
    const run = vi.fn(() => 'again')
    const retry = { attempts: 3, on: ['interrupted'], backoff: { initialMs: 0 } } as const
    const after = setUp({ store: copy, subagents: { search: { run, retry } } })
    const recovery = await after.tasks.recovered
    expect(recovery.interrupted).toEqual([id])
    expect(after.manager.getTask(id)).toMatchObject({
      status: 'failed',
      errorCode: 'INTERRUPTED',
      subagentName: 'search',
    })
    await settle()
    expect(run).not.toHaveBeenCalled()
    expect(after.delivered()).toContain(id)
    expect(after.delivered()).toBe('')
    before.runs[0]?.resolve('')
    await pending
  })

  it('F21: is refused when its launch cannot be stored, and the tool is not called', async () => {
    const store = memoryStore()
    const host = setUp({ store })
    await host.tasks.recovered
    vi.spyOn(store, 'write').mockImplementation(() => {
      throw new Error('disk full')
    })
    for (const given of [choice, always]) {
      const pending = host.tasks.background(searchOf(host), given).execute({ query: 'a' }, options)
      await expect(pending).rejects.toThrow('could not be stored')
    }
    expect(host.runs).toEqual([])
    vi.restoreAllMocks()
  })
})

describe('the parameter', () => {
  it('F21: that is neither true nor false is refused, and the tool is not called', async () => {
    const host = setUp()
    const search = host.tasks.background(mcpOf(host), { mode: 'choice' })
    expect(await search.call({ query: 'a', run_in_background: 'yes' })).toEqual({
      isError: true,
      content: [{ type: 'text', text: 'params.run_in_background: got "yes", expected true or false.' }],
    })
    const neutral = host.tasks.background(neutralOf(host), { mode: 'choice' })
    const result = await neutral.execute({ query: 'a', run_in_background: 1 as never })
    expect(result.error?.message).toContain('params.run_in_background')
    expect([host.runs, host.manager.getAllTasks()]).toEqual([[], []])
  })

  it('F21: false, null and none run in the foreground, and the tool does not see it', async () => {
    const host = setUp()
    const search = host.tasks.background(mcpOf(host), { mode: 'choice' })
    for (const chosen of [{ run_in_background: false }, { run_in_background: null }, {}]) {
      const pending = search.call({ query: 'a', ...chosen })
      await settle()
      expect(host.runs.at(-1)?.input).toEqual({ query: 'a' })
      host.runs.at(-1)?.resolve('a')
      expect((await pending).content).toEqual([{ type: 'text', text: 'a' }])
    }
  })

  it('F21: passes the validator of a schema of the AI SDK, which sees the rest', async () => {
    const host = setUp()
    const validate = vi.fn((value: unknown) =>
      (value as { n: unknown }).n === 1
        ? { success: true as const, value: { n: 2 } }
        : { success: false as const, error: new Error('n') },
    )
    const inputSchema = jsonSchema<{ n: number }>(
      { type: 'object', properties: { n: { type: 'number' } } },
      { validate },
    )
    const { inputSchema: given } = host.tasks.background(
      aiTool({ inputSchema, execute: () => 1, strict: true }),
      choice,
    )
    const schema = given as unknown as typeof inputSchema
    expect(schema.jsonSchema).toMatchObject({
      properties: { n: {}, run_in_background: { type: ['boolean', 'null'] } },
      required: ['run_in_background'],
    })
    expect(await schema.validate?.({ n: 1, run_in_background: true })).toEqual({
      success: true,
      value: { n: 2, run_in_background: true },
    })
    expect(validate).toHaveBeenLastCalledWith({ n: 1 })
    expect(await schema.validate?.({ n: 3 })).toMatchObject({ success: false })
  })

  it('F21: is nullable and required in a schema of zod for strict models alone', () => {
    const host = setUp()
    const strict = host.tasks.background(aiTool({ inputSchema: parameters, execute: () => 1, strict: true }), choice)
    const loose = host.tasks.background(aiTool({ inputSchema: parameters, execute: () => 1 }), choice)
    const parse = (tool: { inputSchema: unknown }, value: object) =>
      (tool.inputSchema as z.ZodType).safeParse({ query: 'a', ...value }).success
    expect([parse(strict, {}), parse(strict, { run_in_background: null })]).toEqual([false, true])
    expect([parse(loose, {}), parse(loose, { run_in_background: null })]).toEqual([true, false])
  })
})

describe('the output', () => {
  const reference = { task_id: 'a', status: 'running', how_to_wait: 'b' }

  it('F21: of a schema is its own, or the reference to a task', async () => {
    const { tasks } = setUp()
    const execute = () => ({ n: 1 })
    const zod = tasks.background(
      aiTool({ inputSchema: parameters, outputSchema: z.object({ n: z.number() }), execute }),
      choice,
    )
    const zodOutput = (zod as unknown as { outputSchema: z.ZodType }).outputSchema
    expect([{ n: 1 }, reference, { n: 'x' }].map((value) => zodOutput.safeParse(value).success)).toEqual([
      true,
      true,
      false,
    ])
    const validate = (value: unknown) =>
      (value as { n?: unknown }).n === 1
        ? { success: true as const, value: { n: 1 } }
        : { success: false as const, error: new Error('n') }
    const outputSchema = jsonSchema<{ n: number }>({ type: 'object', properties: {} }, { validate })
    const json = tasks.background(aiTool({ inputSchema: parameters, outputSchema, execute }), always)
    const jsonOutput = (json as unknown as { outputSchema: typeof outputSchema }).outputSchema
    expect(jsonOutput.jsonSchema).toMatchObject({
      type: 'object',
      anyOf: [{ type: 'object' }, { required: ['task_id', 'status', 'how_to_wait'] }],
    })
    expect([
      await jsonOutput.validate?.({ n: 1 }),
      await jsonOutput.validate?.(reference),
      await jsonOutput.validate?.({}),
    ]).toMatchObject([{ success: true, value: { n: 1 } }, { success: true, value: reference }, { success: false }])
  })

  it('F21: of a JSON Schema keeps its definitions where its references find them', () => {
    const host = setUp()
    const outputSchema = {
      $schema: 's',
      type: 'object',
      properties: { a: { $ref: '#/$defs/a' } },
      $defs: { a: { type: 'string' } },
    }
    const tool = host.tasks.background(mcpOf(host, { outputSchema }), { mode: 'choice' })
    expect(tool.outputSchema).toMatchObject({
      $schema: 's',
      type: 'object',
      $defs: { a: { type: 'string' } },
      anyOf: [{ properties: { a: { $ref: '#/$defs/a' } } }, {}],
    })
  })

  it('F21: is not validated as that of the tool when it is a reference, with OpenAI Agents', async () => {
    const host = setUp()
    const search = agentsTool({
      name: 'search',
      description: 'd',
      parameters,
      outputSchema: z.object({ n: z.number() }),
      execute: () => ({ n: 1 }),
    })
    const wrapped = host.tasks.background(search, { mode: 'choice' })
    expect(Object.getOwnPropertySymbols(search)).not.toEqual([])
    expect(Object.getOwnPropertySymbols(wrapped)).toEqual([])
    expect(wrapped.outputSchema).toMatchObject({ anyOf: [{ properties: { n: {} } }, {}] })
    expect(await wrapped.invoke({} as never, '{"query":"a","run_in_background":null}')).toEqual({ n: 1 })
  })

  it('F21: for the model is that of the tool, also in its task, and JSON for a reference', async () => {
    const host = setUp()
    const toModelOutput = vi.fn(({ output }: { output: unknown }) => ({
      type: 'text' as const,
      value: `shown: ${String(output)}`,
    }))
    const tool = aiTool({ ...searchOf(host), toModelOutput })
    const search = host.tasks.background(tool, choice)
    const task = await search.execute({ query: 'a', run_in_background: true }, options)
    const shown = (search as unknown as typeof tool).toModelOutput
    expect(shown?.({ toolCallId: 'c1', input: { query: 'a' }, output: task })).toEqual({ type: 'json', value: task })
    expect(shown?.({ toolCallId: 'c1', input: { query: 'a' }, output: 'x' })).toEqual({
      type: 'text',
      value: 'shown: x',
    })
    await settle()
    host.runs[0]?.resolve('pixels')
    await settle()
    expect(host.last().output).toEqual({ final_message: 'shown: pixels' })
    expect(toModelOutput).toHaveBeenLastCalledWith({ toolCallId: 'c1', input: { query: 'a' }, output: 'pixels' })
  })

  it('F21: of LangChain has its artifact, its content is the output of the task, and a message of an error fails it', async () => {
    const host = setUp()
    const search = langChainTool(async (input) => [await host.work(input, undefined), { raw: 1 }], {
      name: 'search',
      schema: parameters,
      responseFormat: 'content_and_artifact',
    })
    const wrapped = host.tasks.background(search, { mode: 'choice' })
    const call = (args: object) =>
      wrapped.invoke({ type: 'tool_call', id: 'c1', name: 'search', args } as never) as Promise<ToolMessage>
    const moved = await call({ query: 'a', run_in_background: true })
    expect(moved.artifact).toMatchObject({ task_id: host.last().id })
    expect(JSON.parse(moved.text)).toEqual(moved.artifact)
    await settle()
    host.runs[0]?.resolve('found it')
    await settle()
    expect(host.last().output).toEqual({ final_message: 'found it' })
    const pending = call({ query: 'b' })
    await settle()
    host.runs[1]?.resolve('here')
    expect(await pending).toMatchObject({ content: 'here', artifact: { raw: 1 } })

    const failing = langChainTool(
      (_input, config: { toolCall?: { id?: string } }) =>
        new ToolMessage({ status: 'error', content: 'no index', tool_call_id: config.toolCall?.id ?? '' }),
      { name: 'search', schema: parameters },
    )
    const failed = await host.tasks.background(failing, { mode: 'always' }).invoke({ query: 'a' })
    expect(failed).toContain(host.last().id)
    await settle()
    expect(host.last()).toMatchObject({ status: 'failed', error: 'no index' })
  })

  it('F21: of MCP that is an error fails the task, and is returned unchanged in the foreground', async () => {
    const host = setUp()
    const result = {
      isError: true,
      content: [
        { type: 'text', text: 'no' },
        { type: 'text', text: 'index' },
      ],
    }
    const search = host.tasks.background(mcpOf(host, { call: () => Promise.resolve(result) }), { mode: 'choice' })
    expect(await search.call({ query: 'a' })).toBe(result)
    await search.call({ query: 'a', run_in_background: true })
    await settle()
    expect(host.last()).toMatchObject({ status: 'failed', error: 'no\nindex' })
  })

  it('F21: of a tool of this package: a failed result fails the task, an aborted call is a result', async () => {
    const host = setUp()
    const search = host.tasks.background(neutralOf(host), { mode: 'choice' })
    const invalid = { query: 5 as never }
    expect((await search.execute(invalid)).error).toMatchObject({ type: 'parameter_validation' })
    const moved = await search.execute({ ...invalid, run_in_background: true })
    expect(moved.metadata).toEqual({ agentId: host.last().id, async: true, status: 'running' })
    await settle()
    expect(host.last()).toMatchObject({ status: 'failed', error: expect.stringContaining('params.query') as unknown })
    expect((await search.execute({ query: 'a' }, { signal: AbortSignal.abort() })).error?.type).toBe('aborted')
    expect(host.runs).toEqual([])
  })
})

describe('the progress', () => {
  async function* outputs(work: Host['work'], signal: AbortSignal | undefined, result?: string) {
    yield 'a third'
    yield { progress: 2, total: 3 }
    await work('more', signal)
    yield { found: 'all' }
    return result
  }

  it('F21: of the AI SDK is what its tool yields, and the last value is the result', async () => {
    const host = setUp()
    const reported: unknown[] = []
    host.manager.progress$.subscribe(({ progress }) => reported.push(progress))
    const search = aiTool({
      inputSchema: parameters,
      execute: (_input, { abortSignal }) => outputs(host.work, abortSignal),
    })
    const wrapped = host.tasks.background(search as never, choice) as {
      execute: (input: object, given: object) => Promise<unknown>
    }
    const pending = wrapped.execute({ query: 'a' }, options)
    await settle()
    expect(host.last().progress).toEqual({ progress: 2, total: 3 })
    host.runs[0]?.resolve('')
    expect(await pending).toEqual({ found: 'all' })
    expect(reported).toEqual([
      { progress: 1, message: '"a third"' },
      { progress: 2, total: 3 },
      { progress: 3, message: '{"found":"all"}' },
    ])
    expect(host.last().output).toEqual({ found: 'all' })
  })

  it('F21: of LangChain is what its tool yields, and the result is what it returns', async () => {
    const host = setUp()
    const search = langChainTool(
      (_input: unknown, config: { signal?: AbortSignal }) => outputs(host.work, config.signal, 'the end'),
      {
        name: 'search',
        schema: parameters,
      },
    )
    const pending = host.tasks.background(search, { mode: 'choice' }).invoke({ query: 'a' })
    await settle()
    expect(host.last().progress).toEqual({ progress: 2, total: 3 })
    host.runs[0]?.resolve('')
    expect(await pending).toBe('the end')
  })

  it('F21: ends with the cancellation: a tool that ignores its signal yields no more', async () => {
    const host = setUp()
    let isClosed = false
    async function* endless() {
      try {
        for (;;) yield await host.work('more', undefined)
      } finally {
        isClosed = true
      }
    }
    const search = host.tasks.background(
      aiTool({ inputSchema: parameters, execute: () => endless() }) as never,
      always,
    ) as {
      execute: (input: object, given: object) => Promise<unknown>
    }
    await search.execute({ query: 'a' }, options)
    await settle()
    host.manager.cancelTask(host.last().id)
    host.runs[0]?.resolve('one more')
    await settle()
    expect([isClosed, host.runs.length]).toEqual([true, 1])
  })

  it('F21: of MCP is what the server reports, to the call as well', async () => {
    const host = setUp()
    const onprogress = vi.fn()
    const pending = host.tasks.background(mcpOf(host), { mode: 'choice' }).call({ query: 'a' }, { onprogress })
    await settle()
    expect(host.last().progress).toEqual({ progress: 1, total: 2, message: 'half' })
    expect(onprogress).toHaveBeenCalledWith({ progress: 1, total: 2, message: 'half' })
    host.runs[0]?.resolve('')
    await pending
  })

  it('F21: of a tool of this package is its output, which a call in the foreground passes on', async () => {
    const host = setUp()
    const onUpdate = vi.fn()
    const search = host.tasks.background(neutralOf(host), { mode: 'choice' })
    const pending = search.execute({ query: 'a' }, { onUpdate })
    await settle()
    expect(onUpdate).toHaveBeenCalledWith({ text: 'half\n', cursor: 5 })
    host.runs[0]?.resolve('found it')
    expect((await pending).llmContent).toBe('found it')
    expect(host.manager.readOutput(host.last().id)?.text).toBe('half\n')
  })
})

it('F21: OpenAI Agents: a text that is not JSON reaches the tool, which says what is wrong with it', async () => {
  const { tasks } = setUp()
  const search = agentsTool({ name: 'search', description: 'd', parameters, execute: () => 'found' })
  const wrapped = tasks.background(search, { mode: 'choice' })
  for (const text of ['{"query":', '{"run_in_background":null}']) {
    const own = await search.invoke({} as never, text)
    expect(own).toContain('error')
    expect(await wrapped.invoke({} as never, text)).toBe(own)
  }
})

it('F21: passes the hidden fields of a call of OpenAI Agents on, with the signal of its task', async () => {
  const { tasks, last } = setUp()
  const invoke = vi.fn((_context: unknown, _input: string, _details?: object) => Promise.resolve('found'))
  const search = { ...agentsTool({ name: 'search', description: 'd', parameters, execute: () => '' }), invoke }
  const key = Symbol('hidden')
  const details = Object.defineProperty({ signal: new AbortController().signal }, key, { value: 5 })
  await tasks.background(search, { mode: 'choice' }).invoke({}, '{"query":"a"}', details)
  const [, text, given] = invoke.mock.calls[0] ?? []
  expect(text).toBe('{"query":"a"}')
  expect((given as Record<symbol, unknown>)[key]).toBe(5)
  expect((given as { signal: unknown }).signal).not.toBe(details.signal)
  expect(last().output).toEqual({ final_message: 'found' })
})

it('F21: is refused by a host that was disposed', async () => {
  const tasks = createAgentTasks()
  const search = tasks.background(aiTool({ inputSchema: parameters, execute: () => 1 }), choice)
  await tasks.dispose()
  await expect(search.execute({ query: 'a' }, options)).rejects.toThrow('disposed')
  await expect(search.execute({ query: 'a', run_in_background: true }, options)).rejects.toThrow('disposed')
})
