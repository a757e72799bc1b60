/** The rules of the Tasks extension (SEP-2663), one by one, on the wire. */
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

describe('a call that may be a task', () => {
  it('is one only when its own request declares the extension, whatever earlier requests did', async () => {
    const { call, goal } = setUp()
    const declared = await call('task', goal, TASKS)
    expect(declared.result).toMatchObject({ resultType: 'task' })
    const undeclared = await call('task', goal, {})
    expect(undeclared.result).toMatchObject({ resultType: 'complete', content: [{ type: 'text' }] })
    expect(undeclared.result).not.toHaveProperty('taskId')
  })

  it('is the choice of the server: a launch is answered by a launch, and looking is never a task', async () => {
    const { call, goal } = setUp()
    const launched = await call('task', { ...goal, async: true })
    expect(launched.result).toMatchObject({ resultType: 'complete', structuredContent: { async: true } })
    expect((await call('check_async_tasks')).result).toMatchObject({ resultType: 'complete' })
  })

  it('ignores the hint of 2025', async () => {
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

  it('can be asked for as soon as it is answered, even when it ended before that', async () => {
    const { create, get } = setUp()
    const taskId = await create()
    expect((await get(taskId)).result).toMatchObject({ taskId, resultType: 'complete' })
  })

  it('has an id that nobody can guess', async () => {
    const { create } = setUp(hanging, { maxAsyncTasks: -1 })
    const ids = await Promise.all(Array.from({ length: 20 }, () => create()))
    expect(new Set(ids).size).toBe(20)
    for (const id of ids) {
      expect(id).toMatch(/^helper-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    }
  })

  it('is a result like any other when it cannot be started', async () => {
    const { create, call, goal } = setUp(hanging, { maxAsyncTasks: 1 })
    await create()
    const { result } = await call('task', goal)
    expect(result).toMatchObject({ resultType: 'complete', isError: true })
    expect(JSON.stringify(result)).toContain('cancel_async_task')
    expect((await call('task', { ...goal, subagent_name: 'nobody' })).result).toMatchObject({ isError: true })
  })

  it('gets -32021 when it cannot be anything but a task and its client does not take one', async () => {
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
  it('inlines the result of the call that the task came of', async () => {
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

  it('shows a tool that failed as completed, with isError', async () => {
    const { create, get } = setUp(() => Promise.reject(new Error('no disk')))
    const { result } = await get(await create())
    expect(result).toMatchObject({ status: 'completed', statusMessage: 'no disk', result: { isError: true } })
  })

  it('shows a JSON-RPC error as failed, and nothing else', async () => {
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

  it('says how far a task has come, and when that was', async () => {
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

  it('gives the same end for ever, whatever happens to the task in the registry', async () => {
    const { create, get, manager } = setUp(undefined, { maxAsyncTasks: 1 })
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

  it('refuses an id that never was and one of somebody else in the same words, with -32602', async () => {
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

  it.each(['tasks/list', 'tasks/result'])('%s, which was removed, is not there', async (method) => {
    const { app } = setUp()
    expect((await send(app, ALICE, method, { taskId: 'x' }, TASKS)).error?.code).toBe(-32601)
  })
})

describe('the time to live', () => {
  it('is unknown while a task without a deadline works, and it is never forgotten then', async () => {
    const { create, get, clock } = setUp(hanging, { maxTimeoutSeconds: -1, tasks: { retentionMs: 1000 } })
    const taskId = await create({ timeout_seconds: -1 })
    clock.advance(1e9)
    expect((await get(taskId)).result).toMatchObject({ status: 'working', ttlMs: null })
  })

  it('counts from the creation to the end and what the result is kept beyond', async () => {
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
  it('is acknowledged with nothing, and the task is cancelled', async () => {
    const { create, get, act } = setUp(hanging)
    const taskId = await create()
    const { result } = await act('tasks/cancel', taskId)
    expect(Object.keys(result as object).filter((key) => key !== '_meta')).toEqual(['resultType'])
    expect((await get(taskId)).result).toMatchObject({ status: 'cancelled' })
  })

  it('is acknowledged just so for a task that has ended, which stays as it is', async () => {
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

  it('inlines its questions as requests, each under a key of its own', async () => {
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

  it('goes on when all is answered, one by one or at once, and ignores what nobody asked', async () => {
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

  it('answers nothing when one of the answers does not fit, and says which', async () => {
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

  it('sends no request to a client that cannot ask its user, and says what it waits for', async () => {
    const { create, get } = setUp(asking)
    const taskId = await create()
    await settle()
    const { result } = await get(taskId)
    expect(result).toMatchObject({ status: 'working', statusMessage: 'Waiting for an answer: A?' })
    expect(result).not.toHaveProperty('inputRequests')
  })

  it('has no questions any more when it is cancelled', async () => {
    const { create, get, act } = setUp(asking)
    const taskId = await create()
    await settle()
    await act('tasks/cancel', taskId)
    const { result } = await get(taskId, ELICITING)
    expect(result).toMatchObject({ status: 'cancelled' })
    expect(result).not.toHaveProperty('inputRequests')
  })
})
