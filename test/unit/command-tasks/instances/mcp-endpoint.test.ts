/** Failures of MCP servers over HTTP: the errors of calls, and when the instance is lost. The sockets are real. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { mcpInstance } from '../../../../src/command-tasks/instances/mcp-instance.js'
import { callOf } from '../../../support/instance-suite.js'

interface Asked {
  readonly id?: number
  readonly method: string
  readonly params?: { readonly name?: string }
}
type Answer = (asked: Asked, response: ServerResponse) => void

const json = (response: ServerResponse, body: object, headers: Record<string, string> = {}): void => {
  response.writeHead(200, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify({ jsonrpc: '2.0', ...body }))
}

/** A server that answers the handshake; the test answers the rest. */
async function serve(answers: { readonly call: Answer; readonly ping?: Answer }) {
  const methods: string[] = []
  const initialized = {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'endpoint', version: '1' },
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== 'POST') {
      methods.push(`${request.method}`)
      response.writeHead(request.method === 'DELETE' ? 200 : 405).end()
      return
    }
    const asked = JSON.parse(await text(request)) as Asked
    methods.push(asked.method)
    if (asked.method === 'initialize') json(response, { id: asked.id, result: initialized }, { 'mcp-session-id': 's1' })
    else if (asked.method === 'tools/call') answers.call(asked, response)
    else if (asked.method === 'ping' && answers.ping !== undefined) answers.ping(asked, response)
    else if (asked.id === undefined) response.writeHead(202).end()
    else json(response, { id: asked.id, result: {} })
  }
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async (): Promise<void> => {
    server.closeAllConnections()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }
  onTestFinished(stop)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp?token=secret`
  const instance = await mcpInstance({ id: 'endpoint', url, headers: { 'x-secret': 'secret' } })
  onTestFinished(() => instance.close())
  const lost = vi.fn<(reason: string) => void>()
  instance.onLost(lost)
  const failure = (name = 'it'): Promise<Error> =>
    instance.callTool(callOf(name)).then(
      () => expect.fail('it succeeded'),
      (error: unknown) => error as Error,
    )
  return { instance, lost, failure, methods, stop }
}

const broken: Answer = (_asked, response) => void response.writeHead(500).end('broken')
const well: Answer = ({ id }, response) => json(response, { id, result: { content: [{ type: 'text', text: 'well' }] } })

describe('a call of an MCP server over HTTP', () => {
  it('that fails does not lose the instance when the server answers a ping', async () => {
    let calls = 0
    const { failure, lost, instance, methods } = await serve({
      call: (asked, response) => ((calls += 1) === 1 ? broken : well)(asked, response),
    })
    expect((await failure()).message).toContain('broken')
    expect(methods).toContain('ping')
    expect(lost).not.toHaveBeenCalled()
    expect(await instance.callTool(callOf('it'))).toMatchObject({ content: [{ text: 'well' }] })
  })

  it('that fails does not lose the instance when the server answers a ping with an error', async () => {
    const ping: Answer = ({ id }, response) =>
      json(response, { id, error: { code: -32601, message: 'No such method' } })
    const { failure, lost } = await serve({ call: broken, ping })
    expect((await failure()).message).toContain('broken')
    expect(lost).not.toHaveBeenCalled()
  })

  it('that the server ends without a result is an error that says so', async () => {
    const { failure, lost } = await serve({
      call: (_asked, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end(': nothing\n\n')
      },
    })
    expect((await failure()).message).toBe('The server ended the call without a result.')
    expect(lost).not.toHaveBeenCalled()
  })

  it('S6: of a server that is gone loses the instance once, with an error without secrets', async () => {
    const { failure, lost, stop, instance } = await serve({ call: well })
    await stop()
    const [first, second] = await Promise.all([failure(), failure()])
    for (const error of [first, second]) {
      expect(error).toMatchObject({ code: 'INSTANCE_DISCONNECTED', instanceId: 'endpoint' })
      expect(error.message).toMatch(/MCP server at http:\/\/127\.0\.0\.1:\d+\/mcp is gone: .*ECONNREFUSED/)
      expect(error.message).not.toContain('secret')
    }
    expect(lost).toHaveBeenCalledOnce()
    const late = vi.fn()
    instance.onLost(late)
    expect(late.mock.calls).toEqual(lost.mock.calls)
    expect(await failure()).toMatchObject({ code: 'INSTANCE_DISCONNECTED' })
  })

  it('S6: of a server that is gone loses the instance, also when the server answered an earlier ping', async () => {
    const { failure, lost, stop } = await serve({ call: broken })
    expect((await failure()).message).toContain('broken')
    expect(lost).not.toHaveBeenCalled()
    await stop()
    expect(await failure()).toMatchObject({ code: 'INSTANCE_DISCONNECTED', instanceId: 'endpoint' })
    expect(lost).toHaveBeenCalledOnce()
  })

  it('leaves the session when the instance is closed', async () => {
    const { instance, methods } = await serve({ call: well })
    await instance.close()
    expect(methods.at(-1)).toBe('DELETE')
  })
})

describe('a program that cannot be started', () => {
  const failureOf = (program: { command: string; cwd?: string }): Promise<Error> =>
    mcpInstance({ id: 'x', ...program }).then(
      () => expect.fail('it started'),
      (error: unknown) => error as Error,
    )
  const file = () => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-instance-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'plain'), '')
    return join(folder, 'plain')
  }

  it('is an error that says when it may not be executed', async () => {
    expect((await failureOf({ command: file() })).message).toMatch(
      /instance "x", did not start: the command may not be executed \(EACCES\)\.$/,
    )
  })

  it('is an error with the message of the system otherwise', async () => {
    expect((await failureOf({ command: process.execPath, cwd: file() })).message).toMatch(
      /did not start: spawn .*ENOTDIR\.$/,
    )
  })
})
