// GET /api/tools and POST /api/tools/:name: a call is a task of one command in the lane of its instance, answered when it ends.
import { once } from 'node:events'
import { request } from 'node:http'
import { describe, expect, it, vi } from 'vitest'
import { memoryStore } from '../../../src/store/index.js'
import { localInstance, type Instance, type TaskServerOptions } from '../../../src/server/index.js'
import type { Hub } from '../../../src/server/backend/hub.js'
import type { TaskService } from '../../../src/server/backend/task-service.js'
import { createToolCalls, toolsOf } from '../../../src/server/tool-calls.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { startTestServer, createHolding, taskOf, type TestServer } from './test-server.js'
import { waitFor } from '../../support/wait-for.js'

const callTool = (server: TestServer, name: string, args?: unknown, query = '') =>
  server.post(`/api/tools/${encodeURIComponent(name)}${query}`, args)

const failing = (code: string, message: string): Instance['callTool'] => {
  return () => Promise.resolve({ content: [{ type: 'text', text: message }], isError: true, _meta: { code } })
}

/** An instance with one tool, called `act`. */
const actor = (id: string, call: Instance['callTool']): Instance => ({
  ...localInstance({ id, tools: [] }),
  listTools: () => Promise.resolve([{ name: 'act' }]),
  callTool: call,
})

const withInstances = (instances: readonly Instance[], more: TaskServerOptions = {}) =>
  startTestServer({ ...more, instances })

describe('GET /api/tools', () => {
  it('lists each tool of the connected instances once, with the instances that have it', async () => {
    const server = await withInstances([createHolding('a').instance, createHolding('b').instance])
    await server.post('/register', { instanceId: 'away', tools: [{ name: 'unreachable' }] })
    const { status, body } = await server.call('/api/tools')
    expect(status).toBe(200)
    const tools = body['tools'] as { name: string; instances: string[] }[]
    expect(tools.map(({ name, instances }) => [name, instances])).toEqual(
      ['add', 'echo', 'blow', 'hold'].map((name) => [name, ['a', 'b']]),
    )
    expect(tools[0]).toMatchObject({ description: 'Adds two numbers.', inputSchema: { type: 'object' } })
  })
})

describe('POST /api/tools/:name', () => {
  it('answers with the result of the tool, and names the task', async () => {
    const server = await startTestServer()
    const { status, body } = await callTool(server, 'add', { a: 2, b: 3 })
    expect([status, body]).toEqual([200, { success: true, result: 5, taskId: expect.any(String) as string }])
    expect(server.taskManager.getTask(String(body['taskId']))).toMatchObject({
      name: 'add',
      commands: [{ tool_name: 'add', args: { a: 2, b: 3 }, status: 'success' }],
    })
    expect((await callTool(server, 'echo', { deep: [{ is: null }] })).body['result']).toEqual({ deep: [{ is: null }] })
    expect((await callTool(server, 'echo')).body['result']).toEqual({})
  })

  it.each([
    ['text that is not JSON', [{ type: 'text', text: 'clicked' }], 'clicked'],
    ['no content', [], null],
    [
      'an image',
      [{ type: 'image', data: 'aGk=', mimeType: 'image/png' }],
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
    ],
    [
      'several blocks',
      [
        { type: 'text', text: '1' },
        { type: 'text', text: '2' },
      ],
      [
        { type: 'text', text: '1' },
        { type: 'text', text: '2' },
      ],
    ],
  ])('unwraps %s', async (_what, content, result) => {
    const server = await withInstances([actor('one', () => Promise.resolve({ content }))])
    expect((await callTool(server, 'act', {})).body).toMatchObject({ success: true, result })
  })

  it('runs on the first connected instance that has the tool, or on the one that is named', async () => {
    const named = (id: string) =>
      actor(id, (call) =>
        Promise.resolve({ content: [{ type: 'text', text: `${id} ${JSON.stringify(call.arguments)}` }] }),
      )
    const server = await withInstances([createHolding('calc').instance, named('one'), named('two')])
    const resultOf = async (args: object, query = '') => (await callTool(server, 'act', args, query)).body['result']
    expect(await resultOf({ x: 1 })).toBe('one {"x":1}')
    expect(await resultOf({ x: 1, instanceId: 'two' })).toBe('two {"x":1}')
    // A tool may have an argument of that name.
    expect(await resultOf({ instanceId: 'mine' }, '?instanceId=two')).toBe('two {"instanceId":"mine"}')
  })

  it('S3: waits for its turn in the lane', async () => {
    const server = await startTestServer()
    await server.post('/tasks', taskOf('hold'))
    const held = await server.held()
    const answered = vi.fn()
    const call = callTool(server, 'add', { a: 1, b: 1 }).finally(answered)
    await waitFor(() => expect(server.taskManager.laneDepths.get('calc')).toBe(2))
    expect(answered).not.toHaveBeenCalled()
    held.finish()
    expect((await call).body).toMatchObject({ success: true, result: 2 })
  })

  it('answers 404 for a tool that no instance has, with the nearest name, and for an unknown instance', async () => {
    const server = await startTestServer()
    expect(await callTool(server, 'ad', {})).toMatchObject({
      status: 404,
      body: {
        success: false,
        error: { code: 'TOOL_NOT_FOUND', message: 'Unknown tool: "ad", expected a known name; the nearest is add.' },
      },
    })
    expect(await callTool(server, 'add', { instanceId: 'nope' })).toMatchObject({
      status: 404,
      body: {
        success: false,
        error: { code: 'INVALID_INSTANCE', message: 'Instance not found: nope. Known instances: calc.' },
      },
    })
    expect(await callTool(server, 'missing', { instanceId: 'calc' })).toMatchObject({
      status: 404,
      body: { success: false, error: { code: 'TOOL_NOT_FOUND' } },
    })
    expect(await callTool(await withInstances([]), 'add', {})).toMatchObject({
      status: 503,
      body: { error: { code: 'NO_INSTANCE' } },
    })
  })

  it('answers 400 with the message and the code of a tool that fails', async () => {
    const server = await startTestServer()
    expect(await callTool(server, 'blow', {})).toMatchObject({
      status: 400,
      body: {
        success: false,
        error: { code: 'EXECUTION_ERROR', message: 'It blew up.' },
        taskId: expect.any(String) as string,
      },
    })
    const own = await withInstances([actor('one', failing('NO_SUCH_ELEMENT', 'There is no e7.'))])
    expect(await callTool(own, 'act', {})).toMatchObject({
      status: 400,
      body: { error: { code: 'NO_SUCH_ELEMENT', message: 'There is no e7.' } },
    })
  })

  it('takes the message and the code out of an error that is JSON', async () => {
    const text = JSON.stringify({ error: { code: 'TAB_GONE', message: 'The tab was closed.' } })
    const server = await withInstances([
      actor('one', () => Promise.resolve({ content: [{ type: 'text', text }], isError: true })),
    ])
    expect((await callTool(server, 'act', {})).body['error']).toEqual({
      code: 'TAB_GONE',
      message: 'The tab was closed.',
    })
  })

  it('answers 400 to invalid arguments, 415 to another content type, 429 when the queue is full', async () => {
    const server = await startTestServer({ tasks: { maxQueueSize: 0 } })
    for (const body of [[1], '"text"', { instanceId: 7 }]) {
      expect(await callTool(server, 'add', body)).toMatchObject({
        status: 400,
        body: {
          success: false,
          error: { code: 'INVALID_REQUEST', message: expect.stringContaining('body') as string },
        },
      })
    }
    const form = await server.post('/api/tools/add', 'a=2', { 'content-type': 'application/x-www-form-urlencoded' })
    expect(form).toMatchObject({ status: 415, body: { code: 'UNSUPPORTED_MEDIA_TYPE' } })
    expect(await callTool(server, 'add', {})).toMatchObject({ status: 429, body: { error: { code: 'QUEUE_FULL' } } })
  })

  it('answers 503 when the instance is lost, and 409 when somebody cancels the task', async () => {
    const server = await startTestServer()
    const lost = callTool(server, 'hold', {})
    await server.held()
    void server.instances.disconnect('calc')
    expect(await lost).toMatchObject({ status: 503, body: { error: { code: 'INSTANCE_DISCONNECTED' } } })
    const other = await startTestServer()
    const cancelled = callTool(other, 'hold', {})
    await other.held()
    other.taskManager.cancelTask(other.taskManager.listTasks()[0]!.id)
    expect(await cancelled).toMatchObject({ status: 409, body: { error: { code: 'CANCELLED' } } })
  })

  it('answers 504 after limits.toolCallMs, and cancels the task', async () => {
    const server = await startTestServer({ limits: { toolCallMs: 1 } })
    expect(await callTool(server, 'hold', {})).toMatchObject({
      status: 504,
      body: { error: { code: 'TOOL_CALL_TIMEOUT', message: expect.stringContaining('limits.toolCallMs') as string } },
    })
    expect(server.taskManager.listTasks()).toMatchObject([{ status: 'cancelled' }])
  })

  it('cancels the task when the client closes the connection', async () => {
    const server = await startTestServer()
    const headers = { 'content-type': 'application/json' }
    const sent = request(`${server.httpUrl}/api/tools/hold`, { method: 'POST', headers })
    sent.on('error', () => undefined)
    sent.end('{}')
    const { signal } = await server.held()
    const aborted = once(signal, 'abort')
    sent.destroy()
    await aborted
    expect(server.taskManager.listTasks()).toMatchObject([{ status: 'cancelled' }])
  })

  it('is cancelled while it is queued when the server closes, also with a store: nobody waits for it later', async () => {
    const store = memoryStore()
    const server = await startTestServer({ store })
    await server.post('/tasks', taskOf('hold'))
    await server.held()
    const answers = [callTool(server, 'hold', {}), callTool(server, 'add', {})]
    await waitFor(() => expect(server.taskManager.laneDepths.get('calc')).toBe(3))
    const closed = server.close({ drainMs: 0 })
    for (const answer of answers) {
      expect(await answer).toMatchObject({ status: 409, body: { error: { code: 'CANCELLED' } } })
    }
    await closed
    expect(store.contents().commandTasks.map(({ status }) => status)).not.toContain('queued')
  })
})

describe('a call whose task does not end', () => {
  /** A task that is running, and stays so. */
  const stuck = () => {
    const clock = createManualClock()
    const leave = vi.fn()
    let miss: () => void = () => undefined
    const cancel = vi.fn(() => Promise.reject(new Error('Redis is away.')))
    const calls = createToolCalls({
      clock,
      limitMs: 1000,
      instances: { read: () => Promise.resolve([]) },
      service: { submit: () => ({ taskId: 't1', queuePosition: 1 }), cancel } as unknown as TaskService,
      hub: {
        join: (_deliver: unknown, _most: number, onMissed: () => void) => {
          miss = onMissed
          return { addTask: () => true, leave }
        },
      } as unknown as Hub,
    })
    const { signal } = new AbortController()
    const answer = calls.call({ name: 'act', args: {}, instanceId: 'one', signal, within: (submit) => submit() })
    return { clock, leave, cancel, answer, miss: () => miss() }
  }

  it('is answered all the same, and leaves no timer and no subscription', async () => {
    const { clock, leave, cancel, answer } = stuck()
    clock.advance(1000)
    expect(await answer).toMatchObject({ success: false, error: { code: 'TOOL_CALL_TIMEOUT' }, taskId: 't1' })
    expect([cancel.mock.calls, leave.mock.calls.length, clock.pending]).toEqual([[['t1']], 1, 0])
  })

  it('says when its end may have been missed', async () => {
    const { clock, leave, answer, miss } = stuck()
    miss()
    expect(await answer).toMatchObject({ success: false, error: { code: 'UNAVAILABLE' }, taskId: 't1' })
    expect([leave.mock.calls.length, clock.pending]).toEqual([1, 0])
  })
})

describe('calls of tools', () => {
  const running = { status: 'queued', commands: [] }

  /** Calls whose list of instances, submissions and ends are those of the test. */
  const createSubject = (read: () => Promise<unknown>) => {
    const clock = createManualClock()
    let deliver: (event: unknown) => void = () => undefined
    const submit = vi.fn((): unknown => ({ taskId: 't1', queuePosition: 1 }))
    const get = vi.fn((): unknown => running)
    const cancel = vi.fn(() => ({ success: true }))
    const [addTask, leave] = [vi.fn(() => true), vi.fn()]
    const hub = {
      join: (given: typeof deliver) => {
        deliver = given
        return { addTask, leave }
      },
    }
    const calls = createToolCalls({
      clock,
      limitMs: 1000,
      instances: { read } as never,
      service: { submit, get, cancel } as unknown as TaskService,
      hub: hub as unknown as Hub,
    })
    const call = (signal: AbortSignal = new AbortController().signal, instanceId?: string) =>
      calls.call({ name: 'act', args: {}, instanceId, signal, within: (run) => run() })
    return { calls, call, clock, submit, get, cancel, addTask, leave, complete: () => deliver({ isComplete: true }) }
  }
  const instance = (id: string, ...tools: readonly string[]) => ({
    id,
    isConnected: true,
    tools: tools.map((name) => ({ name })),
  })

  it('submit nothing when their client has left while the instances were listed', async () => {
    const caller = new AbortController()
    const { call, submit } = createSubject(() => {
      caller.abort()
      return Promise.resolve([instance('one', 'act')])
    })
    expect(await call(caller.signal)).toEqual({
      success: false,
      error: { code: 'CANCELLED', message: 'The client closed the connection.' },
    })
    expect(submit).not.toHaveBeenCalled()
  })

  it('cancel their task when their client has left while it was submitted', async () => {
    const caller = new AbortController()
    const { call, submit, cancel, clock, leave } = createSubject(() => Promise.resolve([instance('one', 'act')]))
    submit.mockImplementation(() => {
      caller.abort()
      return { taskId: 't1', queuePosition: 1 }
    })
    expect(await call(caller.signal)).toMatchObject({ success: false, error: { code: 'CANCELLED' }, taskId: 't1' })
    expect([cancel.mock.calls, leave.mock.calls.length, clock.pending]).toEqual([[['t1']], 1, 0])
  })

  it('are cancelled while they are queued, and not looked at when they have ended', async () => {
    const { calls, call, get, cancel, addTask, complete } = createSubject(() =>
      Promise.resolve([instance('one', 'act')]),
    )
    const answer = call()
    await waitFor(() => expect(addTask).toHaveBeenCalledOnce())
    await calls.cancelQueued()
    expect([get.mock.calls, cancel.mock.calls]).toEqual([[['t1']], [['t1']]])
    complete()
    await answer
    get.mockClear()
    cancel.mockClear()
    await calls.cancelQueued()
    expect([get.mock.calls, cancel.mock.calls]).toEqual([[], []])
  })

  it('of an unknown tool name 50 others at most, each once, and none of an instance that is not connected', async () => {
    const names = Array.from({ length: 60 }, (_, at) => `tool ${String(at).padStart(2, '0')}`)
    const listed = [
      { ...instance('gone', 'act'), isConnected: false },
      instance('a', ...names),
      instance('b', ...names),
    ]
    const answer = await createSubject(() => Promise.resolve(listed)).call()
    expect(answer).toMatchObject({ success: false, error: { code: 'TOOL_NOT_FOUND' } })
    expect(JSON.stringify(answer).match(/tool \d\d/g)).toEqual(names.slice(0, 50))
  })

  it('the list has the tools of connected instances alone', () => {
    const look = { name: 'look' }
    const listed = [
      { id: 'gone', isConnected: false, tools: [look] },
      { id: 'a', isConnected: true, tools: [{ ...look, description: 'first' }] },
      { id: 'b', isConnected: true },
      { id: 'c', isConnected: true, tools: [{ ...look, description: 'second' }, { name: 'act' }] },
    ]
    expect(toolsOf(listed as never)).toEqual([
      { name: 'look', description: 'first', instances: ['a', 'c'] },
      { name: 'act', instances: ['c'] },
    ])
  })
})
