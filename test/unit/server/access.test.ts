// Access control: Host, Origin and tokens, on HTTP and on both kinds of socket; limits per address.
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { EXTENSION_ORIGIN } from '../../../src/protocol/browser-extension.js'
import { InvalidSettingError } from '../../../src/errors.js'
import { startTaskServer } from '../../../src/server/index.js'
import { openSocket, UpgradeRefused } from '../../support/socket-client.js'
import { startTestServer, taskOf, type TestServer } from './test-server.js'

/** Uses node:http because fetch sets Host itself. */
function statusOf(
  server: TestServer,
  headers: Record<string, string>,
  path = '/tasks',
  method = 'GET',
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(server.httpUrl + path, { headers, method }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.on('error', reject)
    sent.end()
  })
}

/** Retries while there are too many connections. */
async function admitted<T>(open: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await open()
    } catch (error) {
      if (!(error instanceof UpgradeRefused) || error.body.code !== 'TOO_MANY_CONNECTIONS') throw error
    }
  }
}

const socketsOf = (server: TestServer): string[] => {
  const onHttp = server.httpUrl.replace('http', 'ws')
  return [server.wsUrl, `${onHttp}/ws`, `${onHttp}/worker`]
}

describe('Host and Origin', () => {
  it.each([
    'evil.example',
    'evil.example:3300',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'a@localhost',
    'localhost/evil',
  ])('refuses the Host %j with 403, on HTTP and on every socket', async (host) => {
    const server = await startTestServer()
    expect(await statusOf(server, { host })).toBe(403)
    for (const url of socketsOf(server)) {
      await expect(openSocket(url, { headers: { host } })).rejects.toMatchObject({
        status: 403,
        body: { code: 'FOREIGN_HOST' },
      })
    }
  })

  it.each(['localhost', '127.0.0.1:80', '[::1]:3300', 'LOCALHOST:1'])('accepts the Host %s', async (host) => {
    const server = await startTestServer()
    expect(await statusOf(server, { host })).toBe(200)
  })

  it('accepts a Host of allowedHosts', async () => {
    const server = await startTestServer({ allowedHosts: ['tasks.internal'] })
    expect(await statusOf(server, { host: 'tasks.internal:3300' })).toBe(200)
    expect(await statusOf(server, { host: 'other.internal' })).toBe(403)
  })

  it.each([
    'https://evil.example',
    'http://localhost:1',
    'http://127.0.0.1',
    'null',
    'chrome-extension://abc',
    'nonsense',
  ])('refuses the Origin %s with 403, on HTTP and on every socket', async (origin) => {
    const server = await startTestServer()
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      expect(await statusOf(server, { origin }, '/tasks', method)).toBe(403)
    }
    for (const url of socketsOf(server)) {
      await expect(openSocket(url, { headers: { origin } })).rejects.toMatchObject({
        status: 403,
        body: { code: 'FOREIGN_ORIGIN' },
      })
    }
  })

  it('accepts its own pages, also on the client port', async () => {
    const server = await startTestServer()
    expect(await statusOf(server, { origin: server.httpUrl })).toBe(200)
    for (const url of socketsOf(server)) await (await openSocket(url, { headers: { origin: server.httpUrl } })).close()
  })

  it('refuses a page of another address at the same port, and accepts its own at every address it is reached by', async () => {
    const server = await startTestServer()
    const { port } = new URL(server.httpUrl)
    const wsPort = new URL(server.wsUrl).port
    for (const address of ['192.168.1.77', '[::1]', 'localhost', '127.0.0.2']) {
      const origin = `http://${address}:${port}`
      expect([address, await statusOf(server, { origin })]).toEqual([address, 403])
      for (const url of socketsOf(server)) {
        await expect(openSocket(url, { headers: { origin } })).rejects.toMatchObject({
          body: { code: 'FOREIGN_ORIGIN' },
        })
      }
      expect([address, await statusOf(server, { origin, host: `${address}:${port}` })]).toEqual([address, 200])
      const onClientPort = { origin, host: `${address}:${wsPort}` }
      await (await openSocket(server.wsUrl, { headers: onClientPort })).close()
    }
    // A port that is forwarded: the page and its requests have the same host all the same.
    expect(await statusOf(server, { origin: 'http://localhost:8080', host: 'localhost:8080' })).toBe(200)
    expect(await statusOf(server, { origin: 'https://localhost:8080', host: 'localhost:8080' })).toBe(403)
    expect(await statusOf(server, { origin: `http://localhost:${port}`, host: 'localhost:8080' })).toBe(403)
    expect(await statusOf(server, { origin: 'http://evil.example', host: 'evil.example' })).toBe(403)
  })

  it('accepts the Origin http://localhost on a loopback address only', async () => {
    const origin = 'http://localhost'
    expect(await statusOf(await startTestServer(), { origin })).toBe(200)
    const authorization = 'Bearer t'
    const open = await startTestServer({ host: '0.0.0.0', auth: { tokens: ['t'] } })
    expect(await statusOf(open, { origin, authorization })).toBe(403)
  })

  it.each([
    ['cross-site', 'image', 403],
    ['same-site', 'empty', 403],
    ['cross-site', 'document', 200],
    ['same-origin', 'image', 200],
    ['none', 'document', 200],
  ])('answers a request without an Origin, of a %s %s, with %i', async (site, dest, status) => {
    const server = await startTestServer()
    expect(await statusOf(server, { 'sec-fetch-site': site, 'sec-fetch-dest': dest })).toBe(status)
  })

  it('accepts the origins of CORS_ORIGINS, with CORS headers', async () => {
    const origin = 'chrome-extension://abcdef'
    const server = await startTestServer({ env: { CORS_ORIGINS: `https://app.example, ${origin}` } })
    const { headers, status } = await server.call('/tasks', { headers: { origin } })
    expect([status, headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual([200, origin, 'origin'])
    const preflight = await server.call('/tasks', {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-headers')).toContain('authorization')
    for (const url of socketsOf(server)) await (await openSocket(url, { headers: { origin } })).close()
    expect(await statusOf(server, { origin: 'https://other.example' })).toBe(403)
  })

  it('E4: accepts the origin of the extension of this package, and of no other one', async () => {
    const server = await startTestServer({ env: { CORS_ORIGINS: 'https://app.example' } })
    for (const origin of [EXTENSION_ORIGIN, 'https://app.example']) {
      const { headers, status } = await server.call('/tasks', { headers: { origin } })
      expect([status, headers.get('access-control-allow-origin')]).toEqual([200, origin])
      for (const url of socketsOf(server)) await (await openSocket(url, { headers: { origin } })).close()
    }
    expect(await statusOf(server, { origin: 'chrome-extension://abcdefghijklmnopabcdefghijklmnop' })).toBe(403)
  })
})

describe('tokens', () => {
  const token = 'a-right-token'
  const bearer = { authorization: `Bearer ${token}` }
  const guarded = () => startTestServer({ auth: { tokens: ['another-token', token] } })

  it('requires a token for REST', async () => {
    const server = await guarded()
    for (const path of ['/tasks', '/tasks/x', '/tasks/x/events', '/instances', '/metrics', '/nothing']) {
      const { status, body, headers } = await server.call(path)
      expect([path, status, body['code'], headers.get('www-authenticate')]).toEqual([
        path,
        401,
        'UNAUTHORIZED',
        'Bearer',
      ])
    }
    for (const path of ['/tasks', '/register', '/tasks/x/cancel']) {
      expect((await server.post(path, {})).status).toBe(401)
    }
    for (const authorization of [
      'Bearer wrong',
      `Basic ${token}`,
      token,
      'Bearer',
      `Bearer ${token}x`,
      `Bearer ${token.slice(1)}`,
    ]) {
      const { status, body, headers } = await server.call('/tasks', { headers: { authorization } })
      expect([status, body['code'], headers.get('www-authenticate')]).toEqual([
        ...[401, 'UNAUTHORIZED', 'Bearer error="invalid_token"'],
      ])
      // A wrong token is another mistake than none.
      const isBearer = /^Bearer ./.test(authorization)
      expect(body['error']).toBe(
        isBearer
          ? 'The token is not valid.'
          : 'The Authorization header has no bearer token. Expected: Authorization: Bearer <token>',
      )
    }
    expect((await server.call('/tasks', { headers: bearer })).status).toBe(200)
    expect((await server.call('/tasks', { headers: { authorization: `bearer  ${token}` } })).status).toBe(200)
    expect((await server.post('/tasks', taskOf('add'), bearer)).status).toBe(201)
  })

  it('serves /, /health, /info, /docs and /openapi.json without a token', async () => {
    const server = await guarded()
    for (const path of ['/', '/health', '/info', '/docs', '/openapi.json']) {
      expect((await server.call(path)).status).toBe(200)
    }
    expect((await server.call('/docs/')).status).toBe(401)
  })

  it('accepts the token of a client socket in the header', async () => {
    const server = await guarded()
    const client = await openSocket(server.wsUrl, { headers: bearer })
    expect(await client.next()).toMatchObject({ type: 'welcome', authenticationRequired: false })
    expect(await client.ask({ type: 'task_list' })).toMatchObject({ tasks: [] })
  })

  it('accepts the token of a client socket in its first message', async () => {
    const server = await guarded()
    const client = await openSocket(server.wsUrl)
    expect(await client.next()).toMatchObject({ type: 'welcome', authenticationRequired: true })
    client.send({ type: 'authenticate', token, requestId: 'a' })
    client.send({ type: 'task_list', requestId: 'b' })
    expect(await client.next()).toEqual({ type: 'authenticate_response', requestId: 'a', success: true })
    expect(await client.next()).toMatchObject({ type: 'task_list_response', requestId: 'b' })
  })

  it.each([
    ['a wrong token', { type: 'authenticate', token: 'wrong' }],
    ['another message', { type: 'task_list' }],
    ['no JSON', 'hello'],
  ])('closes a client socket (1008) whose first message is %s, and ignores the rest', async (_what, first) => {
    const server = await guarded()
    const client = await openSocket(server.wsUrl)
    await client.next()
    client.send(first)
    // The socket is closed: a second try has no effect.
    client.send({ type: 'authenticate', token })
    client.send({ type: 'task_submit', ...taskOf('add') })
    expect(await client.next()).toMatchObject({ code: 'UNAUTHORIZED' })
    expect(await client.closed).toMatchObject({ code: 1008 })
    expect(client.takeAll()).toEqual([])
    expect(server.taskManager.listTasks()).toEqual([])
  })

  it('requires a token on worker sockets as well', async () => {
    const server = await guarded()
    const { body } = await server.post('/register', {}, bearer)
    const { instanceId, secret, websocketUrl } = body as Record<string, string>
    const hello = { type: 'hello', instanceId, secret }
    const nobody = await openSocket(websocketUrl!)
    nobody.send(hello)
    expect(await nobody.closed).toMatchObject({ code: 1008 })
    const byHeader = await openSocket(websocketUrl!, { headers: bearer })
    byHeader.send(hello)
    expect(await byHeader.next()).toEqual({ type: 'welcome', instanceId })
    const byMessage = await openSocket(websocketUrl!)
    byMessage.send({ type: 'authenticate', token })
    byMessage.send(hello)
    await byMessage.skipTo('welcome')
    expect(await byHeader.closed).toMatchObject({ code: 4409 })
  })

  it('never writes a token to the log or to a configuration error', async () => {
    const lines: string[] = []
    const server = await startTestServer({
      auth: { tokens: [token] },
      logLevel: 'debug',
      writeLog: (line) => lines.push(line),
    })
    await server.call(`/tasks?token=${token}`, { headers: { authorization: `Bearer ${token}x` } })
    const client = await openSocket(`${server.wsUrl}/?token=${token}`)
    client.send({ type: 'authenticate', token: `${token}y` })
    await client.closed
    await server.close()
    expect(lines.length).toBeGreaterThan(0)
    expect(lines.join('\n')).not.toContain(token)
    const error: unknown = await startTaskServer({ env: { AUTH_TOKENS: `${token} with spaces` } }).catch(
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(InvalidSettingError)
    expect(String(error)).toContain('AUTH_TOKENS')
    expect(JSON.stringify(error) + String(error)).not.toContain(token)
  })

  it('does not start on a non-loopback address without a token', async () => {
    for (const host of ['0.0.0.0', '::', '192.168.1.1', 'tasks.example']) {
      await expect(startTaskServer({ host, port: 0, env: {}, tasks: { wsPort: 0 } })).rejects.toThrow(
        /Setting HOST: got .*expected a loopback address, or AUTH_TOKENS/,
      )
    }
    const server = await startTestServer({ host: '0.0.0.0', auth: { tokens: [token] } })
    expect(server.httpUrl).toMatch(/^http:\/\/127\.0\.0\.1:/)
    expect((await server.call('/tasks', { headers: bearer })).status).toBe(200)
  })
})

describe('limits of an address', () => {
  it('takes nothing from its rate for requests of a foreign page or to a foreign host', async () => {
    const server = await startTestServer({ limits: { requestsPerMinute: 2 } })
    for (let count = 0; count < 10; count += 1) {
      expect(await statusOf(server, { origin: 'https://evil.example' })).toBe(403)
      expect(await statusOf(server, { host: 'evil.example' })).toBe(403)
      expect(await statusOf(server, { 'sec-fetch-site': 'cross-site' })).toBe(403)
      for (const url of socketsOf(server)) {
        await expect(openSocket(url, { origin: 'https://evil.example' })).rejects.toThrow(UpgradeRefused)
      }
    }
    expect([await statusOf(server, {}), await statusOf(server, {}), await statusOf(server, {})]).toEqual([
      200, 200, 429,
    ])
  })

  it('answers 429 beyond the request rate, whatever the headers say', async () => {
    const server = await startTestServer({ limits: { requestsPerMinute: 3 } })
    for (let count = 0; count < 3; count += 1) expect((await server.call('/health')).status).toBe(200)
    const refused = await server.call('/health', {
      headers: { 'x-forwarded-for': '10.0.0.1', forwarded: 'for=10.0.0.1', 'x-real-ip': '10.0.0.1' },
    })
    expect(refused).toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    await expect(openSocket(server.wsUrl)).rejects.toMatchObject({ status: 429, body: { code: 'RATE_LIMITED' } })
  })

  it('answers 429 beyond the connection limit, until a connection has closed', async () => {
    const server = await startTestServer({ limits: { connectionsPerClient: 2 } })
    const first = await server.client()
    const { body } = await server.post('/tasks', taskOf('hold'))
    const stream = new AbortController()
    const events = `/tasks/${String(body['taskId'])}/events`
    await fetch(server.httpUrl + events, { signal: stream.signal })
    await expect(openSocket(server.wsUrl)).rejects.toMatchObject({
      status: 429,
      body: { code: 'TOO_MANY_CONNECTIONS' },
    })
    expect(await server.call(events)).toMatchObject({ status: 429, body: { code: 'TOO_MANY_CONNECTIONS' } })
    await first.close()
    // The server may see the close a little later than the client.
    const next = await admitted(() => server.client())
    stream.abort()
    await (await admitted(() => server.client())).close()
    await next.close()
  })

  it('closes the connection of a refused request, whose body is not read', async () => {
    const server = await startTestServer({ auth: { tokens: ['t'] } })
    for (const [status, headers] of [
      [401, {}],
      [403, { host: 'evil.example' }],
      [403, { origin: 'https://evil.example' }],
    ] as const) {
      const sent = request(`${server.httpUrl}/tasks`, {
        method: 'POST',
        headers: { ...headers, 'content-length': '10' },
      })
      sent.flushHeaders()
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      expect([response.statusCode, response.headers.connection]).toEqual([status, 'close'])
      sent.destroy()
    }
  })

  it('answers 404 to an upgrade at another path, and 426 to a request on the client port', async () => {
    const server = await startTestServer()
    for (const path of ['/', '/ws/', '/tasks', '//']) {
      await expect(openSocket(server.httpUrl.replace('http', 'ws') + path)).rejects.toMatchObject({ status: 404 })
    }
    const response = await fetch(server.wsUrl.replace('ws', 'http'))
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([426, 'UPGRADE_REQUIRED'])
  })
})
