/** Events over HTTP, for the caller's own tasks: F20. */
import { afterEach, describe, expect, it } from 'vitest'
import { listenWith, type McpHttpServer } from '../../../src/mcp/http.js'
import { callerOf, ANONYMOUS, sessionOwner } from '../../../src/mcp/callers.js'
import { setUpApp } from './wire.js'

const servers: McpHttpServer[] = []

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

const [ONE, TWO] = ['Bearer one', 'Bearer two']
const ownerOf = (authorization: string): string => callerOf({ headers: { authorization } } as never).owner

async function setUp(tokens: readonly string[] = ['one', 'two'], path = '/mcp') {
  const host = setUpApp({}, { http: { tokens: [...tokens], path }, maxAsyncTasks: -1 })
  const server = await listenWith(host.app, { port: 0 })
  servers.push(server)
  const { manager } = host.app.backend
  const got: [string, unknown][] = []
  const launch = (id: string, owner: string): void => {
    manager.launch({ id, subagentName: 'agent', goalPrompt: 'g', owner }, async ({ id: taskId }, { waitFor }) => {
      got.push([taskId, await waitFor('paid')])
      return 'done'
    })
  }
  const send = async (body: unknown, headers: Record<string, string> = {}, method = 'POST') => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const response = await fetch(new URL('/events', server.url), {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(method === 'POST' && { body: text }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const openSession = async (headers: Record<string, string> = {}): Promise<string> => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
    const response = await fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
    })
    await response.text()
    return response.headers.get('mcp-session-id') ?? ''
  }
  return { manager, launch, send, openSession, got }
}

describe('POST /events of the MCP server', () => {
  it('F20: needs a token, where there are some, and a source that may call', async () => {
    const { send } = await setUp()
    expect(await send({ event: 'paid' })).toMatchObject({ status: 401 })
    expect(await send({ event: 'paid' }, { authorization: 'Bearer three' })).toMatchObject({ status: 401 })
    expect(await send({ event: 'paid' }, { authorization: ONE, origin: 'https://evil.example' })).toMatchObject({
      status: 403,
    })
    expect(await send('', { authorization: ONE }, 'GET')).toMatchObject({ status: 405 })
  })

  it('F20: sends to the tasks of its token, or to one of them; that of another one looks like an unknown one', async () => {
    const { launch, send, got } = await setUp()
    launch('mine', ownerOf(ONE))
    launch('theirs', ownerOf(TWO))
    await Promise.resolve()
    expect(await send({ event: 'paid', value: { sum: 1 } }, { authorization: ONE })).toEqual({
      status: 200,
      body: { taskIds: ['mine'] },
    })
    const foreign = await send({ event: 'paid', taskId: 'theirs' }, { authorization: ONE })
    const unknown = await send({ event: 'paid', taskId: 'nobody' }, { authorization: ONE })
    expect(foreign).toMatchObject({ status: 400, body: { code: 'INVALID_INPUT', field: 'taskId' } })
    expect(JSON.stringify(foreign).replaceAll('theirs', 'nobody')).toBe(JSON.stringify(unknown))
    expect(got).toEqual([['mine', { sum: 1 }]])
    expect(await send({ event: 'paid', taskId: 'theirs' }, { authorization: TWO })).toMatchObject({ status: 200 })
    expect(got[1]).toEqual(['theirs', null])
  })

  it('F20: of a session reaches its tasks, and no other session of another token', async () => {
    const { launch, send, openSession } = await setUp()
    const session = await openSession({ authorization: ONE })
    const owner = sessionOwner(session, { owner: ownerOf(ONE), isAnonymous: false })
    launch('of-session', owner)
    launch('of-token', ownerOf(ONE))
    await Promise.resolve()
    const inSession = { authorization: ONE, 'mcp-session-id': session }
    expect((await send({ event: 'first' }, inSession)).body).toEqual({ taskIds: ['of-session'] })
    expect((await send({ event: 'first' }, { ...inSession, authorization: TWO })).body).toEqual({ taskIds: [] })
    expect((await send({ event: 'first', taskId: 'of-session' }, { authorization: TWO })).status).toBe(400)
    expect((await send({ event: 'first', taskId: 'of-session' }, { authorization: ONE })).status).toBe(200)
    expect((await send({ event: 'first', taskId: 'of-token' }, inSession)).status).toBe(200)
  })

  it('F20: of a client without a token names a task of such clients, or its session', async () => {
    const { launch, send, openSession } = await setUp([])
    const session = await openSession()
    launch('anybody', ANONYMOUS.owner)
    launch('of-session', sessionOwner(session, ANONYMOUS))
    await Promise.resolve()
    expect(await send({ event: 'first' })).toMatchObject({ status: 400, body: { field: 'taskId' } })
    expect((await send({ event: 'first', taskId: 'anybody' })).status).toBe(200)
    expect((await send({ event: 'first', taskId: 'of-session' })).status).toBe(400)
    expect((await send({ event: 'first' }, { 'mcp-session-id': session })).body).toEqual({ taskIds: ['of-session'] })
  })

  it('F20: names the field that is wrong, and refuses what is too large or too deep', async () => {
    const { launch, send } = await setUp()
    launch('mine', ownerOf(ONE))
    const post = (body: unknown) => send(body, { authorization: ONE })
    expect(await post({})).toMatchObject({ status: 400, body: { field: 'event' } })
    expect(await post({ event: 'a#b' })).toMatchObject({ status: 400, body: { field: 'event' } })
    expect(await post({ event: 'a', more: 1 })).toMatchObject({ status: 400, body: { field: 'more' } })
    expect(await post({ event: 'a', taskId: 1 })).toMatchObject({ status: 400, body: { field: 'taskId' } })
    expect(await post({ event: 'a', value: 'x'.repeat(300_000) })).toMatchObject({
      status: 400,
      body: { field: 'value' },
    })
    expect(await post('{')).toMatchObject({ status: 400, body: { code: 'MALFORMED_JSON' } })
    expect((await post(`{"event":"a","value":${'['.repeat(200)}${']'.repeat(200)}}`)).status).toBe(400)
    expect((await post({ event: 'a', value: 'x'.repeat(5 * 1024 * 1024) })).status).toBe(413)
    for (let count = 0; count < 100; count += 1) await post({ event: 'kept', taskId: 'mine' })
    expect(await post({ event: 'kept', taskId: 'mine' })).toMatchObject({ status: 409, body: { code: 'EVENTS_FULL' } })
  })

  it('F20: leaves the address to MCP, where that is served there', async () => {
    const { send } = await setUp(['one'], '/events')
    expect((await send({ event: 'a' }, { authorization: ONE })).body).toHaveProperty('jsonrpc')
  })
})
