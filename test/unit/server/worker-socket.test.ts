// A remote worker over the server's routes and sockets: it registers, says hello, is called, and disconnects.
import { describe, expect, it } from 'vitest'
import { openSocket, type SocketClient } from '../../support/socket-client.js'
import { startTestServer, taskOf, type TestServer } from './test-server.js'

async function connectWorker(
  server: TestServer,
  instanceId = 'remote',
  headers: Record<string, string> = {},
): Promise<{ worker: SocketClient; secret: string; url: string }> {
  const { body } = await server.post('/register', { instanceId, tools: [{ name: 'look' }] }, headers)
  const { secret, websocketUrl: url } = body as { secret: string; websocketUrl: string }
  const worker = await openSocket(url)
  worker.send({ type: 'hello', instanceId, secret })
  expect(await worker.next()).toEqual({ type: 'welcome', instanceId })
  return { worker, secret, url }
}

describe('a remote worker', () => {
  it('is called with its instanceId in the arguments, and its answer ends the command', async () => {
    const server = await startTestServer({ instances: [] })
    const { worker } = await connectWorker(server)
    const client = await server.client()
    await client.ask({ type: 'task_submit', ...taskOf({ tool_name: 'look', args: { at: 'a page' } }) })
    const call = await worker.next()
    expect(call).toMatchObject({ type: 'tool_call', name: 'look', arguments: { at: 'a page', instanceId: 'remote' } })
    worker.send({ type: 'tool_progress', callId: call['callId'], progress: 1, total: 2 })
    worker.send({ type: 'tool_result', callId: call['callId'], result: { content: [{ type: 'text', text: 'seen' }] } })
    expect(await client.skipTo('task_progress')).toMatchObject({ status: 'running' })
    expect(await client.next()).toMatchObject({ type: 'task_progress', progress: 1, total: 2 })
    expect(await client.skipTo('task_complete')).toMatchObject({
      status: 'completed',
      instanceId: 'remote',
      results: [{ status: 'success', result: { content: [{ type: 'text', text: 'seen' }] } }],
    })
  })

  it('S5: gets tool_cancel when its call is cancelled', async () => {
    const server = await startTestServer({ instances: [] })
    const { worker } = await connectWorker(server)
    const { body } = await server.post('/tasks', taskOf('look'))
    const { callId } = await worker.next()
    await server.post(`/tasks/${String(body['taskId'])}/cancel`)
    expect(await worker.next()).toMatchObject({ type: 'tool_cancel', callId })
  })

  it('S1: fails its tasks when its socket closes, each once', async () => {
    const server = await startTestServer({ instances: [] })
    const { worker } = await connectWorker(server)
    const client = await server.client()
    await client.ask({ type: 'subscribe_instance', instanceId: 'remote' })
    await server.post('/tasks', taskOf('look'))
    await server.post('/tasks', taskOf('look'))
    await worker.next()
    worker.socket.terminate()
    for (const duration of [expect.any(Number) as number, 0]) {
      expect(await client.skipTo('task_complete')).toMatchObject({
        status: 'failed',
        error: { code: 'INSTANCE_DISCONNECTED' },
        summary: { successfulCommands: 0, duration },
      })
    }
    expect(await server.post('/tasks', { ...taskOf('look'), instanceId: 'remote' })).toMatchObject({ status: 404 })
  })

  it.each([
    ['a browser, which sends an Origin', (url: string) => ({ origin: url }), 'Browser instance disconnected'],
    ['another program', () => ({}), 'Remote worker disconnected'],
  ])('is named in the error of its tasks as %s', async (_what, headersFor, message) => {
    const server = await startTestServer({ instances: [] })
    const { worker } = await connectWorker(server, 'remote', headersFor(server.httpUrl))
    const client = await server.client()
    await client.ask({ type: 'subscribe_instance', instanceId: 'remote' })
    await server.post('/tasks', taskOf('look'))
    await worker.next()
    worker.socket.terminate()
    expect(await client.skipTo('task_complete')).toMatchObject({ error: { code: 'INSTANCE_DISCONNECTED', message } })
  })

  it('is taken over by another socket with the right secret, and not with a wrong one', async () => {
    const server = await startTestServer({ instances: [] })
    const { worker, secret, url } = await connectWorker(server)
    const wrong = await openSocket(url)
    wrong.send({ type: 'hello', instanceId: 'remote', secret: 'guessed' })
    expect(await wrong.closed).toMatchObject({ code: 4401 })
    const second = await openSocket(url)
    second.send({ type: 'hello', instanceId: 'remote', secret })
    expect(await second.next()).toMatchObject({ type: 'welcome' })
    expect(await worker.closed).toMatchObject({ code: 4409 })
    await server.post('/tasks', taskOf('look'))
    expect(await second.next()).toMatchObject({ type: 'tool_call' })
  })

  it('gets an error for a malformed message, and stays connected', async () => {
    const server = await startTestServer({ instances: [] })
    const { worker } = await connectWorker(server)
    worker.send('{')
    expect(await worker.next()).toMatchObject({ type: 'error' })
    worker.send({ type: 'tool_result', callId: 5 })
    expect(await worker.next()).toMatchObject({ type: 'error', code: 'INVALID_MESSAGE' })
    worker.send({ type: 'ping' })
    expect(await worker.next()).toEqual({ type: 'pong' })
  })
})
