/** The worker's side of a WebSocket instance, on scripted sockets. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { connectInstance, type ConnectInstanceOptions } from '../../../src/client/connect-instance.js'
import { workerSocketOf } from '../../../src/client/endpoints.js'
import type { FetchLike } from '../../../src/client/platform.js'
import { WORKER_CLOSE } from '../../../src/protocol/instance-messages.js'
import { instanceTool, type InstanceToolContext } from '../../../src/protocol/instance-tools.js'
import { ToolCallError } from '../../../src/errors.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { scriptSockets, settle, type ScriptedSocket } from '../../support/scripted-sockets.js'

const add = instanceTool({
  name: 'add',
  description: 'Adds.',
  inputSchema: z.strictObject({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => ({ sum: a + b }),
})

/** A tool whose call ends when the test says so. */
function holding() {
  const calls: { readonly context: InstanceToolContext; readonly end: (value: unknown) => void }[] = []
  const tool = instanceTool({
    name: 'hold',
    execute: (_input, context) =>
      new Promise((resolve, reject) => {
        calls.push({ context, end: (value) => (value instanceof Error ? reject(value) : resolve(value)) })
      }),
  })
  return { tool, calls }
}

function setUp(options: Partial<ConnectInstanceOptions> = {}) {
  const clock = createManualClock(1_000_000)
  const sockets = scriptSockets()
  const posts: { readonly url: string; readonly body: Record<string, unknown>; readonly headers: unknown }[] = []
  const errors: unknown[] = []
  const answers: { status: number; body: object }[] = []
  const fetch: FetchLike = (url, init) => {
    posts.push({ url, body: JSON.parse(init?.body ?? 'null') as Record<string, unknown>, headers: init?.headers })
    const secret = `secret-${posts.length}`
    const { status, body } = answers.shift() ?? {
      status: 201,
      body: {
        instanceId: posts.at(-1)?.body['instanceId'] ?? 'worker_1',
        secret,
        websocketUrl: 'ws://127.0.0.1:3300/worker',
      },
    }
    return Promise.resolve({ ok: status < 400, status, text: () => Promise.resolve(JSON.stringify(body)) })
  }
  const connecting = connectInstance('http://127.0.0.1:3300', {
    tools: [add],
    fetch,
    WebSocket: sockets.WebSocket,
    clock,
    reconnect: { initialMs: 100, maxMs: 1000, jitter: 0 },
    onError: (error) => errors.push(error),
    ...options,
  })
  connecting.catch(() => undefined)
  onTestFinished(async () => {
    sockets.answersClose = true
    await connecting.then(
      (worker) => worker.close(),
      () => undefined,
    )
    if (clock.pending > 0) throw new Error(`${clock.pending} timers outlive the worker`)
    const open = sockets.sockets.filter(({ closedWith }) => closedWith === undefined)
    if (open.length > 0) throw new Error(`${open.length} sockets outlive the worker`)
  })
  /** Accepts the connection of the worker. */
  const accept = async (): Promise<ScriptedSocket> => {
    await settle()
    const socket = sockets.last
    socket.open()
    socket.receive({ type: 'welcome', instanceId: 'worker_1' })
    await settle()
    return socket
  }
  return { clock, sockets, posts, errors, answers, connecting, accept }
}

const toolCall = (callId: string, name: string, args: Record<string, unknown> = {}) => ({
  type: 'tool_call',
  callId,
  name,
  arguments: { ...args, instanceId: 'worker_1' },
  taskId: 't1',
  commandId: 'cmd_1',
})

describe('connectTimeoutMs', () => {
  /** The server answers after so many attempts; 503 counts as not there yet. */
  const startsAfter = (failures: number) => {
    let attempts = 0
    const fetch: FetchLike = () => {
      attempts += 1
      if (attempts <= failures && attempts % 2 === 1) return Promise.reject(new TypeError('fetch failed'))
      const body = { instanceId: 'worker_1', secret: 's', websocketUrl: 'ws://127.0.0.1:3300/worker' }
      const isThere = attempts > failures
      const text = JSON.stringify(isThere ? body : { error: 'The server is shutting down', code: 'SHUTTING_DOWN' })
      return Promise.resolve({ ok: isThere, status: isThere ? 201 : 503, text: () => Promise.resolve(text) })
    }
    return { fetch, attempts: () => attempts }
  }

  it('waits for a server that is not there yet, with the back-off of reconnections', async () => {
    const server = startsAfter(3)
    const { clock, connecting, accept, errors } = setUp({ fetch: server.fetch, connectTimeoutMs: 1000 })
    for (const [at, delay] of [100, 200, 400].entries()) {
      await settle()
      expect(server.attempts()).toBe(at + 1)
      clock.advance(delay - 1)
      await settle()
      expect(server.attempts()).toBe(at + 1)
      clock.advance(1)
    }
    await accept()
    expect((await connecting).isConnected).toBe(true)
    expect(errors).toHaveLength(3)
  })

  it('rejects with the last error when the time is over, after one last attempt', async () => {
    const server = startsAfter(Infinity)
    const { clock, connecting } = setUp({ fetch: server.fetch, connectTimeoutMs: 250 })
    await settle()
    clock.advance(100)
    await settle()
    clock.advance(150)
    await expect(connecting).rejects.toMatchObject({ code: 'CONNECTION_FAILED' })
    expect(server.attempts()).toBe(3)
  })

  it.each([502, 503, 504, 500])(
    'waits for a server behind a proxy that answers 502 to 504, here %d',
    async (status) => {
      let attempts = 0
      const fetch: FetchLike = () => {
        attempts += 1
        return Promise.resolve({ ok: false, status, text: () => Promise.resolve('{}') })
      }
      const { clock, connecting } = setUp({ fetch, connectTimeoutMs: 100 })
      const refused = expect(connecting).rejects.toMatchObject({ code: `HTTP_${status}` })
      await settle()
      clock.advance(100)
      await refused
      expect(attempts).toBe(status === 500 ? 1 : 2)
    },
  )

  it('is one attempt by default, and reports a refusal at once', async () => {
    await expect(setUp({ fetch: startsAfter(1).fetch }).connecting).rejects.toMatchObject({ code: 'CONNECTION_FAILED' })
    const body = JSON.stringify({ error: 'The token is not valid.', code: 'UNAUTHORIZED' })
    const fetch: FetchLike = () => Promise.resolve({ ok: false, status: 401, text: () => Promise.resolve(body) })
    const { connecting } = setUp({ fetch, connectTimeoutMs: Infinity })
    await expect(connecting).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
  })

  it('connects again when the server ends between the registration and the welcome', async () => {
    const { clock, sockets, connecting, accept } = setUp({ connectTimeoutMs: 1000 })
    await settle()
    sockets.last.lose()
    await settle()
    clock.advance(100)
    await accept()
    expect((await connecting).isConnected).toBe(true)
    const { sockets: others, connecting: alone } = setUp()
    await settle()
    others.last.lose()
    await expect(alone).rejects.toMatchObject({ code: expect.any(String) as string })
  })
})

describe('a worker', () => {
  it.each([
    ['ws://elsewhere.example/worker', 'http://127.0.0.1:3300'],
    ['ws://127.0.0.1.elsewhere.example/worker', 'http://127.0.0.1:3300'],
    ['http://127.0.0.1:3300/worker', 'http://127.0.0.1:3300'],
    ['not a url', 'http://127.0.0.1:3300'],
    ['ws://tasks.example/worker', 'https://tasks.example'],
  ])('opens no socket at %s, which %s names', async (websocketUrl, url) => {
    const sockets = scriptSockets()
    const answer = JSON.stringify({ instanceId: 'worker_1', secret: 'secret', websocketUrl })
    const fetch: FetchLike = () => Promise.resolve({ ok: true, status: 201, text: () => Promise.resolve(answer) })
    const clock = createManualClock()
    const options = { tools: [add], token: 'secret', fetch, WebSocket: sockets.WebSocket, clock }
    await expect(connectInstance(url, options)).rejects.toMatchObject({
      code: 'BAD_ANSWER',
      message: expect.stringContaining('as the URL for workers. Expected a URL with ') as string,
    })
    expect(sockets.sockets).toEqual([])
    expect(clock.pending).toBe(0)
  })

  it.each([
    ['wss://tasks.example/worker', 'http://tasks.example', 'wss://tasks.example/worker'],
    ['wss://tasks.example:8443/worker', 'https://tasks.example', 'wss://tasks.example:8443/worker'],
    // The loopback address of a server on another machine is not that of this one.
    ['ws://127.0.0.1:3300/worker', 'http://192.168.1.5:3300', 'ws://192.168.1.5:3300/worker'],
    ['ws://[::1]:4000/worker', 'http://localhost:3300', 'ws://localhost:4000/worker'],
    ['wss://127.0.0.1:3300/worker', 'https://tasks.example', 'wss://tasks.example:3300/worker'],
  ])('for %s, which %s names, opens its socket at %s', (websocketUrl, url, opened) => {
    expect(workerSocketOf(url, websocketUrl)).toBe(opened)
  })

  it('checks the address of each registration', async () => {
    const { accept, answers, sockets, connecting, clock } = setUp()
    const first = await accept()
    const worker = await connecting
    answers.push({
      status: 201,
      body: { instanceId: 'worker_1', secret: 'other', websocketUrl: 'ws://elsewhere.example/worker' },
    })
    first.lose(WORKER_CLOSE.refused)
    await settle()
    clock.advance(100)
    await settle()
    expect(sockets.sockets).toHaveLength(1)
    expect(worker.isConnected).toBe(false)
  })

  it('registers, sends hello with its secret and tools, and is connected after the welcome', async () => {
    const { connecting, posts, sockets } = setUp({ id: 'browser-1', token: 'server-token' })
    let isThere = false
    void connecting.then(() => (isThere = true))
    await settle()
    expect(posts[0]?.url).toBe('http://127.0.0.1:3300/register')
    expect(posts[0]?.headers).toMatchObject({ authorization: 'Bearer server-token' })
    expect(posts[0]?.body).toMatchObject({ instanceId: 'browser-1', tools: [{ name: 'add', description: 'Adds.' }] })
    expect(posts[0]?.body['tools']).toMatchObject([{ inputSchema: { type: 'object', required: ['a', 'b'] } }])
    const socket = sockets.last
    expect(socket.url).toBe('ws://127.0.0.1:3300/worker')
    socket.open()
    await settle()
    expect(socket.sent).toMatchObject([
      { type: 'authenticate', token: 'server-token' },
      { type: 'hello', instanceId: 'browser-1', secret: 'secret-1', tools: [{ name: 'add' }] },
    ])
    expect(isThere).toBe(false)
    socket.receive({ type: 'welcome', instanceId: 'browser-1' })
    const worker = await connecting
    expect([worker.instanceId, worker.isConnected]).toEqual(['browser-1', true])
  })

  it('runs a tool with validated input, and sends its result', async () => {
    const { accept } = setUp()
    const socket = await accept()
    socket.receive(toolCall('c1', 'add', { a: 1, b: 2 }))
    await settle()
    expect(socket.sentOf('tool_result')).toEqual([
      {
        type: 'tool_result',
        callId: 'c1',
        result: { content: [{ type: 'text', text: '{"sum":3}' }], structuredContent: { sum: 3 } },
      },
    ])
  })

  it('passes instanceId only to a tool whose schema has it', async () => {
    const seen: unknown[] = []
    const tools = [
      instanceTool({
        name: 'asks',
        inputSchema: z.object({ instanceId: z.string() }),
        execute: (input) => void seen.push(input),
      }),
      instanceTool({ name: 'takes', execute: (input) => void seen.push(input) }),
    ]
    const { accept } = setUp({ tools })
    const socket = await accept()
    socket.receive(toolCall('c1', 'asks'))
    await settle()
    socket.receive(toolCall('c2', 'takes', { x: 1 }))
    await settle()
    expect(seen).toEqual([{ instanceId: 'worker_1' }, { x: 1, instanceId: 'worker_1' }])
  })

  it.each([
    ['input that does not fit', toolCall('c1', 'add', { a: 'x', b: 2 }), 'INVALID_ARGUMENTS', 'arguments.a: got "x"'],
    ['a tool that throws', toolCall('c1', 'broken'), 'NOT_FOUND', 'no such button'],
  ])('answers %s with a result that is an error', async (_what, message, code, text) => {
    const broken = instanceTool({
      name: 'broken',
      execute: () => {
        throw Object.assign(new Error('no such button'), { code: 'NOT_FOUND' })
      },
    })
    const { accept } = setUp({ tools: [add, broken] })
    const socket = await accept()
    socket.receive(message)
    await settle()
    const [{ result } = {}] = socket.sentOf('tool_result')
    expect(result).toMatchObject({ isError: true, _meta: { code } })
    expect(JSON.stringify(result)).toContain(JSON.stringify(text).slice(1, -1))
  })

  it('answers a call of an unknown tool, and a result that is too large, with an error', async () => {
    const big = instanceTool({ name: 'big', execute: () => 'ä'.repeat(600) })
    const { accept } = setUp({ tools: [big], maxFrameBytes: 1000 })
    const socket = await accept()
    socket.receive(toolCall('c1', 'nothing'))
    socket.receive(toolCall('c2', 'big'))
    await settle()
    expect(socket.sentOf('tool_error')).toMatchObject([
      { callId: 'c1', code: 'UNKNOWN_TOOL', message: 'Unknown tool: "nothing", expected one of the names big.' },
      { callId: 'c2', code: 'RESULT_TOO_LARGE' },
    ])
    expect(socket.sentOf('tool_result')).toEqual([])
  })

  it('sends a result of the most bytes that a frame may have, and none of a byte more', async () => {
    const long = instanceTool({ name: 'long', execute: () => 'ä'.repeat(300) })
    const frameOf = async (maxFrameBytes?: number) => {
      const { accept } = setUp({ tools: [long], ...(maxFrameBytes !== undefined && { maxFrameBytes }) })
      const socket = await accept()
      socket.receive(toolCall('c1', 'long'))
      await settle()
      return socket.sent.at(-1)
    }
    const whole = await frameOf()
    const bytes = Buffer.byteLength(JSON.stringify(whole))
    expect(whole).toMatchObject({ type: 'tool_result', callId: 'c1' })
    expect(await frameOf(bytes)).toEqual(whole)
    expect(await frameOf(bytes - 1)).toEqual({
      type: 'tool_error',
      callId: 'c1',
      code: 'RESULT_TOO_LARGE',
      message: `The message with the result has ${bytes} bytes. The maximum is ${bytes - 1} bytes (maxFrameBytes).`,
    })
  })

  it('sends the code of an error as the tool gave it, a number as a number, and 10,000 characters of its message', async () => {
    const codes = [-32001, 'NO_ROOM']
    const failing = instanceTool({
      name: 'fail',
      execute: () => {
        throw new ToolCallError(codes.shift() ?? '', 'x'.repeat(10_001))
      },
    })
    const { accept } = setUp({ tools: [failing] })
    const socket = await accept()
    for (const callId of ['c1', 'c2']) {
      socket.receive(toolCall(callId, 'fail'))
      await settle()
    }
    const message = 'x'.repeat(10_000)
    expect(socket.sentOf('tool_error')).toEqual([
      { type: 'tool_error', callId: 'c1', code: -32001, message },
      { type: 'tool_error', callId: 'c2', code: 'NO_ROOM', message },
    ])
  })

  it('sends progress only while the call runs', async () => {
    const { tool, calls } = holding()
    const { accept } = setUp({ tools: [tool] })
    const socket = await accept()
    socket.receive(toolCall('c1', 'hold'))
    await settle()
    expect(calls[0]?.context).toMatchObject({ taskId: 't1', commandId: 'cmd_1' })
    calls[0]?.context.progress(1)
    calls[0]?.context.progress({ progress: 2, total: 4, message: 'half' })
    calls[0]?.end('done')
    await settle()
    calls[0]?.context.progress(3)
    expect(socket.sentOf('tool_progress')).toEqual([
      { type: 'tool_progress', callId: 'c1', progress: 1 },
      { type: 'tool_progress', callId: 'c1', progress: 2, total: 4, message: 'half' },
    ])
    expect(socket.sentOf('tool_result')).toHaveLength(1)
  })

  it('W1: aborts a cancelled call, and answers when its tool has settled', async () => {
    const { tool, calls } = holding()
    const { accept, connecting } = setUp({ tools: [tool] })
    const socket = await accept()
    const worker = await connecting
    for (const callId of ['c1', 'c2']) socket.receive(toolCall(callId, 'hold'))
    await settle()
    socket.receive({ type: 'tool_cancel', callId: 'c1', reason: 'enough' })
    socket.receive({ type: 'tool_cancel', callId: 'c1' })
    socket.receive({ type: 'tool_cancel', callId: 'unknown' })
    expect([calls[0]?.context.signal.aborted, calls[1]?.context.signal.aborted]).toEqual([true, false])
    expect(worker.runningCalls).toBe(2)
    expect(socket.sentOf('tool_error')).toEqual([])
    calls[0]?.end(new Error('stopped'))
    calls[1]?.end('done')
    await settle()
    expect(socket.sentOf('tool_error')).toEqual([
      { type: 'tool_error', callId: 'c1', code: 'CANCELLED', message: 'stopped' },
    ])
    expect(socket.sentOf('tool_result')).toMatchObject([{ callId: 'c2' }])
    expect(worker.runningCalls).toBe(0)
  })

  it('S4: does not start a call whose cancel came in the same moment', async () => {
    const { tool, calls } = holding()
    const { accept } = setUp({ tools: [tool] })
    const socket = await accept()
    socket.receive({ type: 'tool_call', callId: 'call_1', name: 'hold', arguments: {} })
    socket.receive({ type: 'tool_cancel', callId: 'call_1', reason: 'too slow' })
    await settle()
    expect(calls).toEqual([])
    expect(socket.sentOf('tool_error')).toEqual([
      { type: 'tool_error', callId: 'call_1', code: 'CANCELLED', message: 'too slow' },
    ])
  })

  it('W1: runs a repeated call once', async () => {
    const { tool, calls } = holding()
    const { accept } = setUp({ tools: [tool] })
    const socket = await accept()
    socket.receive(toolCall('c1', 'hold'))
    socket.receive(toolCall('c1', 'hold'))
    await settle()
    expect(calls).toHaveLength(1)
  })

  it('answers pings, and ignores unknown messages', async () => {
    const { accept, errors } = setUp()
    const socket = await accept()
    for (const frame of ['{', 'null', '{"type":"from_the_future"}', '{"type":"tool_call"}']) socket.receiveRaw(frame)
    socket.receive({ type: 'ping' })
    socket.receive({ type: 'welcome', instanceId: 'worker_1' })
    expect(socket.sentOf('pong')).toHaveLength(1)
    socket.receive({ type: 'error', message: 'm', error: 'm', code: 'INVALID_MESSAGE' })
    expect(errors).toMatchObject([{ code: 'INVALID_MESSAGE', message: 'm' }])
  })
})

describe('a worker that loses its connection', () => {
  it('reconnects with the same id and secret, aborts running calls, and does not answer them on the new socket', async () => {
    const { tool, calls } = holding()
    const { accept, connecting, clock, posts, errors } = setUp({ tools: [tool] })
    const first = await accept()
    const worker = await connecting
    first.receive(toolCall('c1', 'hold'))
    await settle()
    first.lose()
    expect(calls[0]?.context.signal.aborted).toBe(true)
    expect([worker.isConnected, worker.runningCalls]).toEqual([false, 0])
    expect(errors).toMatchObject([{ code: 'CONNECTION_LOST' }])
    clock.advance(100)
    const second = await accept()
    expect(second.sentOf('hello')).toMatchObject([{ instanceId: 'worker_1', secret: 'secret-1' }])
    expect(posts).toHaveLength(1)
    second.receive(toolCall('c1', 'hold'))
    await settle()
    calls[0]?.end('late')
    calls[1]?.end('fresh')
    await settle()
    expect(second.sentOf('tool_result')).toMatchObject([{ callId: 'c1', result: { content: [{ text: 'fresh' }] } }])
  })

  it('W2: registers again, with its id, when the server no longer knows it', async () => {
    const { accept, connecting, clock, sockets, posts, answers } = setUp()
    const first = await accept()
    const worker = await connecting
    first.lose(1001)
    clock.advance(100)
    await settle()
    sockets.last.open()
    sockets.last.receive({ type: 'error', message: 'Register again.', error: 'Register again.', code: 'UNAUTHORIZED' })
    sockets.last.lose(4401, 'Register again.')
    // Its old registration may keep the id for a while.
    answers.push({ status: 409, body: { error: 'in use', code: 'INSTANCE_ID_IN_USE' } })
    clock.advance(200)
    await settle()
    expect(posts).toHaveLength(2)
    clock.advance(400)
    const third = await accept()
    expect(posts.map(({ body }) => body['instanceId'])).toEqual([undefined, 'worker_1', 'worker_1'])
    expect(third.sentOf('hello')).toMatchObject([{ instanceId: 'worker_1', secret: 'secret-3' }])
    expect([worker.isConnected, worker.instanceId]).toEqual([true, 'worker_1'])
    third.lose()
    clock.advance(100)
    const fourth = await accept()
    expect(fourth.sentOf('hello')).toMatchObject([{ secret: 'secret-3' }])
    expect(posts).toHaveLength(3)
  })

  it('W2: ends with TAKEN_OVER when another worker took over', async () => {
    const { accept, connecting, clock, sockets } = setUp()
    const socket = await accept()
    const worker = await connecting
    socket.lose(4409, 'taken over')
    expect(await worker.closed).toMatchObject({ code: 'TAKEN_OVER' })
    clock.advance(60_000)
    await settle()
    expect(sockets.sockets).toHaveLength(1)
  })

  it('W2: ends with INSTANCE_DISCONNECTED when the server disconnected it on purpose', async () => {
    const { accept, connecting, clock, sockets } = setUp()
    const socket = await accept()
    const worker = await connecting
    socket.lose(4410, 'The instance was disconnected.')
    expect(await worker.closed).toMatchObject({ code: 'INSTANCE_DISCONNECTED' })
    clock.advance(60_000)
    await settle()
    expect(sockets.sockets).toHaveLength(1)
  })

  it.each([
    [4408, 'The worker showed no sign of life.'],
    [1001, 'The server goes away.'],
  ])('comes back when the server closed its connection with %d (%s)', async (code, reason) => {
    const { accept, connecting, clock, errors } = setUp()
    const socket = await accept()
    const worker = await connecting
    socket.lose(code, reason)
    clock.advance(100)
    await accept()
    expect([worker.isConnected, errors]).toEqual([true, [expect.objectContaining({ code: 'CONNECTION_LOST' })]])
  })

  it('reconnects although its onError throws', async () => {
    const { accept, connecting, clock } = setUp({
      onError: () => {
        throw new Error('a bug of the caller')
      },
    })
    const socket = await accept()
    const worker = await connecting
    socket.lose()
    clock.advance(100)
    await accept()
    expect(worker.isConnected).toBe(true)
  })

  it('ends when its token is rejected, or no attempt is left', async () => {
    const refused = setUp({ token: 'once-right' })
    const first = await refused.accept()
    const worker = await refused.connecting
    first.lose(1008, 'no')
    expect(await worker.closed).toMatchObject({ code: 'UNAUTHORIZED' })
    const once = setUp({ reconnect: false })
    const socket = await once.accept()
    const other = await once.connecting
    socket.lose()
    expect(await other.closed).toMatchObject({ code: 'CONNECTION_LOST' })
  })

  it('is not told of an error before the welcome as the reason for the end of a later connection', async () => {
    const { sockets, connecting, clock } = setUp({ token: 'not-needed' })
    await settle()
    const socket = sockets.last
    socket.open()
    socket.receive({ type: 'error', code: 'NO_TOKEN_NEEDED', message: 'm', error: 'No token is needed.' })
    socket.receive({ type: 'welcome', instanceId: 'worker_1' })
    const worker = await connecting
    clock.advance(1)
    socket.lose(1008, 'no')
    expect(await worker.closed).toMatchObject({ code: 'UNAUTHORIZED' })
  })

  it('pings a silent server, and drops a connection without an answer', async () => {
    const { accept, clock, sockets } = setUp({ heartbeatMs: 1000 })
    const socket = await accept()
    clock.advance(900)
    socket.receive({ type: 'ping' })
    clock.advance(999)
    expect(socket.sentOf('ping')).toHaveLength(0)
    clock.advance(1)
    expect(socket.sentOf('ping')).toHaveLength(1)
    socket.receive({ type: 'pong' })
    clock.advance(1000)
    expect(socket.closedWith).toBeUndefined()
    clock.advance(1000)
    expect(socket.closedWith).toBeDefined()
    clock.advance(100)
    await settle()
    expect(sockets.sockets).toHaveLength(2)
  })
})

describe('a worker whose tool goes on after its connection was lost', () => {
  it('W1: names that call in its next hello, and answers it there once, when the tool has stopped', async () => {
    const { tool, calls } = holding()
    const { accept, connecting, clock } = setUp({ tools: [tool] })
    const first = await accept()
    await connecting
    first.receive(toolCall('c1', 'hold'))
    first.receive(toolCall('c2', 'hold'))
    await settle()
    first.lose()
    calls[1]?.end('before the next connection')
    await settle()
    clock.advance(100)
    const second = await accept()
    expect(second.sentOf('hello')).toMatchObject([{ calls: ['c1'] }])
    second.receive({ type: 'tool_cancel', callId: 'c1' })
    calls[0]?.end('late')
    await settle()
    expect(second.sent.slice(1)).toMatchObject([{ type: 'tool_error', callId: 'c1', code: 'CANCELLED' }])
    second.lose()
    clock.advance(100)
    const third = await accept()
    expect(third.sentOf('hello')[0]).not.toHaveProperty('calls')
  })

  it('names it again in each hello, and at most the last hundred', async () => {
    const { tool, calls } = holding()
    const { accept, connecting, clock } = setUp({ tools: [tool] })
    const first = await accept()
    await connecting
    for (let n = 0; n < 101; n += 1) first.receive(toolCall(`c${n}`, 'hold'))
    await settle()
    first.lose()
    clock.advance(100)
    const second = await accept()
    const named = Array.from({ length: 100 }, (_, n) => `c${n + 1}`)
    expect(second.sentOf('hello')).toMatchObject([{ calls: named }])
    second.lose()
    calls[7]?.end('between two connections')
    await settle()
    expect(second.sent).toHaveLength(1)
    clock.advance(100)
    const third = await accept()
    expect(third.sentOf('hello')).toMatchObject([{ calls: ['c0', ...named].filter((callId) => callId !== 'c7') }])
    for (const { end } of calls) end('at last')
  })

  it('does not answer it on a connection whose hello has not named it', async () => {
    const { tool, calls } = holding()
    const { accept, connecting, clock } = setUp({ tools: [tool] })
    const first = await accept()
    await connecting
    first.receive(toolCall('c0', 'hold'))
    await settle()
    first.lose()
    clock.advance(100)
    const second = await accept()
    expect(second.sentOf('hello')).toMatchObject([{ calls: ['c0'] }])
    for (let n = 1; n <= 100; n += 1) second.receive(toolCall(`c${n}`, 'hold'))
    await settle()
    second.lose()
    clock.advance(100)
    const third = await accept()
    calls[0]?.end('late')
    calls[1]?.end('late')
    await settle()
    expect(third.sentOf('tool_error').map(({ callId }) => callId)).toEqual(['c1'])
    for (const { end } of calls) end('at last')
  })
})

describe('abort listeners of a tool', () => {
  it.each(['cancel', 'loss', 'close'])(
    'may throw on a %s: that is reported, and nothing else changes',
    async (what) => {
      const { tool, calls } = holding()
      const { accept, connecting, errors } = setUp({ tools: [tool, add] })
      const socket = await accept()
      const worker = await connecting
      for (const callId of ['call_1', 'call_2']) {
        socket.receive({ type: 'tool_call', callId, name: 'hold', arguments: {} })
      }
      await settle()
      const heard: string[] = []
      for (const [at, { context }] of calls.entries()) {
        context.signal.addEventListener('abort', () => {
          throw new Error(`listener ${at}`)
        })
        context.signal.addEventListener('abort', () => heard.push(`listener ${at}`))
      }
      if (what === 'cancel') {
        socket.receive({ type: 'tool_cancel', callId: 'call_1' })
        socket.receive({ type: 'tool_cancel', callId: 'call_2' })
      } else if (what === 'loss') socket.lose()
      else await worker.close()
      await settle()
      expect(errors.filter((error) => String(error).includes('listener')).map(String)).toEqual([
        'Error: listener 0',
        'Error: listener 1',
      ])
      expect(heard).toEqual(['listener 0', 'listener 1'])
      for (const { end } of calls) end('stopped')
      await settle()
      expect(socket.sentOf('tool_result')).toHaveLength(what === 'cancel' ? 2 : 0)
    },
  )
})

describe('a worker that cannot connect', () => {
  it('rejects with the code of the server when the registration is refused', async () => {
    const body = '{"error":"who?","code":"UNAUTHORIZED"}'
    const fetch: FetchLike = () => Promise.resolve({ ok: false, status: 401, text: () => Promise.resolve(body) })
    const { connecting, sockets } = setUp({ fetch })
    await expect(connecting).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
      message: 'who? Pass a token of the server: the option `token`, or AGENT_TASKS_TOKEN for the command line.',
      status: 401,
    })
    expect(sockets.sockets).toHaveLength(0)
  })

  it('rejects without a retry when the server refuses its hello, or there is no connection', async () => {
    const refused = setUp()
    await settle()
    refused.sockets.last.open()
    refused.sockets.last.receive({ type: 'error', message: 'wrong', error: 'wrong', code: 'UNAUTHORIZED' })
    refused.sockets.last.lose(4401)
    await expect(refused.connecting).rejects.toMatchObject({ code: 'UNAUTHORIZED', message: 'wrong' })
    const failed = setUp()
    await settle()
    failed.sockets.last.lose()
    await expect(failed.connecting).rejects.toMatchObject({ code: 'CONNECTION_FAILED' })
    failed.clock.advance(60_000)
    await settle()
    expect(failed.sockets.sockets).toHaveLength(1)
  })

  it('rejects two tools with the same name', async () => {
    await expect(connectInstance('http://127.0.0.1:1', { tools: [add, add] })).rejects.toMatchObject({
      code: 'INVALID_INPUT',
    })
  })
})

describe('closing a worker', () => {
  it('aborts running calls, sends nothing more, and leaves no timer and no socket', async () => {
    const { tool, calls } = holding()
    const { accept, connecting, clock } = setUp({ tools: [tool] })
    const socket = await accept()
    const worker = await connecting
    socket.receive(toolCall('c1', 'hold'))
    await settle()
    await worker.close()
    expect(calls[0]?.context.signal.aborted).toBe(true)
    calls[0]?.end('late')
    await settle()
    expect(socket.closedWith).toBe(1000)
    expect(await worker.closed).toBeUndefined()
    expect(clock.pending).toBe(0)
    await worker[Symbol.asyncDispose]()
  })

  it('ends one that waits to reconnect', async () => {
    const { accept, connecting, clock, sockets } = setUp()
    const socket = await accept()
    const worker = await connecting
    socket.lose()
    await worker.close()
    clock.advance(60_000)
    await settle()
    expect(sockets.sockets).toHaveLength(1)
  })
})

describe('onConnection', () => {
  it('says when the worker can take calls, and when it cannot', async () => {
    const changes: boolean[] = []
    const { accept, connecting, clock, sockets } = setUp({ onConnection: (isConnected) => changes.push(isConnected) })
    const first = await accept()
    const worker = await connecting
    expect(changes).toEqual([true])
    first.lose()
    expect(changes).toEqual([true, false])
    clock.advance(100)
    await settle()
    // An attempt that fails changes nothing.
    sockets.last.lose()
    clock.advance(200)
    await accept()
    expect(changes).toEqual([true, false, true])
    sockets.answersClose = true
    await worker.close()
    await worker.close()
    expect(changes).toEqual([true, false, true, false])
  })

  it('reports what it throws, and goes on', async () => {
    const { accept, connecting, errors } = setUp({
      onConnection: () => {
        throw new Error('broken')
      },
    })
    await accept()
    expect((await connecting).isConnected).toBe(true)
    expect(errors).toMatchObject([{ message: 'broken' }])
  })
})
