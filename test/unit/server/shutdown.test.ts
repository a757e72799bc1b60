// Closing a server: no new tasks, time for running ones, every complete sent, nothing left open.
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startTaskServer } from '../../../src/server/index.js'
import { openEvents } from '../../support/event-source.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { openSocket } from '../../support/socket-client.js'
import { createHolding, startTestServer, taskOf } from './test-server.js'

describe('close', () => {
  it('lets a running task end, cancels the queued one at once, accepts no new one, and sends every complete', async () => {
    const server = await startTestServer()
    const client = await server.client()
    const worker = await openSocket(`${server.httpUrl.replace('http', 'ws')}/worker`)
    await client.ask({ type: 'subscribe_instance', instanceId: 'calc' })
    const running = await server.post('/tasks', taskOf('hold', 'add'))
    const stream = await openEvents(`${server.httpUrl}/tasks/${String(running.body['taskId'])}/events`)
    const held = await server.held()
    const queued = await server.post('/tasks', taskOf('add'))
    const closed = server.close({ drainMs: 60_000 })
    expect(await client.skipTo('task_complete')).toMatchObject({ taskId: queued.body['taskId'], status: 'cancelled' })
    expect(await server.post('/tasks', taskOf('add'))).toMatchObject({ status: 503, body: { code: 'SHUTTING_DOWN' } })
    expect(await server.post('/register', {})).toMatchObject({ status: 503, body: { code: 'SHUTTING_DOWN' } })
    expect(await client.ask({ type: 'task_submit', ...taskOf('add') })).toMatchObject({
      status: 'rejected',
      code: 'SHUTTING_DOWN',
    })
    expect((await server.call('/health')).body).toMatchObject({ status: 'draining' })
    held.finish()
    expect(await client.skipTo('task_complete')).toMatchObject({ taskId: running.body['taskId'], status: 'completed' })
    expect((await stream.rest()).at(-1)).toMatchObject({ event: 'task_complete', data: { status: 'completed' } })
    expect(await client.closed).toMatchObject({ code: 1001 })
    expect(await worker.closed).toMatchObject({ code: 1001 })
    await closed
    await expect(fetch(server.httpUrl)).rejects.toThrow()
    await expect(openSocket(server.wsUrl)).rejects.toThrow()
  })

  it('S1: cancels what still runs after drainMs, and sends its complete before the sockets close', async () => {
    const clock = createManualClock(1_000_000)
    const server = await startTestServer({ clock })
    const client = await server.client()
    await client.ask({ type: 'task_submit', ...taskOf('hold') })
    const held = await server.held()
    const closed = server.close({ drainMs: 5000 })
    clock.advance(4999)
    expect(await client.ask({ type: 'task_list' })).toMatchObject({ tasks: [{ status: 'running' }] })
    clock.advance(1)
    expect(await client.skipTo('task_complete')).toMatchObject({
      status: 'cancelled',
      error: { code: 'CANCELLED', message: 'Task cancelled: the server is shutting down' },
    })
    expect(held.signal.aborted).toBe(true)
    held.finish()
    expect(await client.closed).toMatchObject({ code: 1001 })
    await closed
  })

  it.each([2 ** 31, Infinity])('lets a running task take as long as it needs with drainMs %d', async (drainMs) => {
    const clock = createManualClock(1_000_000)
    const server = await startTestServer({ clock })
    const client = await server.client()
    await client.ask({ type: 'task_submit', ...taskOf('hold') })
    const held = await server.held()
    const closed = server.close({ drainMs })
    clock.advance(1000)
    expect(await client.ask({ type: 'task_list' })).toMatchObject({ tasks: [{ status: 'running' }] })
    held.finish()
    expect(await client.skipTo('task_complete')).toMatchObject({ status: 'completed' })
    await closed
  })

  it.each([NaN, -1, '5' as never])('refuses drainMs %s, and stays open', async (drainMs) => {
    const server = await startTestServer()
    await expect(server.close({ drainMs })).rejects.toThrow(
      /^options\.drainMs: got .+, expected a number of ms >= 0, or Inf/,
    )
    expect((await server.call('/health')).body).toMatchObject({ status: 'ok' })
  })

  it('returns the same promise when called again', async () => {
    const server = await startTestServer()
    expect(server.close()).toBe(server.close())
    await server.close()
  })

  it('is called by `await using`', async () => {
    let url: string
    {
      await using server = await startTaskServer({ port: 0, env: {}, logLevel: 'silent', tasks: { wsPort: 0 } })
      url = server.httpUrl
      expect((await fetch(`${url}/health`)).status).toBe(200)
    }
    await expect(fetch(url)).rejects.toThrow()
  })

  it('does not wait for a client that does not answer the close', async () => {
    const server = await startTestServer()
    const client = await server.client()
    client.socket.pause()
    await server.close()
    client.socket.resume()
    await client.closed
  })

  it('leaves nothing open when a port is in use, and names the setting', async () => {
    const server = await startTestServer()
    const port = Number(new URL(server.httpUrl).port)
    const { instance } = createHolding('other')
    const start = startTaskServer({
      port: 0,
      env: {},
      logLevel: 'silent',
      tasks: { wsPort: port },
      instances: [instance],
    })
    await expect(start).rejects.toThrow(
      `Port ${port} on 127.0.0.1 is in use by a task server 0.1.0. ` +
        'Choose another port (--ws-port, options.tasks.wsPort, TASKS_WS_PORT), or 0 for a free one.',
    )
    const other = startTaskServer({ port, env: {}, logLevel: 'silent', tasks: { wsPort: 0 } })
    await expect(other).rejects.toMatchObject({
      code: 'INVALID_SETTING',
      setting: 'PORT',
      received: port,
      message: expect.stringContaining('(--port, options.port, PORT)') as string,
    })
    const wsPort = Number(new URL(server.wsUrl).port)
    await expect(startTaskServer({ port: wsPort, env: {}, logLevel: 'silent' })).rejects.toThrow(
      'is in use by the client socket of a task server.',
    )
    const program = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
    onTestFinished(() => void program.close())
    await once(program, 'listening')
    const { port: taken } = program.address() as AddressInfo
    await expect(startTaskServer({ port: taken, env: {}, logLevel: 'silent' })).rejects.toThrow(
      'is in use by another program.',
    )
  })
})
