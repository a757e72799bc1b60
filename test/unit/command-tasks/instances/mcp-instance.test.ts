/** Instances that are MCP servers, over a transport in memory. Real servers are in test/e2e. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { toNodeHandler, type NodeIncomingMessageLike } from '@modelcontextprotocol/node'
import { InMemoryTransport, type ProgressToken, type RequestId } from '@modelcontextprotocol/client'
import { createMcpHandler, McpServer, Server } from '@modelcontextprotocol/server'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { InstanceError, ToolCallError } from '../../../../src/errors.js'
import { mcpInstance } from '../../../../src/command-tasks/instances/mcp-instance.js'
import { callOf, instanceSuite } from '../../../support/instance-suite.js'
import { createManualClock } from '../../../../src/testing/manual-clock.js'
import { createSuiteTools, SuiteFailure, type SuiteTools } from '../../../support/suite-tools.js'
import { waitFor } from '../../../support/wait-for.js'

/** A server of the official SDK with the tools of the suite. */
async function serve(tools: SuiteTools, options: { stubborn?: boolean } = {}) {
  const [ours, theirs] = InMemoryTransport.createLinkedPair()
  // The high-level API checks arguments itself, and has no way to answer with a JSON-RPC error.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const server = new Server({ name: 'suite', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', () => ({
    tools: tools.names.map((name) => ({ name, inputSchema: { type: 'object' as const } })),
  }))
  server.setRequestHandler('tools/call', async (request, context) => {
    const { name, arguments: args = {}, _meta } = request.params
    const token = _meta?.progressToken
    const sending: Promise<void>[] = []
    try {
      const text = await tools.call(name, args, {
        signal: context.mcpReq.signal,
        progress: (progress) => {
          if (token === undefined) return
          sending.push(
            context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token, ...progress } }),
          )
        },
      })
      await Promise.all(sending)
      return { content: [{ type: 'text' as const, text }] }
    } catch (error) {
      if (error instanceof SuiteFailure) {
        return { content: [{ type: 'text' as const, text: error.message }], isError: true }
      }
      if (error instanceof ToolCallError) throw Object.assign(new Error(error.message), { code: error.number })
      throw error
    }
  })
  const received: unknown[] = []
  await server.connect(theirs)
  const { onmessage } = theirs
  theirs.onmessage = (message, extra) => {
    received.push(message)
    // The official server never answers a cancelled call; other servers ignore the cancellation.
    if (options.stubborn && 'method' in message && message.method === 'notifications/cancelled') return
    onmessage?.(message, extra)
  }
  return { ours, theirs, server, received }
}

instanceSuite('mcp', async () => {
  const tools = createSuiteTools()
  const clock = createManualClock()
  const { ours, server } = await serve(tools)
  const instance = await mcpInstance({ id: 'suite', transport: ours, clock })
  return { instance, tools, clock, lose: () => server.close(), reportsLoss: true }
})

/** `answer` answers the calls of tools, and the server everything else. */
function answerCalls(theirs: InMemoryTransport, answer: (id: RequestId, progressToken: ProgressToken) => void): void {
  const { onmessage } = theirs
  theirs.onmessage = (message, extra) => {
    if ('id' in message && 'method' in message && message.method === 'tools/call') {
      answer(message.id, message.params!['_meta']!.progressToken!)
    } else onmessage?.(message, extra)
  }
}

it('a result is not matched with a regular expression of its server, which could block this process', async () => {
  const { ours, theirs, server } = await serve(createSuiteTools())
  const text = { type: 'string' as const, pattern: '^(a+)+$' }
  const outputSchema = { type: 'object' as const, properties: { text } }
  server.setRequestHandler('tools/list', () => ({
    tools: [{ name: 'echo', inputSchema: { type: 'object' as const }, outputSchema }],
  }))
  const structuredContent = { text: `${'a'.repeat(28)}!` }
  answerCalls(theirs, (id) => void theirs.send({ jsonrpc: '2.0', id, result: { content: [], structuredContent } }))
  const instance = await mcpInstance({ id: 'evil', transport: ours })
  await instance.listTools()
  expect(await instance.callTool(callOf('echo'))).toMatchObject({ structuredContent })
  await instance.close()
})

it('progress that arrives together with the result is emitted before it', async () => {
  const { ours, theirs } = await serve(createSuiteTools())
  answerCalls(theirs, (id, progressToken) => {
    for (const progress of [1, 2]) {
      void theirs.send({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress } })
    }
    void theirs.send({ jsonrpc: '2.0', id, result: { content: [] } })
  })
  const instance = await mcpInstance({ id: 'quick', transport: ours })
  const call = callOf('echo')
  await instance.callTool(call)
  expect(call.progress).toEqual([{ progress: 1 }, { progress: 2 }])
  await instance.close()
})

it('malformed or unknown progress and errors of unknown requests affect no call', async () => {
  const { ours, theirs } = await serve(createSuiteTools())
  answerCalls(theirs, (id, progressToken) => {
    for (const params of [{ progressToken, progress: 'half' }, { progress: 1 }, { progressToken: 'x', progress: 1 }]) {
      void theirs.send({ jsonrpc: '2.0', method: 'notifications/progress', params })
    }
    void theirs.send({ jsonrpc: '2.0', error: { code: -32700, message: 'What was that?' } })
    void theirs.send({ jsonrpc: '2.0', id, result: { content: [] } })
  })
  const instance = await mcpInstance({ id: 'odd', transport: ours })
  const lost = vi.fn()
  instance.onLost(lost)
  const call = callOf('echo')
  expect(await instance.callTool(call)).toMatchObject({ content: [] })
  expect([call.progress, lost.mock.calls]).toEqual([[], []])
  await instance.close()
})

describe('an MCP server that ignores a cancellation', () => {
  async function open() {
    const tools = createSuiteTools()
    const clock = createManualClock()
    const { ours, received } = await serve(tools, { stubborn: true })
    const instance = await mcpInstance({ id: 'stubborn', transport: ours, clock })
    const call = callOf('hold', { name: 'a' })
    const ended = instance.callTool(call).then(
      (result) => ({ result }),
      (error: unknown) => ({ error }),
    )
    const settled = vi.fn()
    void ended.then(settled)
    await tools.held('a')
    call.abort()
    await setImmediate()
    return { tools, clock, instance, ended, settled, received }
  }

  it('S5: gets the cancellation, and keeps its lane until it is done', async () => {
    const { tools, instance, ended, settled, received } = await open()
    expect(received).toContainEqual(expect.objectContaining({ method: 'notifications/cancelled' }))
    expect(settled).not.toHaveBeenCalled()
    tools.release('a')
    expect(await ended).toMatchObject({ result: { content: [{ text: 'held' }] } })
    await instance.close()
  })

  it('S5: is not waited for after the grace period', async () => {
    const { clock, instance, ended, settled } = await open()
    clock.advance(1999)
    await setImmediate()
    expect(settled).not.toHaveBeenCalled()
    clock.advance(1)
    expect(await ended).toMatchObject({ error: { name: 'AbortError' } })
    expect(clock.pending).toBe(0)
    await instance.close()
  })
})

it('S4: progress of a call that was given up is dropped, although its server goes on', async () => {
  const { ours, theirs } = await serve(createSuiteTools(), { stubborn: true })
  let report: (progress: number) => void = () => undefined
  let finish: () => void = () => undefined
  answerCalls(theirs, (id, progressToken) => {
    report = (progress) =>
      void theirs.send({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress } })
    finish = () => void theirs.send({ jsonrpc: '2.0', id, result: { content: [] } })
  })
  const instance = await mcpInstance({ id: 'chatty', transport: ours, clock: createManualClock() })
  const call = callOf('hold')
  const ended = instance.callTool(call)
  await setImmediate()
  report(1)
  await setImmediate()
  call.abort()
  report(2)
  await setImmediate()
  finish()
  expect(await ended).toEqual({ content: [] })
  expect(call.progress).toEqual([{ progress: 1 }])
  await instance.close()
})

it('a transport with a connection of its own is not asked whether it is there, whatever error it reports', async () => {
  const { ours, received } = await serve(createSuiteTools())
  const instance = await mcpInstance({ id: 'steady', transport: ours })
  const lost = vi.fn()
  instance.onLost(lost)
  await expect.poll(() => instance.toolNames).toContain('echo')
  ours.onerror?.(new Error('one message was malformed'))
  await setImmediate()
  expect(received).not.toContainEqual(expect.objectContaining({ method: 'ping' }))
  expect(lost).not.toHaveBeenCalled()
  await instance.close()
})

it('is closed when its calls have ended', async () => {
  const tools = createSuiteTools()
  const { ours } = await serve(tools, { stubborn: true })
  const clock = createManualClock()
  const instance = await mcpInstance({ id: 'busy', transport: ours, clock })
  const order: string[] = []
  const ended = instance.callTool(callOf('hold', { name: 'a' })).catch(() => order.push('the call'))
  await tools.held('a')
  await instance.close().then(() => order.push('the instance'))
  await ended
  expect(order).toEqual(['the call', 'the instance'])
  expect(clock.pending).toBe(0)
})

/** A program with an MCP server whose tools return a text of a number of characters, and hold their call. */
const sdk = join(createRequire(import.meta.url).resolve('@modelcontextprotocol/server'), '..')
const program = (options: object) => `
  import { McpServer } from ${JSON.stringify(join(sdk, 'index.mjs'))}
  import { serveStdio } from ${JSON.stringify(join(sdk, 'stdio.mjs'))}
  const text = (size) => ({ content: [{ type: 'text', text: 'x'.repeat(size) }] })
  serveStdio(() => {
    const server = new McpServer({ name: 'sizes', version: '1.0.0' })
    server.registerTool('large', {}, () => text(11 * 1024 * 1024))
    server.registerTool('small', {}, () => text(2))
    server.registerTool('slow', {}, async ({ mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1 } })
      await new Promise((resolve) => mcpReq.signal.addEventListener('abort', resolve))
      return text(3)
    })
    return server
  }, ${JSON.stringify(options)})`

async function startProgram(options: object = {}) {
  const args = ['--input-type=module', '-e', program(options)]
  const instance = await mcpInstance({ id: 'sizes', command: process.execPath, args, cancelGraceMs: 10 })
  onTestFinished(() => instance.close())
  const lost = vi.fn()
  instance.onLost(lost)
  return { instance, lost }
}

it('F13: an answer above 10 MiB fails its call with the limit, and the instance goes on', async () => {
  const { instance, lost } = await startProgram()
  const refused = expect(instance.callTool(callOf('large'))).rejects
  await refused.toMatchObject({ message: expect.stringContaining('10 MiB') as string })
  expect(await instance.callTool(callOf('small'))).toMatchObject({ content: [{ text: 'xx' }] })
  expect(lost).not.toHaveBeenCalled()
})

describe('F13: an MCP server that speaks only 2026-07-28', () => {
  it('is used over stdio, with progress and cancellation', async () => {
    const { instance, lost } = await startProgram({ legacy: 'reject' })
    expect((await instance.listTools()).map(({ name }) => name)).toEqual(['large', 'small', 'slow'])
    expect(await instance.callTool(callOf('small'))).toMatchObject({ content: [{ text: 'xx' }] })
    const call = callOf('slow')
    const ended = instance.callTool(call)
    await waitFor(() => expect(call.progress).toEqual([{ progress: 1 }]))
    call.abort()
    await expect(ended).rejects.toMatchObject({ name: 'AbortError' })
    expect(await instance.callTool(callOf('small'))).toMatchObject({ content: [{ text: 'xx' }] })
    expect(lost).not.toHaveBeenCalled()
  })

  it('is used over HTTP, and its end is noticed', async () => {
    const handler = createMcpHandler(
      () => {
        const server = new McpServer({ name: 'modern', version: '1.0.0' })
        server.registerTool('hello', {}, () => ({ content: [{ type: 'text', text: 'hello' }] }))
        return server
      },
      { legacy: 'reject' },
    )
    const listener = toNodeHandler(handler)
    const http = createServer(
      (request, response) => void listener(request as NodeIncomingMessageLike, response),
    ).listen(0, '127.0.0.1')
    await once(http, 'listening')
    const stop = () => {
      http.close()
      http.closeAllConnections()
    }
    onTestFinished(stop)
    const { port } = http.address() as AddressInfo
    const instance = await mcpInstance({ id: 'modern', url: `http://127.0.0.1:${port}/mcp` })
    onTestFinished(() => instance.close())
    const lost = vi.fn()
    instance.onLost(lost)
    expect(await instance.callTool(callOf('hello'))).toMatchObject({ content: [{ text: 'hello' }] })
    await expect(instance.callTool(callOf('no-such-tool'))).rejects.toBeInstanceOf(ToolCallError)
    expect(lost).not.toHaveBeenCalled()
    stop()
    await expect(instance.callTool(callOf('hello'))).rejects.toMatchObject({ code: 'INSTANCE_DISCONNECTED' })
    expect(lost).toHaveBeenCalledOnce()
  })
})

it('F13: a tool that must be called as a task is not listed, because it would fail at each call', async () => {
  const { ours, server } = await serve(createSuiteTools())
  const inputSchema = { type: 'object' as const }
  server.setRequestHandler('tools/list', () => ({
    tools: (['required', 'optional', 'forbidden'] as const).map((taskSupport) => {
      return { name: taskSupport, inputSchema, execution: { taskSupport } }
    }),
  }))
  const instance = await mcpInstance({ id: 'tasks', transport: ours })
  expect((await instance.listTools()).map(({ name }) => name)).toEqual(['optional', 'forbidden'])
  expect(instance.toolNames).toEqual(['optional', 'forbidden'])
  await instance.close()
})

describe('an MCP server that does not start', () => {
  it('is an error that names the command and what happened', async () => {
    const error: unknown = await mcpInstance({ id: 'x', command: 'no-such-command-here' }).catch(
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(InstanceError)
    expect(error).toMatchObject({
      code: 'INSTANCE_START_FAILED',
      instanceId: 'x',
      message:
        'MCP server "no-such-command-here", instance "x", did not start: the command, or its working directory, was not found (ENOENT).',
    })
  })

  it('is an error with the end of its stderr', async () => {
    const script = 'console.error("the licence has expired"); process.exit(3)'
    const error: unknown = await mcpInstance({ id: 'x', command: process.execPath, args: ['-e', script] }).catch(
      (reason: unknown) => reason,
    )
    expect(error).toMatchObject({
      code: 'INSTANCE_START_FAILED',
      message: expect.stringMatching(
        /it exited with code 3\. The end of its stderr:\nthe licence has expired$/,
      ) as string,
    })
  })

  it('is an error when it does not answer in time, and is closed', async () => {
    const script = 'console.error("thinking"); process.stdin.resume(); setInterval(() => {}, 1000)'
    const error: unknown = await mcpInstance({
      id: 'x',
      command: process.execPath,
      args: ['-e', script],
      startTimeoutMs: 300,
      closeGraceMs: 10,
    }).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ message: expect.stringMatching(/it did not answer within 300 ms\./) as string })
  })

  it('is an error when no server listens at its URL', async () => {
    const url = 'http://user:secret@127.0.0.1:9/mcp?token=secret'
    const error: unknown = await mcpInstance({ id: 'x', url }).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'INSTANCE_START_FAILED' })
    expect((error as Error).message).toContain('MCP server at http://127.0.0.1:9/mcp, instance "x", did not start:')
    expect((error as Error).message).not.toContain('secret')
  })
})
