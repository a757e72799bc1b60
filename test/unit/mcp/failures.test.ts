/** Failures around the MCP server: the log, the answer, and what continues to work. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createLog } from '../../../src/server/http/log.js'
import { localInstance } from '../../../src/command-tasks/instances/local-instance.js'
import { createHttpSessions } from '../../../src/mcp/http-sessions.js'
import { listenWith } from '../../../src/mcp/http.js'
import { createInstancePool } from '../../../src/mcp/instance-pool.js'
import { instancesOfPool } from '../../../src/mcp/instance-source.js'
import { createListInstancesTool } from '../../../src/tools/list-instances.js'
import { agentConfigSchema } from '../../../src/protocol/agent-config.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { ALICE, send, setUpApp, TASKS } from './wire.js'
import { waitFor } from '../../support/wait-for.js'

function setUp(...options: Parameters<typeof setUpApp>) {
  const host = setUpApp(...options)
  onTestFinished(() => host.app.close())
  return host
}

const throws = (): never => {
  throw new Error('in a handler')
}

const calc = (listTools?: () => Promise<never>) => ({
  ...localInstance({ id: 'calc', closeGraceMs: 0, tools: [{ name: 'add', execute: () => '5' }] }),
  ...(listTools && { listTools }),
})

const COMMANDS = { task_name: 'Add', commands: [{ tool_name: 'add' }] }

describe('an exception in a handler', () => {
  it('is logged with its source', async () => {
    const { backend, logged, call } = setUp()
    backend.pool.instances.onConnect(throws)
    backend.taskManager.on('complete', throws)
    backend.pool.instances.connect(calc())
    expect((await call('submit_commands', { ...COMMANDS, async: false }, {})).result).not.toHaveProperty(
      'isError',
      true,
    )
    expect(logged).toEqual([
      'agent-tasks error: handler of instance calc: in a handler',
      'agent-tasks error: handler: in a handler',
    ])
  })

  it('is written to standard error by default', () => {
    const said = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => said.mockRestore())
    createLog('info')('warn', 'This is odd', new Error('for a reason'))
    expect(said.mock.calls).toEqual([['agent-tasks warn: This is odd: for a reason']])
  })
})

describe('submit_commands', () => {
  it('waits for an instance and runs commands on it, directly and as a task', async () => {
    const { backend, call, get } = setUp()
    backend.pool.instances.connect(calc())
    const inPlace = await call('submit_commands', { ...COMMANDS, async: false, instanceId: 'calc' }, {})
    expect(JSON.stringify(inPlace.result)).toContain(
      "Command task 'Add' completed on instance calc:\\\\n1. add: success: 5",
    )
    const { result } = await call('submit_commands', { ...COMMANDS, async: false }, TASKS)
    const taskId = result['taskId'] as string
    await waitFor(async () => expect((await get(taskId)).result['status']).toBe('completed'))
    expect(JSON.stringify((await get(taskId)).result['result'])).toContain('add: success: 5')
  })

  it('names an unknown instance', async () => {
    const { call } = setUp()
    const { result } = await call('submit_commands', { ...COMMANDS, instanceId: 'nobody' }, {})
    expect(result).toMatchObject({ isError: true })
    expect(JSON.stringify(result)).toContain('nobody')
  })
})

describe('list_instances', () => {
  it('lists an instance whose tools cannot be listed, with the reason', async () => {
    const { backend, app } = setUp()
    const pool = {
      ...backend.pool,
      list: () => [{ id: 'calc', state: 'connected' as const }],
      ready: () => Promise.resolve(undefined),
    }
    backend.pool.instances.connect(calc(() => Promise.reject(new Error('not now'))))
    const list = createListInstancesTool(instancesOfPool(pool), 20_000)
    const { llmContent, metadata } = await list.execute({})
    expect(llmContent).toBe('calc (connected): its tools could not be listed: not now')
    expect(metadata).toEqual({ instances: [{ id: 'calc', state: 'connected', error: 'not now' }] })
    expect((await list.execute({ instance_id: 'x' })).error?.message).toBe(
      'params.instance_id: got "x", expected the ID of an instance. Known: calc.',
    )
    expect([list.describe({}), list.describe({ instance_id: 'calc' })]).toEqual([
      'List the instances',
      "Show instance 'calc'",
    ])
    expect((await send(app, ALICE, 'tools/list')).result).toHaveProperty('tools')
  })
})

describe('an instance that connects after the server was closed', () => {
  it('is closed', async () => {
    const clock = createManualClock()
    const logged: string[] = []
    const config = agentConfigSchema.parse({ instances: [{ id: 'late', url: 'http://127.0.0.1:1/mcp' }] })
    let letGo: () => void = () => undefined
    const asked = new Promise<void>((resolve) => (letGo = resolve))
    const methods: string[] = []
    const server = createServer((request, response) => {
      methods.push(request.method ?? '')
      if (request.method !== 'POST') {
        response.writeHead(request.method === 'DELETE' ? 200 : 405).end()
        return
      }
      let text = ''
      request.on('data', (chunk) => (text += String(chunk)))
      request.on('end', () => {
        const { id, method } = JSON.parse(text) as { id?: number; method: string }
        const protocolVersion = '2025-11-25'
        const result = { protocolVersion, capabilities: {}, serverInfo: { name: 'late', version: '1' } }
        if (id === undefined) response.writeHead(202).end()
        else if (method === 'initialize') {
          letGo()
          waiting.push(() => {
            response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's1' })
            response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
          })
        } else response.writeHead(400).end()
      })
    }).listen(0, '127.0.0.1')
    const waiting: (() => void)[] = []
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
    const instances = config.instances.map((instance) => ({ ...instance, url }))
    const pool = createInstancePool(instances, { folder: '/', clock, log: (_level, line) => void logged.push(line) })
    const ready = pool.ready()
    await asked
    const closed = pool.close()
    clock.advance(3000)
    await closed
    for (const answer of waiting.splice(0)) answer()
    await waitFor(() => expect(methods).toContain('DELETE'))
    await ready
    expect([pool.instances.list(), logged]).toEqual([[], []])
  })
})

describe('over HTTP', () => {
  const listen = async (app: ReturnType<typeof setUpApp>['app']) => {
    const server = await listenWith(app, { port: 0 })
    onTestFinished(() => server.close())
    return server.url
  }

  it('a client of 2026-07-28 is served without a session', async () => {
    const { app } = setUpApp({}, { http: { tokens: ['alice'] } })
    const url = await listen(app)
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'tools/list',
        authorization: 'Bearer alice',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } }),
    })
    expect([response.status, response.headers.get('mcp-session-id')]).toEqual([200, null])
    expect(await response.text()).toContain('wait_for_async_tasks')
  })

  it('a client that disconnects during its request does not affect others', async () => {
    const { app, logged } = setUpApp()
    const url = new URL(await listen(app))
    const socket = connect(Number(url.port), '127.0.0.1')
    await once(socket, 'connect')
    socket.write(
      `POST ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{`,
    )
    socket.end()
    await waitFor(() => expect(logged).toEqual([expect.stringMatching(/^agent-tasks error: a request failed: /)]))
    socket.destroy()
    const answer = await fetch(url, { method: 'POST', body: '{}' })
    expect(answer.status).toBeGreaterThanOrEqual(400)
    await answer.text()
  })

  it('the number of sessions is limited, those that are just opening included', async () => {
    const { app } = setUp()
    const sessions = createHttpSessions(app, 60_000, { max: 1, perToken: 1 })
    onTestFinished(() => sessions.close())
    const caller = { owner: 'token', isAnonymous: false }
    const initialize = {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
    }
    const arrived: (() => void)[] = []
    const server = createServer((request, response) => {
      arrived.push(() => void sessions.serve(request, response, initialize, caller))
      // Both in one turn.
      if (arrived.length >= 2) for (const serve of arrived.splice(0)) serve()
    })
    server.listen(0, '127.0.0.1')
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    await once(server, 'listening')
    const open = async () => {
      const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify(initialize),
      })
      return [response.status, await response.text()] as const
    }
    const refused = {
      jsonrpc: '2.0',
      id: 1,
      error: { code: -32000, message: 'There are too many sessions (1). Try again later.' },
    }
    const first = await Promise.all([open(), open()])
    expect(first.map(([status]) => status).sort()).toEqual([200, 503])
    for (const [status, text] of await Promise.all([open(), open()])) {
      expect([status, JSON.parse(text)]).toEqual([503, refused])
    }
  })
})
