/** Requests over the client socket, also when the connection fails. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { AgentTasksError } from '../../../src/errors.js'
import { InvalidInputError, InvalidSettingError } from '../../../src/errors.js'
import { createTaskClient } from '../../../src/client/task-client.js'
import { ConnectionError, TaskServerError } from '../../../src/client/client-errors.js'
import { scriptSockets, settle } from '../../support/scripted-sockets.js'
import { setUpClient, snapshot, submission, welcome } from './client-host.js'

/** The error that a promise rejects with. */
const failure = (promise: Promise<unknown>): Promise<AgentTasksError> =>
  promise.then(
    () => {
      throw new Error('expected a rejection')
    },
    (error: unknown) => error as AgentTasksError,
  )

describe('a request', () => {
  it('opens the connection when it is the first', async () => {
    const { sockets, client } = setUpClient()
    await settle()
    expect(sockets.sockets).toHaveLength(0)
    void client.list().catch(() => undefined)
    await settle()
    expect(sockets.last.url).toBe('ws://127.0.0.1:3300/ws')
  })

  it('is sent after the welcome, and gets the answer with its id', async () => {
    const { client, sockets } = setUpClient()
    const [first, second] = [client.get('a'), client.get('b')]
    await settle()
    sockets.last.open()
    expect(sockets.last.sent).toEqual([])
    sockets.last.receive(welcome())
    const [one, two] = sockets.last.sentOf('task_status')
    expect([one?.['taskId'], two?.['taskId']]).toEqual(['a', 'b'])
    sockets.last.receive({ type: 'task_status_response', requestId: two?.['requestId'], task: snapshot('b') })
    sockets.last.receive({
      type: 'task_status_response',
      requestId: one?.['requestId'],
      task: null,
      error: 'Task not found',
    })
    expect(await first).toBeUndefined()
    expect(await second).toEqual(snapshot('b'))
  })

  it('lists with filters and a cursor', async () => {
    const { client, accept, answer } = setUpClient()
    const page = client.list({ instanceId: 'calc', status: 'running', limit: 5, cursor: 'c1' })
    const socket = await accept()
    expect(socket.sent[0]).toMatchObject({ instanceId: 'calc', status: 'running', limit: 5, cursor: 'c1' })
    await answer(socket, 'task_list', { type: 'task_list_response', tasks: [], nextCursor: 'c2' })
    expect(await page).toEqual({ tasks: [], nextCursor: 'c2' })
    const last = client.list()
    await answer(socket, 'task_list', { type: 'task_list_response', tasks: [] })
    expect(await last).toEqual({ tasks: [] })
  })

  it('submits, or rejects with the code of the server', async () => {
    const { client, accept, answer } = setUpClient()
    const submitted = client.submit(submission)
    const socket = await accept()
    const type = 'task_submit_response'
    await answer(socket, 'task_submit', { type, success: true, status: 'accepted', taskId: 't1', queuePosition: 3 })
    expect(await submitted).toEqual({ taskId: 't1', queuePosition: 3 })
    expect(socket.sent[0]).toMatchObject({ ...submission, type: 'task_submit' })
    const refused = failure(client.submit(submission))
    await answer(socket, 'task_submit', { type, success: false, status: 'rejected', error: 'full', code: 'QUEUE_FULL' })
    expect(await refused).toBeInstanceOf(TaskServerError)
    expect(await refused).toMatchObject({ code: 'QUEUE_FULL', message: 'full' })
  })

  it('distinguishes a late cancel from one of an unknown task', async () => {
    const { client, accept, answer } = setUpClient()
    const type = 'task_cancel_response'
    const done = client.cancel('a')
    const socket = await accept()
    await answer(socket, 'task_cancel', { type, taskId: 'a', success: true })
    expect(await done).toBe(true)
    const late = client.cancel('a')
    await answer(socket, 'task_cancel', { type, taskId: 'a', success: false, error: 'over', code: 'TASK_ENDED' })
    expect(await late).toBe(false)
    const unknown = failure(client.cancel('b'))
    await answer(socket, 'task_cancel', { type, taskId: 'b', success: false, error: 'none', code: 'TASK_NOT_FOUND' })
    expect(await unknown).toMatchObject({ code: 'TASK_NOT_FOUND' })
  })

  it('rejects with the code of an error message with its id', async () => {
    const { client, accept, answer } = setUpClient()
    const refused = failure(client.submit({ ...submission, task_name: '' }))
    const socket = await accept()
    await answer(socket, 'task_submit', {
      type: 'error',
      message: 'message.task_name: too short',
      error: 'Invalid message',
      code: 'INVALID_TASK',
    })
    expect(await refused).toMatchObject({ code: 'INVALID_TASK', message: 'message.task_name: too short' })
  })

  it('rejects when the answer is invalid, with its code if it has one', async () => {
    const { client, accept, answer } = setUpClient()
    const odd = failure(client.list())
    const socket = await accept()
    await answer(socket, 'task_list', { type: 'task_list_response', tasks: 'none' })
    expect(await odd).toMatchObject({ code: 'BAD_ANSWER' })
    const other = failure(client.list())
    await answer(socket, 'task_list', { type: 'unsubscribe_ack' })
    expect(await other).toMatchObject({ code: 'BAD_ANSWER' })
    const later = failure(client.submit(submission))
    await answer(socket, 'task_submit', {
      type: 'task_submit_response',
      success: false,
      status: 'rejected',
      error: 'a reason of a later version',
      code: 'OUT_OF_PAPER',
    })
    expect(await later).toMatchObject({ code: 'OUT_OF_PAPER', message: 'a reason of a later version' })
  })

  it('ignores frames that are not JSON, unknown types, and answers without a request', async () => {
    const { client, accept, answer } = setUpClient()
    const page = client.list()
    const socket = await accept()
    for (const frame of ['{', '7', 'null', '[]', '{"type":"from_the_future"}', new ArrayBuffer(2)]) {
      socket.receiveRaw(frame)
    }
    socket.receive({ type: 'task_list_response', tasks: [], requestId: 'r999' })
    socket.receive({ type: 'error', message: 'm', error: 'e', code: 'C' })
    await answer(socket, 'task_list', { type: 'task_list_response', tasks: [] })
    expect(await page).toEqual({ tasks: [] })
  })

  it('rejects a task that JSON cannot represent, and sends nothing', async () => {
    const { client, sockets } = setUpClient()
    const circular: Record<string, unknown> = {}
    circular['self'] = circular
    expect(await failure(client.submit({ ...submission, metadata: circular }))).toBeInstanceOf(InvalidInputError)
    await settle()
    expect(sockets.sockets).toHaveLength(0)
  })
})

describe('a token', () => {
  it('is the first message, when the server requires one', async () => {
    const { client, sockets, answer } = setUpClient({ token: 'secret-token' })
    const page = client.list()
    await settle()
    const socket = sockets.last
    socket.open()
    socket.receive(welcome(true))
    expect(socket.sent).toEqual([{ type: 'authenticate', token: 'secret-token' }])
    socket.receive({ type: 'authenticate_response', success: true })
    await answer(socket, 'task_list', { type: 'task_list_response', tasks: [] })
    expect(await page).toEqual({ tasks: [] })
  })

  it('is not sent when the server requires none', async () => {
    const { client, accept, answer } = setUpClient({ token: 'secret-token' })
    void client.list()
    const socket = await accept()
    await answer(socket, 'task_list', { type: 'task_list_response', tasks: [] })
    expect(JSON.stringify(socket.sent)).not.toContain('secret-token')
  })

  it.each([
    ['refused', { type: 'authenticate_response', success: false, error: 'no such token', code: 'UNAUTHORIZED' }],
    ['answered with an error', { type: 'error', message: 'no such token', error: 'e', code: 'UNAUTHORIZED' }],
  ])('that is %s fails what waits, and is not tried again', async (_how, refusal) => {
    const { client, clock, sockets } = setUpClient({ token: 'wrong-token' })
    const [page, watch] = [failure(client.list()), client.watch('t1')[Symbol.asyncIterator]()]
    const watched = failure(watch.next())
    await settle()
    sockets.last.open()
    sockets.last.receive(welcome(true))
    sockets.last.receive(refusal)
    expect(await page).toMatchObject({
      code: 'UNAUTHORIZED',
      message: expect.stringMatching(/^no such token\. .*`token`/) as string,
    })
    expect(await watched).toMatchObject({ code: 'UNAUTHORIZED' })
    clock.advance(60_000)
    await settle()
    expect(sockets.sockets).toHaveLength(1)
    // A later request starts a new attempt.
    const later = failure(client.list())
    await settle()
    sockets.last.lose()
    expect(await later).toMatchObject({ code: 'CONNECTION_FAILED' })
  })

  it('that is missing is reported', async () => {
    const { client, sockets } = setUpClient()
    const page = failure(client.list())
    await settle()
    sockets.last.open()
    sockets.last.receive(welcome(true))
    expect(await page).toMatchObject({ code: 'UNAUTHORIZED' })
  })

  it('that is refused by closing the socket is UNAUTHORIZED, also on a later connection', async () => {
    const { client, accept, answer, clock, sockets } = setUpClient({ token: 'once-right' })
    const page = client.list()
    const socket = await accept()
    await answer(socket, 'task_list', { type: 'task_list_response', tasks: [] })
    await page
    const next = failure(client.list())
    socket.lose()
    clock.advance(100)
    await settle()
    sockets.last.open()
    sockets.last.lose(1008, 'no')
    expect(await next).toMatchObject({ code: 'UNAUTHORIZED' })
  })
})

describe('a connection that fails', () => {
  it('is reported at once when it is the first: it is not retried', async () => {
    const { client, clock, sockets } = setUpClient()
    const page = failure(client.list())
    await settle()
    sockets.last.lose()
    expect(await page).toBeInstanceOf(ConnectionError)
    expect(await page).toMatchObject({ code: 'CONNECTION_FAILED' })
    expect((await page).message).toContain('ws://127.0.0.1:3300/ws')
    expect(clock.pending).toBe(0)
    const again = client.list()
    await settle()
    expect(sockets.sockets).toHaveLength(2)
    again.catch(() => undefined)
  })

  it('is reported when the socket cannot be created, or is never ready', async () => {
    const { client, clock, sockets } = setUpClient()
    sockets.refusal = new Error('bad port')
    expect((await failure(client.list())).message).toContain('bad port')
    sockets.refusal = undefined
    const silent = failure(client.list())
    await settle()
    sockets.last.open()
    clock.advance(10_000)
    expect(await silent).toMatchObject({ code: 'CONNECTION_FAILED' })
  })

  it('rejects a submit that was sent, and repeats a list', async () => {
    const { client, accept, answer, clock, sockets } = setUpClient()
    const warm = client.list()
    const first = await accept()
    await answer(first, 'task_list', { type: 'task_list_response', tasks: [] })
    await warm
    const submitted = failure(client.submit(submission))
    const [got, cancelled] = [client.get('t1'), client.cancel('t2')]
    await settle()
    first.lose()
    expect(await submitted).toMatchObject({ code: 'CONNECTION_LOST' })
    clock.advance(100)
    const second = await accept()
    expect(sockets.sockets).toHaveLength(2)
    expect(second.sentOf('task_submit')).toEqual([])
    await answer(second, 'task_status', { type: 'task_status_response', task: snapshot('t1') })
    await answer(second, 'task_cancel', { type: 'task_cancel_response', taskId: 't2', success: true })
    expect(await got).toEqual(snapshot('t1'))
    expect(await cancelled).toBe(true)
  })

  it('sends the requests that were made meanwhile on the next one', async () => {
    const { client, accept, answer, clock } = setUpClient()
    const pending = client.get('t0')
    const first = await accept()
    first.lose()
    const submitted = client.submit(submission)
    clock.advance(100)
    const second = await accept()
    await answer(second, 'task_status', { type: 'task_status_response', task: null })
    const type = 'task_submit_response'
    await answer(second, 'task_submit', { type, success: true, status: 'accepted', taskId: 't1', queuePosition: 1 })
    expect(await submitted).toEqual({ taskId: 't1', queuePosition: 1 })
    await pending
  })

  it('is retried with exponential back-off, which restarts after a success', async () => {
    const { client, accept, clock, sockets } = setUpClient({ requestTimeoutMs: 60_000 })
    void client.get('t0').catch(() => undefined)
    const first = await accept()
    first.lose()
    for (const [attempt, wait] of [100, 200, 400, 800, 1000, 1000].entries()) {
      clock.advance(wait - 1)
      await settle()
      expect(sockets.sockets).toHaveLength(attempt + 1)
      clock.advance(1)
      await settle()
      expect(sockets.sockets).toHaveLength(attempt + 2)
      sockets.last.lose()
    }
    clock.advance(1000)
    const held = await accept()
    const count = sockets.sockets.length
    held.lose()
    clock.advance(100)
    await settle()
    expect(sockets.sockets).toHaveLength(count + 1)
  })

  it('is not retried after maxAttempts', async () => {
    const { client, accept, clock, sockets } = setUpClient({ reconnect: { initialMs: 10, jitter: 0, maxAttempts: 2 } })
    const pending = failure(client.get('t0'))
    const first = await accept()
    first.lose()
    for (const wait of [10, 20]) {
      clock.advance(wait)
      await settle()
      sockets.last.lose()
    }
    expect(await pending).toMatchObject({ code: 'CONNECTION_FAILED' })
    expect(sockets.sockets).toHaveLength(3)
  })

  it('is given up after giveUpMs, with a last attempt at that time; after a success the time starts again', async () => {
    const reconnect = { initialMs: 300, maxMs: 300, jitter: 0, giveUpMs: 1000 }
    const { client, accept, clock, sockets } = setUpClient({ reconnect })
    const pending = failure(client.get('t0'))
    const first = await accept()
    first.lose()
    clock.advance(300)
    const second = await accept()
    second.lose()
    for (const wait of [300, 300, 300, 100]) {
      clock.advance(wait)
      await settle()
      sockets.last.lose()
    }
    expect(await pending).toMatchObject({ code: 'CONNECTION_FAILED' })
    expect(sockets.sockets).toHaveLength(2 + 4)
    expect(clock.pending).toBe(0)
  })

  it('is not retried with reconnect: false, or when nothing needs it', async () => {
    const once = setUpClient({ reconnect: false })
    const pending = failure(once.client.get('t0'))
    ;(await once.accept()).lose()
    expect(await pending).toMatchObject({ code: 'CONNECTION_LOST' })
    const idle = setUpClient()
    const page = idle.client.list()
    const socket = await idle.accept()
    await idle.answer(socket, 'task_list', { type: 'task_list_response', tasks: [] })
    await page
    socket.lose()
    idle.clock.advance(60_000)
    await settle()
    expect(idle.sockets.sockets).toHaveLength(1)
  })
})

describe('the state of the connection', () => {
  it('is emitted from connecting to closed, and an observer that throws changes nothing', async () => {
    const { client, accept, clock } = setUpClient()
    const said = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => said.mockRestore())
    const seen: string[] = []
    let isOver = false
    client.connection$.subscribe(() => {
      throw new Error('observer')
    })
    client.connection$.subscribe({ next: (state) => seen.push(state), complete: () => (isOver = true) })
    expect(client.connection).toBe('disconnected')
    const pending = failure(client.get('t0'))
    const socket = await accept()
    expect(client.connection).toBe('connected')
    socket.lose()
    clock.advance(100)
    ;(await accept()).lose()
    await client.close()
    await pending
    expect(seen).toEqual([
      ...['disconnected', 'connecting', 'connected', 'reconnecting', 'connected', 'reconnecting', 'closed'],
    ])
    expect(isOver).toBe(true)
    expect(said).toHaveBeenCalledTimes(seen.length)
  })

  it('is disconnected when nothing needs the connection, or when it is given up', async () => {
    const { client, accept, answer, sockets } = setUpClient({ reconnect: false })
    const seen: string[] = []
    client.connection$.subscribe((state) => seen.push(state))
    const page = client.list()
    const socket = await accept()
    await answer(socket, 'task_list', { type: 'task_list_response', tasks: [] })
    await page
    socket.lose()
    const failed = failure(client.list())
    await settle()
    sockets.last.lose()
    await failed
    expect(seen).toEqual(['disconnected', 'connecting', 'connected', 'disconnected', 'connecting', 'disconnected'])
  })
})

describe('a request without an answer', () => {
  it('rejects after its time limit, and drops a connection without any frame since', async () => {
    const { client, accept, clock, sockets } = setUpClient({ requestTimeoutMs: 5000 })
    const lost = failure(client.submit(submission))
    const socket = await accept()
    clock.advance(1)
    const other = client.get('t1')
    other.catch(() => undefined)
    clock.advance(4999)
    expect(await lost).toMatchObject({ code: 'REQUEST_TIMEOUT' })
    expect(socket.closedWith).toBeDefined()
    clock.advance(100)
    await settle()
    expect(sockets.sockets).toHaveLength(2)
  })

  it('keeps a connection with other frames', async () => {
    const { client, accept, clock } = setUpClient({ requestTimeoutMs: 5000 })
    const lost = failure(client.get('t1'))
    const socket = await accept()
    clock.advance(4000)
    socket.receive({ type: 'unsubscribe_ack' })
    clock.advance(1000)
    expect(await lost).toMatchObject({ code: 'REQUEST_TIMEOUT' })
    expect(socket.closedWith).toBeUndefined()
  })
})

describe('close', () => {
  it('rejects waiting and later requests, closes the socket, and can be called again', async () => {
    const { client, accept, clock } = setUpClient()
    const pending = failure(client.list())
    const socket = await accept()
    await client.close()
    expect(await pending).toMatchObject({ code: 'CLIENT_CLOSED' })
    expect(socket.closedWith).toBe(1000)
    expect(await failure(client.list())).toMatchObject({ code: 'CLIENT_CLOSED' })
    expect(await failure(client.instances() as Promise<unknown>)).toMatchObject({ code: 'CLIENT_CLOSED' })
    await client[Symbol.asyncDispose]()
    expect(clock.pending).toBe(0)
  })

  it('works while it connects, while it waits to reconnect, and when the peer does not answer', async () => {
    const connecting = setUpClient()
    void connecting.client.list().catch(() => undefined)
    await connecting.client.close()
    await settle()
    expect(connecting.sockets.sockets).toHaveLength(0)

    const waiting = setUpClient()
    void waiting.client.list().catch(() => undefined)
    ;(await waiting.accept()).lose()
    expect(waiting.clock.pending).toBeGreaterThan(0)
    await waiting.client.close()
    expect(waiting.clock.pending).toBe(0)

    const deaf = setUpClient()
    void deaf.client.list().catch(() => undefined)
    await deaf.accept()
    deaf.sockets.answersClose = false
    let isClosed = false
    const closed = deaf.client.close().then(() => (isClosed = true))
    deaf.clock.advance(999)
    await settle()
    expect(isClosed).toBe(false)
    deaf.clock.advance(1)
    await closed
    deaf.sockets.last.lose()
  })
})

describe('REST', () => {
  const instances = [{ id: 'calc', kind: 'local', isConnected: true, queued: 0 }]
  type Call = {
    readonly url: string
    readonly init: Parameters<NonNullable<Parameters<typeof createTaskClient>[0]['fetch']>>[1]
  }
  const setUp = (status: number, body: string, more: { url?: string; token?: string } = {}) => {
    const calls: Call[] = []
    const fetch = (url: string, init: Call['init']) => {
      calls.push({ url, init })
      return Promise.resolve({ ok: status < 400, status, text: () => Promise.resolve(body) })
    }
    return { calls, ...setUpClient({ fetch, ...more }) }
  }

  it('lists the instances, with the token', async () => {
    const { client, calls } = setUp(200, JSON.stringify({ instances }), { token: 'secret-token' })
    expect(await client.instances()).toEqual(instances)
    expect(calls[0]?.url).toBe('http://127.0.0.1:3300/instances')
    expect(calls[0]?.init?.headers).toMatchObject({ authorization: 'Bearer secret-token' })
    expect(calls[0]?.init?.method).toBeUndefined()
  })

  it('rejects with the code of the server, the HTTP status, or BAD_ANSWER', async () => {
    const refused = setUp(403, JSON.stringify({ error: 'not from here', code: 'FORBIDDEN_ORIGIN' }))
    expect(await failure(refused.client.instances() as Promise<unknown>)).toMatchObject({
      code: 'FORBIDDEN_ORIGIN',
      message: 'not from here',
      status: 403,
    })
    const gateway = setUp(502, '<html>')
    expect(await failure(gateway.client.instances() as Promise<unknown>)).toMatchObject({
      code: 'HTTP_502',
      status: 502,
    })
    const other = setUp(200, '<html>')
    expect(await failure(other.client.instances() as Promise<unknown>)).toMatchObject({ code: 'BAD_ANSWER' })
  })

  it('rejects with the error of the platform when there is no answer', async () => {
    const fetch = () => Promise.reject(new Error('fetch failed', { cause: new Error('ECONNREFUSED') }))
    const { client } = setUpClient({ fetch })
    const error = await failure(client.instances())
    expect(error).toMatchObject({ code: 'CONNECTION_FAILED' })
    expect(error.message).toContain('ECONNREFUSED')
  })

  it.each([
    ['http://host:1', 'http://host:1/instances', 'ws://host:1/ws'],
    ['https://host/base/', 'https://host/base/instances', 'wss://host/base/ws'],
    ['ws://host:3400', 'http://host:3400/instances', 'ws://host:3400'],
    ['ws://host:3300/ws', 'http://host:3300/instances', 'ws://host:3300/ws'],
    ['wss://host/base/ws/', 'https://host/base/instances', 'wss://host/base/ws'],
  ])('is found by the url %s, and so is the socket', async (url, rest, socket) => {
    const { client, calls, sockets } = setUp(200, JSON.stringify({ instances }), { url })
    await client.instances()
    expect(calls[0]?.url).toBe(rest)
    void client.list().catch(() => undefined)
    await settle()
    expect(sockets.last.url).toBe(socket)
  })
})

describe('options', () => {
  it.each(['', 'localhost:3300', 'ftp://host', '/tasks'])('reject the url %j', (url) => {
    expect(() => createTaskClient({ url, WebSocket: scriptSockets().WebSocket })).toThrow(InvalidInputError)
  })

  it.each([
    { reconnect: { initialMs: -1 } },
    { reconnect: { initialMs: 100, maxMs: 10 } },
    { reconnect: { jitter: 2 } },
    { reconnect: { maxAttempts: Number.NaN } },
    { reconnect: { giveUpMs: Number.NaN } },
    { requestTimeoutMs: 0 },
    { heartbeatMs: Number.NaN },
    { maxBuffered: 0 },
  ])('refuse %j', (options) => {
    expect(() => createTaskClient({ url: 'http://host', ...options })).toThrow(InvalidSettingError)
  })

  it('add jitter to the delays, within their bounds', async () => {
    const { createReconnection } = await import('../../../src/client/reconnection.js')
    const reconnection = createReconnection({ initialMs: 100, jitter: 0.5 })
    const waits = Array.from({ length: 200 }, () => reconnection(3, 0) ?? 0)
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(200)
    expect(Math.max(...waits)).toBeLessThanOrEqual(400)
    expect(new Set(waits).size).toBeGreaterThan(100)
  })
})
