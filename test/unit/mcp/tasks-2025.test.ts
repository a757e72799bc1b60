/** Tasks of protocol version 2025-11-25, with the client of the official SDK 1.x over HTTP. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CallToolResultSchema, ElicitRequestSchema, type ElicitResult } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { listenWith } from '../../../src/mcp/http.js'
import type { McpTool } from '../../../src/mcp/mcp-tool.js'
import type { AgentConfigInput } from '../../../src/protocol/agent-config.js'
import type { SubagentRunner } from '../../../src/tools/subagents.js'
import { until } from '../../support/lifelines.js'
import { controlled, overStdio } from './clients.js'
import { setUpApp } from './wire.js'

const CALL = { name: 'task', arguments: { subagent_name: 'slow', goal_prompt: 'g' } }
const AS_TASK = { task: { ttl: 60_000 } }

interface SetUp {
  readonly run?: SubagentRunner
  readonly config?: AgentConfigInput
  readonly tools?: Parameters<typeof setUpApp>[2]
  /** Answers questions. Without it the client does not declare elicitation. */
  readonly elicit?: (params: Readonly<Record<string, unknown>>) => Promise<ElicitResult>
}

async function setUp({ run, config = {}, tools, elicit }: SetUp = {}) {
  const subagent = controlled()
  const host = setUpApp({ slow: run ?? subagent.run }, { maxAsyncTasks: -1, ...config }, tools)
  const server = await listenWith(host.app, { port: 0 })
  onTestFinished(() => server.close())
  const connect = async (): Promise<Client> => {
    const client = new Client({ name: 'first', version: '1' }, { capabilities: elicit ? { elicitation: {} } : {} })
    if (elicit) client.setRequestHandler(ElicitRequestSchema, ({ params }) => elicit(params))
    const transport = new StreamableHTTPClientTransport(new URL(server.url))
    await client.connect(transport)
    onTestFinished(() => client.close())
    return client
  }
  const client = await connect()
  const create = async (by: Client = client, call: object = CALL, options: object = {}): Promise<string> => {
    const { task } = await by.request(
      { method: 'tools/call', params: { ...(call as typeof CALL), ...AS_TASK } },
      z.looseObject({ task: z.looseObject({ taskId: z.string() }) }),
      options,
    )
    return task.taskId
  }
  const { tasks } = client.experimental
  return { ...host, ...subagent, client, connect, create, tasks }
}

const textOf = ({ content }: { content: readonly { readonly type: string }[] }): string =>
  content.map((block) => ('text' in block ? String(block.text) : '')).join('\n')

const codeOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => 'no error',
    (error: unknown) => (error as { readonly code?: unknown }).code,
  )

describe('a client of 2025-11-25', () => {
  it('F12: finds the capabilities, and which tools may be called as tasks', async () => {
    const { client } = await setUp()
    expect(client.getServerCapabilities()).toMatchObject({
      tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
    })
    const { tools } = await client.listTools()
    const supporting = tools.filter(({ execution }) => execution?.taskSupport === 'optional').map(({ name }) => name)
    expect(supporting).toEqual(['task'])
  })

  it('F12: follows a call as a task to its result', async () => {
    const { client, end, manager } = await setUp()
    await client.listTools()
    const seen: string[] = []
    for await (const message of client.experimental.tasks.callToolStream(CALL, CallToolResultSchema, AS_TASK)) {
      if (message.type === 'taskCreated') {
        seen.push(message.task.status)
        end(message.task.taskId, 'all is well')
      } else if (message.type === 'result') seen.push(textOf(message.result))
      else if (message.type === 'error') throw message.error
    }
    expect(seen[0]).toBe('working')
    expect(seen.at(-1)).toContain('all is well')
    await until(() => manager.getPendingNotifications().length === 0)
  })

  it('is answered with a task, which says what to tell the model and how long it is kept', async () => {
    const { client } = await setUp()
    const result = await client.request(
      { method: 'tools/call', params: { ...CALL, ...AS_TASK } },
      z.looseObject({ task: z.looseObject({ taskId: z.string() }), _meta: z.looseObject({}) }),
    )
    expect(result.task).toEqual({
      taskId: expect.stringMatching(/^slow-[0-9a-f-]{36}$/) as unknown,
      status: 'working',
      createdAt: '2026-01-01T00:00:00.000Z',
      lastUpdatedAt: '2026-01-01T00:00:00.000Z',
      ttl: 900_000 + 3_600_000,
      pollInterval: 1000,
    })
    const text = `Task ${result.task.taskId} runs in the background.`
    expect(result._meta).toEqual({ 'io.modelcontextprotocol/model-immediate-response': text })
  })

  it('F12: tasks/result waits for the end, and names the task', async () => {
    const { create, tasks, end, clock } = await setUp()
    const id = await create()
    const result = tasks.getTaskResult(id, CallToolResultSchema)
    let isAnswered = false
    void result.finally(() => (isAnswered = true))
    expect(await tasks.getTask(id)).toMatchObject({ taskId: id, status: 'working' })
    clock.advance(5000)
    expect(isAnswered).toBe(false)
    end(id, 'done')
    const { _meta, ...rest } = await result
    expect(textOf(rest)).toContain('done')
    expect(rest).not.toHaveProperty('resultType')
    expect(_meta).toMatchObject({ 'io.modelcontextprotocol/related-task': { taskId: id } })
    expect(await tasks.getTask(id)).toMatchObject({ status: 'completed', ttl: 5000 + 3_600_000 })
    expect(textOf(await tasks.getTaskResult(id, CallToolResultSchema))).toContain('done')
  })

  it('F12: a result is delivered once: by its tasks/result, and by no later answer', async () => {
    const { client, create, tasks, end, manager } = await setUp()
    const id = await create()
    end(id, 'the only time')
    await until(() => manager.getTask(id)?.status === 'completed')
    const listed = await client.callTool({ name: 'list_instances', arguments: {} })
    expect(textOf(listed as never)).not.toContain('the only time')
    expect(textOf(await tasks.getTaskResult(id, CallToolResultSchema))).toContain('the only time')
    await until(() => manager.getTask(id)?.delivery === 'delivered')
  })

  it('F12: a result that is reserved is named by a wait that finds nothing, and returned by its id', async () => {
    const { client, create, tasks, end, manager } = await setUp()
    const ids = [await create(), await create()]
    for (const id of ids) end(id, `all of ${id}`)
    await until(() => manager.getActiveTasks().length === 0)
    const wait = async (args: object) =>
      textOf((await client.callTool({ name: 'wait_for_async_tasks', arguments: args as never })) as never)
    expect(await wait({})).toBe(
      'Nothing to wait for: no async task is running. 2 result(s) are reserved for the client, which fetches them itself ' +
        `(tasks/result, tasks/get). To get them here, call wait_for_async_tasks with ${JSON.stringify({ task_ids: ids })}.`,
    )
    expect(await wait({ task_ids: ids.slice(0, 1) })).toContain(`all of ${ids[0]}`)
    for (const id of ids) expect(textOf(await tasks.getTaskResult(id, CallToolResultSchema))).toContain(`all of ${id}`)
    await until(() => manager.getTask(ids[1]!)?.delivery === 'delivered')
    expect(await wait({})).toBe('Nothing to wait for: no async task is running.')
  })

  it('F12: a result that the host never asks for is carried by the next answer after retentionMs', async () => {
    const { client, create, end, manager, clock } = await setUp({ config: { tasks: { retentionMs: 1000 } } })
    const id = await create()
    end(id, 'unread')
    await until(() => manager.getTask(id)?.status === 'completed')
    const check = async () => textOf((await client.callTool({ name: 'list_instances', arguments: {} })) as never)
    clock.advance(999)
    expect(await check()).not.toContain('unread')
    clock.advance(1)
    expect(await check()).toContain('unread')
  })

  it('sees a failed tool as failed, and gets its result', async () => {
    const { create, tasks } = await setUp({ run: () => Promise.reject(new Error('no disk')) })
    const id = await create()
    const result = await tasks.getTaskResult(id, CallToolResultSchema)
    expect([result.isError, textOf(result).includes('no disk')]).toEqual([true, true])
    expect(await tasks.getTask(id)).toMatchObject({ status: 'failed', statusMessage: 'no disk' })
  })

  it('gets the JSON-RPC error of a call that threw one', async () => {
    const { create, tasks } = await setUp({
      tools:
        ({ manager }) =>
        (owner) => [
          {
            name: 'breaks',
            description: 'Breaks',
            inputSchema: z.object({}),
            call: () => Promise.reject(new Error('a bug')),
            start: () => {
              const { id } = manager.launch({ subagentName: 'breaks', goalPrompt: '', owner }, () => ({}))
              const toResult = (): never => {
                throw Object.assign(new Error('a bug'), { code: 'x' })
              }
              return Promise.resolve({ taskId: id, toResult })
            },
          },
        ],
    })
    const id = await create(undefined, { name: 'breaks', arguments: {} })
    expect(await codeOf(tasks.getTaskResult(id, CallToolResultSchema))).toBe(-32603)
    expect(await tasks.getTask(id)).toMatchObject({ status: 'failed', statusMessage: 'a bug' })
  })

  it('F12: cancels a task once, and gets a result that says so', async () => {
    const { create, tasks } = await setUp()
    const id = await create()
    const result = tasks.getTaskResult(id, CallToolResultSchema)
    expect(await tasks.cancelTask(id)).toMatchObject({ taskId: id, status: 'cancelled' })
    expect(await result).toMatchObject({ isError: true, content: [{ text: 'The task was cancelled.' }] })
    expect(await codeOf(tasks.cancelTask(id))).toBe(-32602)
  })

  it('is told of each change of a task', async () => {
    const { ask, initialize, end, notices } = overStdio()
    await initialize()
    const created = (await ask(1, 'tools/call', { ...CALL, ...AS_TASK })) as unknown as { task: { taskId: string } }
    end(created.task.taskId, 'done')
    await until(() => notices.some(({ method }) => method === 'notifications/tasks/status'))
    const { params } = notices.find(({ method }) => method === 'notifications/tasks/status')!
    expect(params).toMatchObject({ taskId: created.task.taskId, status: 'completed' })
  })
})

describe('the tasks of a client of 2025-11-25', () => {
  it('F12: are listed for it alone, and unknown to others', async () => {
    const { connect, create, tasks } = await setUp()
    const other = await connect()
    const [own, foreign] = [await create(), await create(other)]
    expect((await tasks.listTasks()).tasks.map(({ taskId }) => taskId)).toEqual([own])
    expect(await codeOf(tasks.getTask(foreign))).toBe(-32602)
    expect(await codeOf(tasks.getTaskResult(foreign, CallToolResultSchema))).toBe(-32602)
    expect(await codeOf(tasks.cancelTask(foreign))).toBe(-32602)
    expect(await other.experimental.tasks.getTask(foreign)).toMatchObject({ status: 'working' })
    expect(await codeOf(tasks.getTask('nothing'))).toBe(-32602)
  })

  it('are listed in pages, and none is missing when others expire', async () => {
    const { create, tasks, end, clock, manager } = await setUp({ config: { tasks: { retentionMs: 1000 } } })
    const ids: string[] = []
    for (let i = 0; i < 103; i += 1) ids.push(await create())
    const first = await tasks.listTasks()
    expect(first.tasks.map(({ taskId }) => taskId)).toEqual(ids.slice(0, 100))
    end(ids[0]!, 'done')
    await until(() => manager.getTask(ids[0]!)?.status === 'completed')
    clock.advance(1000)
    const { tasks: rest, nextCursor } = await tasks.listTasks(first.nextCursor)
    expect([rest.map(({ taskId }) => taskId), nextCursor]).toEqual([ids.slice(100), undefined])
    expect(await codeOf(tasks.getTask(ids[0]!))).toBe(-32602)
    expect(await codeOf(tasks.listTasks('next'))).toBe(-32602)
  })
})

describe('a call as a task', () => {
  it('takes the place of a launch in the background', async () => {
    const { create, tasks, end } = await setUp()
    const id = await create(undefined, { ...CALL, arguments: { ...CALL.arguments, async: true } })
    end(id, 'done')
    expect(textOf(await tasks.getTaskResult(id, CallToolResultSchema))).toContain('done')
  })

  it.each([
    ['of a tool that cannot be one', { name: 'list_instances', arguments: {} }, -32601, 1],
    ['with wrong parameters', { name: 'task', arguments: { subagent_name: 'nobody', goal_prompt: 'g' } }, -32602, 1],
    ['for which there is no slot', CALL, -32603, 0],
  ])('%s is refused', async (_what, call, code, maxAsyncTasks) => {
    const { create } = await setUp({ config: { maxAsyncTasks } })
    expect(await codeOf(create(undefined, call))).toBe(code)
  })

  it('is needed for a tool that requires one', async () => {
    const tool: McpTool = {
      name: 'always',
      description: 'Always a task',
      inputSchema: z.object({}),
      requiresTask: true,
      call: () => Promise.reject(new Error('must not be called')),
      start: () => Promise.reject(new Error('must not be called')),
    }
    const { client } = await setUp({ tools: () => () => [tool] })
    const { tools } = await client.listTools()
    expect(tools[0]?.execution).toEqual({ taskSupport: 'required' })
    const call = client.request({ method: 'tools/call', params: { name: 'always' } }, CallToolResultSchema)
    expect(await codeOf(call)).toBe(-32601)
  })

  it('F12: is notified of the progress of its task until that has ended, with the task', async () => {
    let report: (progress: object) => void = () => undefined
    let finish: () => void = () => undefined
    const run: SubagentRunner = (_request, context) => {
      report = (progress) => context.report(progress as never)
      return new Promise((resolve) => {
        finish = () => resolve({ final_message: 'done' })
        context.signal.addEventListener('abort', finish)
      })
    }
    const { create, tasks, clock, manager } = await setUp({ run })
    const got: unknown[] = []
    const id = await create(undefined, CALL, { onprogress: (progress: unknown) => got.push(progress) })
    report({ progress: 1, total: 3, message: 'one' })
    await until(() => got.length === 1)
    clock.advance(300)
    report({ progress: 1, total: 3, message: 'still one' })
    await until(() => got.length === 2)
    expect(got[0]).toMatchObject({ progress: 1, total: 3, message: 'one' })
    expect(got[1]).toMatchObject({ total: 3, message: 'still one' })
    expect((got[1] as { progress: number }).progress).toBeGreaterThan(1)
    expect(await tasks.getTask(id)).toMatchObject({ statusMessage: '1 of 3: still one' })
    finish()
    await until(() => manager.getTask(id)?.status === 'completed')
    clock.advance(60_000)
    await tasks.getTask(id)
    expect(got).toHaveLength(2)
  })

  it('F12: is notified of what its task writes, and that it still runs', async () => {
    let append: (text: string) => void = () => undefined
    const run: SubagentRunner = (_request, context) => {
      append = (text) => context.append(text)
      return new Promise((_resolve, reject) => {
        context.signal.addEventListener('abort', () => reject(new Error('cancelled')))
      })
    }
    const { create, clock } = await setUp({ run })
    const got: unknown[] = []
    await create(undefined, CALL, { onprogress: (progress: unknown) => got.push(progress) })
    append('compiling\n')
    clock.advance(1000)
    await until(() => got.length === 1)
    clock.advance(10_000)
    await until(() => got.length === 2)
    expect(got).toMatchObject([
      { progress: 1, message: 'compiling' },
      { progress: 11, message: 'Waiting for 11 s.' },
    ])
  })
})

describe('a question', () => {
  const asking: SubagentRunner = async (_request, context) => {
    const { action, content } = await context.ask('Which branch?')
    return { final_message: `${action} ${String(content?.['answer'])}` }
  }

  it('F12: is asked of the client while tasks/result waits, with the task', async () => {
    const asked: Readonly<Record<string, unknown>>[] = []
    const { create, tasks } = await setUp({
      run: asking,
      elicit: (params) => {
        asked.push(params)
        return Promise.resolve({ action: 'accept', content: { answer: 'main' } })
      },
    })
    const id = await create()
    expect(await tasks.getTask(id)).toMatchObject({
      status: 'input_required',
      statusMessage: 'Waiting for an answer: Which branch?',
    })
    expect(textOf(await tasks.getTaskResult(id, CallToolResultSchema))).toContain('accept main')
    expect(asked).toMatchObject([
      { mode: 'form', message: 'Which branch?', _meta: { 'io.modelcontextprotocol/related-task': { taskId: id } } },
    ])
  })

  it('is asked once, whichever request waits, and withdrawn when it is answered elsewhere', async () => {
    let count = 0
    const { client, create, tasks } = await setUp({
      run: asking,
      elicit: () => {
        count += 1
        return new Promise(() => undefined)
      },
    })
    const id = await create()
    const results = [1, 2].map(() => tasks.getTaskResult(id, CallToolResultSchema))
    await until(() => count > 0)
    await client.callTool({ name: 'answer_async_task', arguments: { task_id: id, answer: 'develop' } })
    for (const result of results) expect(textOf(await result)).toContain('accept develop')
    expect(count).toBe(1)
  })

  it('F12: is asked by another request that waits, when the one that asked it is cancelled', async () => {
    let count = 0
    const { create, tasks } = await setUp({
      run: asking,
      elicit: () => {
        count += 1
        return count === 1
          ? new Promise(() => undefined)
          : Promise.resolve({ action: 'accept', content: { answer: 'main' } })
      },
    })
    const id = await create()
    const givenUp = new AbortController()
    const first = tasks.getTaskResult(id, CallToolResultSchema, { signal: givenUp.signal })
    first.catch(() => undefined)
    await until(() => count === 1)
    const second = tasks.getTaskResult(id, CallToolResultSchema)
    givenUp.abort()
    expect(textOf(await second)).toContain('accept main')
    expect(count).toBe(2)
  })

  it('is not asked where a form cannot show its schema', async () => {
    const address = { type: 'object', properties: { street: { type: 'string' } } }
    let count = 0
    const { client, create, tasks } = await setUp({
      run: async (_request, context) => {
        const question = { message: 'Where?', schema: { type: 'object', properties: { address } } }
        return { final_message: JSON.stringify(await context.ask(question)) }
      },
      elicit: () => Promise.reject(new Error(`asked ${(count += 1)}`)),
    })
    const id = await create()
    const result = tasks.getTaskResult(id, CallToolResultSchema)
    expect(await tasks.getTask(id)).toMatchObject({ status: 'working' })
    const answer = { task_id: id, answer: { address: { street: 'Elm' } } }
    await client.callTool({ name: 'answer_async_task', arguments: answer })
    expect(textOf(await result)).toContain('Elm')
    expect(count).toBe(0)
  })

  it('stays open when the client fails to answer it as it should', async () => {
    const { client, create, tasks } = await setUp({
      run: asking,
      elicit: () => Promise.resolve({ action: 'accept', content: { nothing: 'here' } }),
    })
    const id = await create()
    const result = tasks.getTaskResult(id, CallToolResultSchema)
    await client.callTool({ name: 'answer_async_task', arguments: { task_id: id, answer: 'main' } })
    expect(textOf(await result)).toContain('accept main')
  })

  it('is left to the model when the client has no forms', async () => {
    const { create, tasks } = await setUp({ run: asking })
    expect(await tasks.getTask(await create())).toMatchObject({ status: 'working' })
  })

  it('is asked again by a later request, when the one that asked was given up', async () => {
    let count = 0
    const { create, tasks, clock } = await setUp({
      run: asking,
      elicit: () => {
        count += 1
        if (count === 1) return new Promise(() => undefined)
        // A person needs a moment.
        clock.advance(500)
        return Promise.resolve({ action: 'decline' })
      },
    })
    const id = await create()
    const givenUp = new AbortController()
    const first = tasks.getTaskResult(id, CallToolResultSchema, { signal: givenUp.signal })
    first.catch(() => undefined)
    await until(() => count === 1)
    givenUp.abort()
    await first.catch(() => undefined)
    expect(textOf(await tasks.getTaskResult(id, CallToolResultSchema))).toContain('decline')
    expect(count).toBe(2)
  })
})
