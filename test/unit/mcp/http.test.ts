/** The server over HTTP: access, and the life of a session. The test owns the clock; the sockets are real. */
import { once } from 'node:events'
import { Agent, createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { InvalidSettingError } from '../../../src/errors.js'
import { callerOf } from '../../../src/mcp/callers.js'
import { createHttpSessions } from '../../../src/mcp/http-sessions.js'
import { listenWith, type McpHttpServer } from '../../../src/mcp/http.js'
import type { AgentConfigInput } from '../../../src/protocol/agent-config.js'
import type { SubagentRunner } from '../../../src/tools/subagents.js'
import { until } from '../../support/lifelines.js'
import { controlled } from './clients.js'
import { setUpApp } from './wire.js'

const servers: McpHttpServer[] = []

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

const hanging: SubagentRunner = (_request, { signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))

async function setUp(http: AgentConfigInput['http'] = {}, config: AgentConfigInput = {}) {
  const started: string[] = []
  const hangs: SubagentRunner = (request, context) => {
    started.push(request.id)
    return hanging(request, context)
  }
  const { run: slow, end } = controlled()
  const host = setUpApp({ hangs, slow }, { http, maxAsyncTasks: -1, ...config })
  const server = await listenWith(host.app, { port: 0 })
  servers.push(server)
  return { ...host, server, url: server.url, started, end }
}

interface Answer {
  readonly status: number
  readonly session: string | null
  readonly body: string
}

/** One request as a client of 2025 sends it. */
async function post(url: string, message: object | string, headers: Record<string, string> = {}): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message }),
  })
  return { status: response.status, session: response.headers.get('mcp-session-id'), body: await response.text() }
}

const INITIALIZE = {
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
}
const LIST = { id: 2, method: 'tools/list', params: {} }
const LAUNCH = {
  id: 3,
  method: 'tools/call',
  params: { name: 'task', arguments: { subagent_name: 'hangs', goal_prompt: 'g', async: true } },
}

async function openSession(url: string, headers: Record<string, string> = {}): Promise<Record<string, string>> {
  const { session } = await post(url, INITIALIZE, headers)
  return { 'mcp-session-id': session!, 'mcp-protocol-version': '2025-11-25', ...headers }
}

describe('a session', () => {
  it('is opened by initialize, and has its own owner', async () => {
    const { url, manager } = await setUp()
    const [first, second] = [await openSession(url), await openSession(url)]
    expect(first['mcp-session-id']).not.toBe(second['mcp-session-id'])
    await post(url, LAUNCH, first)
    await post(url, LAUNCH, second)
    const owners = manager.getAllTasks().map(({ owner }) => owner)
    expect(owners).toEqual([`session-${first['mcp-session-id']!}`, `session-${second['mcp-session-id']!}`])
  })

  it('that is unknown gets 404, so that its client opens a new one', async () => {
    const { url } = await setUp()
    expect((await post(url, LIST, { 'mcp-session-id': 'nobody' })).status).toBe(404)
    expect((await post(url, LIST)).status).toBe(400)
  })

  it('P2: after a restart of the server, is opened by initialize with the id of the earlier one, and any other request gets 404 with its own id', async () => {
    const { url } = await setUp({ tokens: ['one', 'two'] })
    const token = { authorization: 'Bearer one' }
    const left = { 'mcp-session-id': 'of-the-earlier-server', ...token }
    const refused = await post(url, { ...LIST, id: 'mine' }, left)
    expect([refused.status, JSON.parse(refused.body)]).toEqual([
      404,
      { jsonrpc: '2.0', id: 'mine', error: { code: -32000, message: 'Session not found. Initialize a new one.' } },
    ])
    expect(JSON.parse((await post(url, { method: 'notifications/initialized' }, left)).body)).toMatchObject({
      id: null,
    })
    const opened = await post(url, INITIALIZE, left)
    expect([opened.status, opened.session]).toEqual([200, expect.not.stringContaining('of-the-earlier') as unknown])
    const session = { 'mcp-session-id': opened.session!, 'mcp-protocol-version': '2025-11-25' }
    expect((await post(url, LIST, { ...session, ...token })).status).toBe(200)
    // The id of the session of another token is one of no session.
    const other = await post(url, INITIALIZE, { 'mcp-session-id': opened.session!, authorization: 'Bearer two' })
    expect(other.status).toBe(200)
    expect(other.session).not.toBe(opened.session)
  })

  describe('P3: of a token that has been idle for five minutes', () => {
    const five = 300_000
    const open = async (url: string, token: string) => {
      const session = await openSession(url, { authorization: `Bearer ${token}` })
      const call = async (name: string, args: object = {}): Promise<string> =>
        (await post(url, { id: 9, method: 'tools/call', params: { name, arguments: args } }, session)).body
      const launch = async (): Promise<string> => {
        const text = await call('task', { subagent_name: 'slow', goal_prompt: 'g', async: true })
        return /"task_id":"([^"]+)"/.exec(text)![1]!
      }
      return { session, call, launch }
    }

    it('lends what it is owed to the next session of the token, and gets back what is still outstanding', async () => {
      const { url, clock, end, manager } = await setUp({ tokens: ['one', 'two'] })
      const first = await open(url, 'one')
      const [ended, running] = [await first.launch(), await first.launch()]
      end(ended, 'the first answer')
      await until(() => manager.getPendingNotifications().length === 1)
      clock.advance(five)
      const [other, second] = [await open(url, 'two'), await open(url, 'one')]
      expect(await other.call('check_async_tasks')).not.toContain('answer')
      expect(await second.call('check_async_tasks')).toContain('the first answer')
      const [lender, borrower] = [manager.getTask(ended)!.owner, manager.getTask(running)!.owner]
      expect(borrower).toContain(second.session['mcp-session-id'])
      expect(await first.call('check_async_tasks')).not.toContain('the first answer')
      expect(manager.getTask(running)!.owner).toContain(first.session['mcp-session-id'])
      expect(lender).toBe(borrower)
      end(running, 'the second answer')
      await until(() => manager.getTask(running)?.status === 'completed')
      expect(await second.call('check_async_tasks')).not.toContain('the second answer')
      expect(await first.call('check_async_tasks')).toContain('the second answer')
    })

    it('has its tasks back when the other session ends', async () => {
      const { url, clock, manager } = await setUp({ tokens: ['one'] })
      const first = await open(url, 'one')
      const running = await first.launch()
      clock.advance(five)
      const second = await open(url, 'one')
      expect(manager.getTask(running)!.owner).toContain(second.session['mcp-session-id'])
      await fetch(url, { method: 'DELETE', headers: second.session })
      expect(manager.getTask(running)).toMatchObject({ status: 'running' })
      expect(manager.getTask(running)!.owner).toContain(first.session['mcp-session-id'])
    })

    it('keeps its tasks while one of its streams is open, and before that time', async () => {
      const { url, clock, manager } = await setUp({ tokens: ['one'] })
      const [streaming, recent] = [await open(url, 'one'), await open(url, 'one')]
      const ids = [await streaming.launch(), await recent.launch()]
      const headers = { ...streaming.session, accept: 'text/event-stream' }
      const stream = new AbortController()
      await fetch(url, { headers, signal: stream.signal })
      clock.advance(five - 1)
      await recent.call('check_async_tasks')
      clock.advance(1)
      await open(url, 'one')
      expect(ids.map((id) => manager.getTask(id)!.owner.split('session-')[1])).toEqual(
        [streaming, recent].map(({ session }) => session['mcp-session-id']),
      )
      stream.abort()
    })

    it('makes room at the limit of the token, the one that was idle the longest first, and its tasks go on', async () => {
      const host = await setUp({ tokens: ['one'] })
      const sessions = createHttpSessions(host.app, 3_600_000, { max: 10, perToken: 2 })
      const server = createServer((request, response) => {
        void json(request).then((body) => sessions.serve(request, response, body, callerOf(request)))
      })
      await once(server.listen(0, '127.0.0.1'), 'listening')
      onTestFinished(async () => {
        await sessions.close()
        server.closeAllConnections()
        server.close()
      })
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
      const first = await open(url, 'one')
      const id = await first.launch()
      host.clock.advance(1)
      const second = await open(url, 'one')
      expect((await post(url, INITIALIZE, { authorization: 'Bearer one' })).status).toBe(503)
      host.clock.advance(five)
      const third = await open(url, 'one')
      expect(host.manager.getTask(id)).toMatchObject({ status: 'running' })
      expect(host.manager.getTask(id)!.owner).toContain(third.session['mcp-session-id'])
      expect((await post(url, LIST, first.session)).status).toBe(404)
      expect((await post(url, LIST, second.session)).status).toBe(200)
    })
  })

  it('has its metadata nowhere: a client without a token gets 404 for each well-known path', async () => {
    const { url } = await setUp({ tokens: ['one'] })
    for (const path of ['oauth-protected-resource', 'oauth-protected-resource/mcp', 'oauth-authorization-server']) {
      expect((await fetch(new URL(`/.well-known/${path}`, url))).status).toBe(404)
    }
    expect((await fetch(new URL('/other', url))).status).toBe(401)
  })

  it('can be used only with the token it was opened with', async () => {
    const { url } = await setUp({ tokens: ['one', 'two'] })
    const session = await openSession(url, { authorization: 'Bearer one' })
    expect((await post(url, LIST, session)).status).toBe(200)
    expect((await post(url, LIST, { ...session, authorization: 'Bearer two' })).status).toBe(404)
    expect((await post(url, LIST, { ...session, authorization: 'Bearer three' })).status).toBe(401)
  })

  it('ends when its client deletes it: its tasks are cancelled, and nothing is owed', async () => {
    const { url, manager, end } = await setUp()
    const session = await openSession(url)
    await post(url, LAUNCH, session)
    const args = { subagent_name: 'slow', goal_prompt: 'g', async: true }
    await post(url, { id: 4, method: 'tools/call', params: { name: 'task', arguments: args } }, session)
    end(manager.getRunningTasks()[1]!.id, 'done')
    await until(() => manager.getPendingNotifications().length === 1)
    expect((await fetch(url, { method: 'DELETE', headers: session })).status).toBe(200)
    await until(() => manager.getRunningTasks().length === 0)
    expect((await post(url, LIST, session)).status).toBe(404)
    expect(manager.getPendingNotifications()).toEqual([])
  })

  it('F8: ends with what it has in the queue: nothing of it starts, and the slot goes to who is next', async () => {
    const { url, manager, clock, started } = await setUp({}, { maxAsyncTasks: 1, queueMax: 3, whenFull: 'queue' })
    const [first, second] = [await openSession(url), await openSession(url)]
    for (const session of [first, first, first, second]) await post(url, LAUNCH, session)
    const [running, , , next] = manager.getAllTasks().map(({ id }) => id)
    expect(manager.getQueuedTasks()).toHaveLength(3)
    expect((await fetch(url, { method: 'DELETE', headers: first })).status).toBe(200)
    await until(() => started.length > 1)
    expect(manager.getActiveTasks().map(({ id, status }) => [id, status])).toEqual([[next, 'running']])
    expect((await fetch(url, { method: 'DELETE', headers: second })).status).toBe(200)
    await until(() => manager.getActiveTasks().length === 0)
    expect(started).toEqual([running, next])
    expect(manager.getPendingNotifications()).toEqual([])
    // What is told of changes is gathered for this time.
    clock.advance(100)
    expect(clock.pending).toBe(0)
  })

  it('F8: does not end while one of its tasks is in the queue', async () => {
    const queue = { maxAsyncTasks: 1, queueMax: 1, whenFull: 'queue' } as const
    const { url, manager, clock } = await setUp({ sessionIdleMs: 60_000 }, queue)
    const [busy, waiting] = [await openSession(url), await openSession(url)]
    await post(url, LAUNCH, busy)
    await post(url, LAUNCH, waiting)
    clock.advance(100)
    // The idle times of both, and the deadline of the task that runs.
    await until(() => clock.pending === 3)
    clock.advance(60_000)
    expect((await post(url, LIST, waiting)).status).toBe(200)
    expect(manager.getQueuedTasks()).toHaveLength(1)
  })

  it('does not end while one of its streams is open', async () => {
    const { url, clock } = await setUp({ sessionIdleMs: 60_000 })
    const session = await openSession(url)
    await until(() => clock.pending >= 1)
    const pending = clock.pending
    const stream = await fetch(url, { headers: { ...session, accept: 'text/event-stream' } })
    expect(stream.status).toBe(200)
    // The session was idle before it, and is not idle after another request.
    clock.advance(3_600_000)
    expect((await post(url, LIST, session)).status).toBe(200)
    clock.advance(3_600_000)
    expect((await post(url, LIST, session)).status).toBe(200)
    await stream.body!.cancel()
    await until(() => clock.pending === pending)
    clock.advance(60_000)
    expect((await post(url, LIST, session)).status).toBe(404)
  })

  it('ends after a time without requests, but not while one of its tasks runs', async () => {
    const { url, clock, manager } = await setUp({ sessionIdleMs: 60_000 })
    const session = await openSession(url)
    const busy = await openSession(url)
    await post(url, LAUNCH, busy)
    clock.advance(59_999)
    expect((await post(url, LIST, session)).status).toBe(200)
    await until(() => clock.pending >= 3)
    clock.advance(60_000)
    expect((await post(url, LIST, session)).status).toBe(404)
    expect((await post(url, LIST, busy)).status).toBe(200)
    expect(manager.getRunningTasks()).toHaveLength(1)
  })
})

describe('a request', () => {
  it.each([
    ['to another path', '/other', {}, 404],
    ['by another Host', '/mcp', { host: 'rebound.example' }, 403],
    ['by an invalid Host', '/mcp', { host: 'a b' }, 403],
    ['from a web page', '/mcp', { origin: 'http://localhost:5173' }, 403],
    ['from a page without an origin', '/mcp', { origin: 'null' }, 403],
    ['from a local client', '/mcp', { origin: 'http://localhost' }, 200],
    ['from a page that is allowed', '/mcp', { origin: 'https://app.example' }, 200],
    ['by a Host that is allowed', '/mcp', { host: 'agents.example:3500' }, 200],
  ])('%s', async (_what, path, headers, status) => {
    const { url } = await setUp({ allowedOrigins: ['https://app.example'], allowedHosts: ['agents.example'] })
    const body = JSON.stringify({ jsonrpc: '2.0', ...INITIALIZE })
    const answered = await new Promise<number | undefined>((resolve, reject) => {
      const sent = httpRequest(new URL(path, url), {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      })
      sent.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject)
      sent.end(body)
    })
    expect(answered).toBe(status)
  })

  it('of a page that is allowed has CORS headers, also its preflight and the refusal of its token', async () => {
    const origin = 'https://app.example'
    const { url } = await setUp({ allowedOrigins: [origin], tokens: ['t'] })
    const preflight = (from: string) =>
      fetch(url, {
        method: 'OPTIONS',
        headers: {
          origin: from,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization,content-type,mcp-session-id,mcp-protocol-version',
        },
      })
    const allowed = await preflight(origin)
    expect([allowed.status, Object.fromEntries(allowed.headers)]).toMatchObject([
      204,
      {
        'access-control-allow-origin': origin,
        'access-control-allow-methods': 'GET, POST, DELETE, OPTIONS',
        'access-control-allow-headers': 'authorization,content-type,mcp-session-id,mcp-protocol-version',
        vary: 'origin',
      },
    ])
    const answer = (headers: Record<string, string>) =>
      fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          origin,
          ...headers,
        },
        body: JSON.stringify({ jsonrpc: '2.0', ...INITIALIZE }),
      })
    const [opened, refused] = [await answer({ authorization: 'Bearer t' }), await answer({})]
    expect([opened.status, refused.status]).toEqual([200, 401])
    for (const { headers } of [opened, refused]) expect(headers.get('access-control-allow-origin')).toBe(origin)
    expect(opened.headers.get('access-control-expose-headers')).toContain('mcp-session-id')
    const foreign = await preflight('https://other.example')
    expect([foreign.status, foreign.headers.get('access-control-allow-origin')]).toEqual([403, null])
  })

  it('that is not JSON, or too large, gets 400 or 413, and the next one is served', async () => {
    const { url } = await setUp()
    expect((await post(url, '{')).status).toBe(400)
    const most = 4 * 1024 * 1024
    expect((await post(url, `"${'x'.repeat(most - 2)}"`)).status).toBe(400)
    expect((await post(url, `"${'x'.repeat(most - 1)}"`)).status).toBe(413)
    expect((await post(url, INITIALIZE)).status).toBe(200)
  })

  it('that is nested deeper than 100 levels gets 400', async () => {
    const { url } = await setUp()
    // The request, its params and the capabilities are three of them.
    const nested = (levels: number): object => {
      const experimental = JSON.parse(`${'{"a":'.repeat(levels - 3)}{}${'}'.repeat(levels - 3)}`) as object
      return { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities: experimental } }
    }
    expect((await post(url, nested(100))).status).toBe(200)
    expect((await post(url, nested(101))).status).toBe(400)
  })

  it('that is too large and was read to its end leaves its connection open', async () => {
    const { url } = await setUp()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    try {
      for (const isReused of [false, true]) {
        const sent = httpRequest(url, { agent, method: 'POST', headers: { 'content-type': 'application/json' } })
        sent.end('x'.repeat(6 * 1024 * 1024))
        const [response] = (await once(sent, 'response')) as [IncomingMessage]
        await once(response.resume(), 'end')
        expect([response.statusCode, response.headers.connection, sent.reusedSocket]).toEqual([
          413,
          'keep-alive',
          isReused,
        ])
      }
    } finally {
      agent.destroy()
    }
  })

  it.each([
    ['too large', {}, 413],
    ['of a foreign page', { origin: 'https://evil.example' }, 403],
    ['without its token', { authorization: 'Bearer wrong' }, 401],
  ])('that is refused before it was read to its end (%s) closes its connection', async (_what, headers, status) => {
    const { url } = await setUp({ tokens: ['t'] })
    const sent = httpRequest(url, {
      method: 'POST',
      headers: { authorization: 'Bearer t', ...headers, 'content-length': String(1024 ** 3) },
    })
    sent.on('error', () => undefined).flushHeaders()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    expect([response.statusCode, response.headers.connection]).toEqual([status, 'close'])
    sent.destroy()
  })
})

describe('the server', () => {
  it('names the setting of a port in use, and leaves nothing open', async () => {
    const { server } = await setUp()
    const other = setUpApp()
    const port = Number(new URL(server.url).port)
    await expect(listenWith(other.app, { port })).rejects.toThrow(
      new InvalidSettingError('http.port', port, 'a port that is free, or 0 to pick one'),
    )
    expect(() => other.manager.launch({ subagentName: 's', goalPrompt: 'g' }, () => ({}))).toThrow('disposed')
  })

  it('ends with all its sessions and tasks', async () => {
    const { url, server, manager } = await setUp()
    await post(url, LAUNCH, await openSession(url))
    await server.close()
    expect(manager.getRunningTasks()).toEqual([])
    await expect(fetch(url)).rejects.toThrow()
  })

  it('listens on other addresses than loopback only with a token', async () => {
    const { app } = setUpApp()
    await expect(listenWith(app, { host: '0.0.0.0', port: 0 })).rejects.toThrow('Setting http.host: got "0.0.0.0"')
    const guarded = await listenWith(setUpApp({}, { http: { tokens: ['t'] } }).app, { host: '0.0.0.0', port: 0 })
    servers.push(guarded)
    expect(guarded.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/)
  })

  it('is closed by `await using`', async () => {
    const { app } = setUpApp()
    let url: string
    {
      await using server = await listenWith(app, { port: 0 })
      url = server.url
      expect((await post(url, INITIALIZE)).status).toBe(200)
    }
    await expect(fetch(url)).rejects.toThrow()
  })
})
