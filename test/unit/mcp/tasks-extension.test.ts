/** The rules of the Tasks extension (SEP-2663), on the wire. */
import { ProtocolError } from '@modelcontextprotocol/server'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { McpTool } from '../../../src/mcp/mcp-tool.js'
import type { AgentConfigInput } from '../../../src/protocol/agent-config.js'
import type { SubagentRunner } from '../../../src/tools/subagents.js'
import { controlledRun, settle } from '../tools/tool-host.js'
import { ALICE, BOB, send, setUpApp, TASKS } from './wire.js'

const ELICITING = { ...TASKS, elicitation: {} }
const apps: { close(): Promise<void> }[] = []

afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()))
})

function setUp(run: SubagentRunner = () => ({ final_message: 'done' }), config: AgentConfigInput = {}) {
  const host = setUpApp({ helper: run }, config)
  apps.push(host.app)
  const goal = { subagent_name: 'helper', goal_prompt: 'g' }
  const create = async (more: object = {}) => {
    const { result } = await host.call('task', { ...goal, ...more })
    return (result as { taskId: string }).taskId
  }
  const act = (
    method: 'tasks/update' | 'tasks/cancel',
    taskId: string,
    more: object = {},
    capabilities: object = TASKS,
  ) => send(host.app, ALICE, method, { taskId, ...more }, capabilities)
  return { ...host, goal, create, act }
}

/** A run that never ends by itself. */
const hanging: SubagentRunner = (_request, { signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))

describe('a call that can become a task', () => {
  it('becomes one only if its own request declares the extension', async () => {
    const { call, goal } = setUp()
    const declared = await call('task', goal, TASKS)
    expect(declared.result).toMatchObject({ resultType: 'task' })
    const undeclared = await call('task', goal, {})
    expect(undeclared.result).toMatchObject({ resultType: 'complete', content: [{ type: 'text' }] })
    expect(undeclared.result).not.toHaveProperty('taskId')
  })

  it('is answered directly for a launch, and for read-only tools', async () => {
    const { call, goal } = setUp()
    const launched = await call('task', { ...goal, async: true })
    expect(launched.result).toMatchObject({ resultType: 'complete', structuredContent: { async: true } })
    expect((await call('check_async_tasks')).result).toMatchObject({ resultType: 'complete' })
  })

  it('ignores the task parameter of 2025-11-25', async () => {
    const { app } = setUp()
    const params = { name: 'list_instances', arguments: {}, task: { ttl: 1000 } }
    expect((await send(app, ALICE, 'tools/call', params, TASKS)).result).toMatchObject({ resultType: 'complete' })
  })

  it('is answered flat, without result, error or requests', async () => {
    const { call, goal } = setUp(hanging)
    const { result } = await call('task', goal)
    const { _meta, ...task } = result as Record<string, unknown>
    expect(task).toEqual({
      // The SDK takes it for a tool's result.
      content: [],
      resultType: 'task',
      taskId: expect.stringMatching(/^helper-/) as unknown,
      status: 'working',
      createdAt: '2026-01-01T00:00:00.000Z',
      lastUpdatedAt: '2026-01-01T00:00:00.000Z',
      ttlMs: 900_000 + 3_600_000,
      pollIntervalMs: 1000,
    })
  })

  it('can be requested at once, even if it ended before the answer', async () => {
    const { create, get } = setUp()
    const taskId = await create()
    expect((await get(taskId)).result).toMatchObject({ taskId, resultType: 'complete' })
  })

  it('has an id that cannot be guessed', async () => {
    const { create } = setUp(hanging, { maxAsyncTasks: -1 })
    const ids = await Promise.all(Array.from({ length: 20 }, () => create()))
    expect(new Set(ids).size).toBe(20)
    for (const id of ids) {
      expect(id).toMatch(/^helper-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    }
  })

  it('is an ordinary result when the task cannot be started', async () => {
    const { create, call, goal } = setUp(hanging, { maxAsyncTasks: 1 })
    await create()
    const { result } = await call('task', goal)
    expect(result).toMatchObject({ resultType: 'complete', isError: true })
    expect(JSON.stringify(result)).toContain('cancel_async_task')
    expect((await call('task', { ...goal, subagent_name: 'nobody' })).result).toMatchObject({ isError: true })
  })

  it('gets -32021 when it requires a task and its client does not declare the extension', async () => {
    const tool: McpTool = {
      name: 'always',
      description: 'Always a task',
      inputSchema: z.object({}),
      requiresTask: true,
      call: () => Promise.reject(new Error('must not be called')),
    }
    const { app, call } = setUpApp({}, {}, () => () => [tool])
    apps.push(app)
    const { error, status } = await call('always', {}, {})
    expect(error).toMatchObject({ code: -32021, data: { requiredCapabilities: TASKS } })
    expect(status).toBe(400)
  })
})

describe('tasks/get', () => {
  it('contains the result of the call that started the task', async () => {
    const { create, get } = setUp()
    const { result } = await get(await create())
    expect(result).toMatchObject({
      resultType: 'complete',
      status: 'completed',
      result: { resultType: 'complete', content: [{ type: 'text' }] },
    })
    expect(JSON.stringify(result)).toContain('done')
    expect(result).not.toHaveProperty('error')
  })

  it('shows a failed tool as completed, with isError', async () => {
    const { create, get } = setUp(() => Promise.reject(new Error('no disk')))
    const { result } = await get(await create())
    expect(result).toMatchObject({ status: 'completed', statusMessage: 'no disk', result: { isError: true } })
  })

  it('shows only a JSON-RPC error as failed', async () => {
    const error = new ProtocolError(-32001, 'broken', { at: 'the core' })
    for (const [thrown, expected] of [
      [error, { code: -32001, message: 'broken', data: { at: 'the core' } }],
      [new Error('a bug'), { code: -32603, message: 'a bug' }],
    ] as const) {
      const { app, call, get } = setUpApp({}, {}, ({ manager }) => (owner) => [
        {
          name: 'breaks',
          description: 'Breaks',
          inputSchema: z.object({}),
          call: () => Promise.reject(thrown),
          start: () =>
            Promise.resolve({
              taskId: manager.launch({ subagentName: 's', goalPrompt: 'g', owner }, () => ({})).id,
              toResult: () => {
                throw thrown
              },
            }),
        },
      ])
      apps.push(app)
      const { taskId } = (await call('breaks')).result as { taskId: string }
      await settle()
      const { result } = await get(taskId)
      expect(result).toMatchObject({ status: 'failed', error: expected })
      expect(result).not.toHaveProperty('result')
    }
  })

  it('shows the progress of a task, and its time', async () => {
    const { run, started, finish } = controlledRun<never>()
    const { create, get, clock } = setUp(run as unknown as SubagentRunner)
    const taskId = await create()
    const { context } = await started
    clock.advance(5000)
    context.report({ progress: 2, total: 3, message: 'reading' })
    clock.advance(1000)
    expect((await get(taskId)).result).toMatchObject({
      status: 'working',
      statusMessage: '2 of 3: reading',
      createdAt: '2026-01-01T00:00:00.000Z',
      lastUpdatedAt: '2026-01-01T00:00:05.000Z',
    })
    finish({})
  })

  it('returns the same end, whatever happens to the task in the registry', async () => {
    const { create, get, manager } = setUp(undefined, { maxAsyncTasksOfAllClients: 1 })
    const taskId = await create()
    const first = (await get(taskId)).result as Record<string, unknown>
    expect(manager.getTask(taskId)?.delivery).toBe('delivered')
    for (let i = 0; i < 5; i += 1) await get(await create())
    expect(manager.getTask(taskId)).toBeUndefined()
    manager.registerTask({ id: taskId, subagentName: 'another', goalPrompt: 'g', owner: 'alice' })
    manager.failTask(taskId, 'of the same name')
    const second = (await get(taskId)).result as Record<string, unknown>
    expect(second).toEqual(first)
  })

  it('refuses an unknown id and an id of another owner with the same -32602', async () => {
    const { create, get } = setUp(hanging)
    const taskId = await create()
    const unknown = await get('helper-00000000-0000-4000-8000-000000000000')
    expect(unknown.error?.code).toBe(-32602)
    expect((await get(taskId, TASKS, BOB)).error).toEqual(unknown.error)
  })

  it.each(['tasks/get', 'tasks/update', 'tasks/cancel'])(
    '%s gets -32021 without the extension, before anything else',
    async (method) => {
      const { app } = setUp()
      const { error } = await send(app, ALICE, method, { taskId: 'nobody', inputResponses: {} }, {})
      expect(error).toMatchObject({ code: -32021, data: { requiredCapabilities: TASKS } })
    },
  )

  it.each(['tasks/list', 'tasks/result'])('%s, which SEP-2663 removed, is not available', async (method) => {
    const { app } = setUp()
    expect((await send(app, ALICE, method, { taskId: 'x' }, TASKS)).error?.code).toBe(-32601)
  })
})

describe('the time to live', () => {
  it('is null while a task without a deadline runs, and the task is kept', async () => {
    const { create, get, clock } = setUp(hanging, { maxTimeoutSeconds: -1, tasks: { retentionMs: 1000 } })
    const taskId = await create({ timeout_seconds: -1 })
    clock.advance(1e9)
    expect((await get(taskId)).result).toMatchObject({ status: 'working', ttlMs: null })
  })

  it('counts from the creation to the end plus the retention time', async () => {
    const { run, started, finish } = controlledRun<never>()
    const { create, get, clock } = setUp(run as unknown as SubagentRunner, { tasks: { retentionMs: 60_000 } })
    const taskId = await create()
    await started
    expect((await get(taskId)).result).toMatchObject({ ttlMs: 960_000 })
    clock.advance(10_000)
    finish({ final_message: 'done' })
    await settle()
    expect((await get(taskId)).result).toMatchObject({ status: 'completed', ttlMs: 70_000 })
    clock.advance(59_999)
    expect((await get(taskId)).error).toBeUndefined()
    clock.advance(1)
    expect((await get(taskId)).error?.code).toBe(-32602)
  })
})

describe('tasks/cancel', () => {
  it('is acknowledged with an empty result, and the task is cancelled', async () => {
    const { create, get, act } = setUp(hanging)
    const taskId = await create()
    const { result } = await act('tasks/cancel', taskId)
    expect(Object.keys(result as object).filter((key) => key !== '_meta')).toEqual(['resultType'])
    expect((await get(taskId)).result).toMatchObject({ status: 'cancelled' })
  })

  it('is acknowledged the same way for an ended task, which does not change', async () => {
    const { create, get, act } = setUp()
    const taskId = await create()
    await settle()
    expect((await act('tasks/cancel', taskId)).result).toMatchObject({ resultType: 'complete' })
    expect((await get(taskId)).result).toMatchObject({ status: 'completed' })
    expect((await act('tasks/cancel', 'nobody')).error?.code).toBe(-32602)
  })
})

describe('a task that asks', () => {
  const asking: SubagentRunner = async (_request, context) => {
    const schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }
    const answers = await Promise.all([context.ask({ message: 'A?', schema }), context.ask({ message: 'B?', schema })])
    return { final_message: JSON.stringify(answers.map(({ content, action }) => content?.['ok'] ?? action)) }
  }
  const accept = (content: object) => ({ action: 'accept', content })

  it('contains its questions as input requests, each under its own key', async () => {
    const { create, get } = setUp(asking)
    const taskId = await create()
    await settle()
    const { result } = await get(taskId, ELICITING)
    expect(result).toMatchObject({
      status: 'input_required',
      statusMessage: 'Waiting for an answer: A?',
      inputRequests: {
        'question-1': {
          method: 'elicitation/create',
          params: { mode: 'form', message: 'A?', requestedSchema: { type: 'object', required: ['ok'] } },
        },
        'question-2': { params: { message: 'B?' } },
      },
    })
  })

  it('continues when all are answered, one by one or at once, and ignores other answers', async () => {
    const { create, get, act } = setUp(asking)
    const taskId = await create()
    await settle()
    const { result } = await act('tasks/update', taskId, {
      inputResponses: { 'question-2': accept({ ok: true }), 'question-9': accept({}) },
    })
    expect(Object.keys(result as object).filter((key) => key !== '_meta')).toEqual(['resultType'])
    const half = await get(taskId, ELICITING)
    expect(half.result).toMatchObject({ status: 'input_required' })
    expect(Object.keys((half.result as { inputRequests: object }).inputRequests)).toEqual(['question-1'])
    await act('tasks/update', taskId, {
      inputResponses: { 'question-1': { action: 'decline' }, 'question-2': accept({ ok: false }) },
    })
    await settle()
    const { result: end } = await get(taskId)
    expect(end).toMatchObject({ status: 'completed' })
    expect(JSON.stringify(end)).toContain(String.raw`[\\\"decline\\\",true]`)
  })

  it('accepts no answer when one of them is invalid, and names it', async () => {
    const { create, get, act } = setUp(asking)
    const taskId = await create()
    await settle()
    const { error } = await act('tasks/update', taskId, {
      inputResponses: { 'question-1': accept({ ok: true }), 'question-2': accept({ ok: 'yes' }) },
    })
    expect(error).toMatchObject({ code: -32602 })
    expect(error?.message).toContain('inputResponses.question-2.content.ok: got "yes", expected a boolean')
    const { result } = await get(taskId, ELICITING)
    expect(Object.keys((result as { inputRequests: object }).inputRequests)).toHaveLength(2)
  })

  it('sends no input request to a client without elicitation, and shows the question', async () => {
    const { create, get } = setUp(asking)
    const taskId = await create()
    await settle()
    const { result } = await get(taskId)
    expect(result).toMatchObject({ status: 'working', statusMessage: 'Waiting for an answer: A?' })
    expect(result).not.toHaveProperty('inputRequests')
  })

  it('has no questions after it was cancelled', async () => {
    const { create, get, act } = setUp(asking)
    const taskId = await create()
    await settle()
    await act('tasks/cancel', taskId)
    const { result } = await get(taskId, ELICITING)
    expect(result).toMatchObject({ status: 'cancelled' })
    expect(result).not.toHaveProperty('inputRequests')
  })
})
