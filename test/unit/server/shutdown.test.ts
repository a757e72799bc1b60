// Closing a server: no new tasks, time for running ones, every complete sent, nothing left open.
import { EventEmitter, once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startTaskServer } from '../../../src/server/index.js'
import { drainTasks } from '../../../src/server/backend/shutdown.js'
import type { TaskManager } from '../../../src/command-tasks/task-manager.js'
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
      field: 'PORT',
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

describe('draining', () => {
  const createSubject = (holdsQueue = false) => {
    const clock = createManualClock()
    const cancelled: string[] = []
    const state = { hasRunning: true }
    const tasks = Object.assign(new EventEmitter(), {
      holdQueue: () => holdsQueue,
      // The newest first.
      listTasks: (_instance: undefined, status: string) => [{ id: `${status} 2` }, { id: `${status} 1` }],
      cancelTask: (id: string, reason: string) => cancelled.push(`${id}: ${reason}`) > 0,
    })
    const drain = (ms: number) => drainTasks(tasks as unknown as TaskManager, clock, ms)
    Object.defineProperty(tasks, 'hasRunning', { get: () => state.hasRunning })
    return { clock, cancelled, state, tasks, drain }
  }
  const REASON = 'the server is shutting down'

  it('cancels the oldest task first, what is queued at once, and leaves no listener and no timer', async () => {
    const { clock, cancelled, tasks, drain } = createSubject()
    const drained = drain(500)
    expect(cancelled).toEqual([`queued 1: ${REASON}`, `queued 2: ${REASON}`])
    tasks.emit('complete')
    expect([tasks.listenerCount('complete'), clock.pending]).toEqual([1, 1])
    clock.advance(500)
    await drained
    expect(cancelled.slice(2)).toEqual([`running 1: ${REASON}`, `running 2: ${REASON}`])
    expect([tasks.listenerCount('complete'), clock.pending]).toEqual([0, 0])
  })

  it('ends with the last running task, and leaves the queue to a store that holds it', async () => {
    const { clock, cancelled, state, tasks, drain } = createSubject(true)
    const drained = drain(Infinity)
    state.hasRunning = false
    tasks.emit('complete')
    await drained
    expect([tasks.listenerCount('complete'), clock.pending]).toEqual([0, 0])
    expect(cancelled.filter((line) => line.startsWith('queued'))).toEqual([])
  })

  it.each([0, 500])('waits for nothing when nothing runs, or with no time (%d ms)', async (ms) => {
    const { state, tasks, drain } = createSubject()
    state.hasRunning = ms === 0
    await drain(ms)
    expect(tasks.listenerCount('complete')).toBe(0)
  })
})
