// A server whose tasks answer later, as those of a cluster do. They are real ones, behind a turn of the event loop.
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AgentTasksError } from '../../../src/errors.js'
import { createLocalBackend, type TaskBackend, type TaskCluster } from '../../../src/server/backend/task-backend.js'
import { sqliteStore } from '../../../src/store/index.js'
import { openEvents } from '../../support/event-source.js'
import { openSocket } from '../../support/socket-client.js'
import { startTestServer, taskOf } from './test-server.js'

const later =
  <Args extends unknown[], Answer>(answer: (...args: Args) => Answer) =>
  async (...args: Args): Promise<Awaited<Answer>> => {
    await setImmediate()
    return await answer(...args)
  }

/** The tasks of one process, which answer in a later turn. */
const lateCluster = (change: (backend: TaskBackend) => Partial<TaskBackend> = () => ({})): TaskCluster => ({
  join: (parts) => {
    const backend = createLocalBackend(parts, false)
    const { service: now } = backend
    const service: TaskBackend['service'] = {
      submit: later((...args) => now.submit(...args)),
      list: later((...args) => now.list(...args)),
      get: later((...args) => now.get(...args)),
      cancel: later((...args) => now.cancel(...args)),
      follow: later((...args) => now.follow(...args)),
    }
    return Promise.resolve({ ...backend, service, ...change(backend) })
  },
})

describe('a server whose tasks answer later', () => {
  it('answers a socket in the order of its requests, and a submission before the first event', async () => {
    const server = await startTestServer({ cluster: lateCluster(), tasks: { maxRetained: 100 } })
    const client = await server.client()
    client.send({ type: 'subscribe_instance', instanceId: 'calc' })
    for (const requestId of [1, 2, 3]) client.send({ ...taskOf('add'), type: 'task_submit', requestId })
    client.send({ type: 'task_list', requestId: 4 })
    client.send({ type: 'task_status', taskId: 'task_1', requestId: 5 })
    client.send({ type: 'task_cancel', taskId: 'task_1', requestId: 6 })
    client.send({ type: 'subscribe_task', taskId: 'task_1', requestId: 7 })
    const answered: unknown[] = []
    const submitted = new Set<unknown>()
    while (answered.at(-1) !== 7) {
      const message = await client.next()
      if (message['requestId'] !== undefined) answered.push(message['requestId'])
      if (message.type === 'task_submit_response') submitted.add(message['taskId'])
      if (message.type === 'task_progress') expect(submitted).toContain(message['taskId'])
    }
    expect(answered).toEqual([1, 2, 3, 4, 5, 6, 7])
  })

  it('passes on what waits for an answer when its socket has closed', async () => {
    const server = await startTestServer({ cluster: lateCluster() })
    const client = await server.client()
    for (let n = 0; n < 5; n += 1) client.send({ ...taskOf('hold'), type: 'task_submit' })
    await client.close()
    const count = async (): Promise<number> => ((await server.call('/tasks')).body['tasks'] as unknown[]).length
    while ((await count()) < 5) await setImmediate()
  })

  it('serves every route', async () => {
    const server = await startTestServer({ cluster: lateCluster() })
    const { body } = await server.post('/tasks', taskOf('hold'))
    const path = `/tasks/${String(body['taskId'])}`
    const events = await openEvents(server.httpUrl + path + '/events')
    expect((await events.next())?.event).toBe('subscribe_ack')
    expect((await server.call(path)).body).toMatchObject({ task: { id: body['taskId'] } })
    expect(await server.post(`${path}/cancel`)).toMatchObject({ status: 200 })
    const rest = await events.rest()
    expect(rest.at(-1)).toMatchObject({ event: 'task_complete', data: { status: 'cancelled' } })
  })

  it('says that it cannot answer, and goes on', async () => {
    const away = (): Promise<never> => Promise.reject(new AgentTasksError('UNAVAILABLE', 'Redis is away.'))
    const cluster = lateCluster(({ service }) => ({ service: { ...service, get: away, submit: away } }))
    const server = await startTestServer({ cluster })
    expect(await server.call('/tasks/task_1')).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } })
    const client = await server.client()
    for (const message of [
      { type: 'task_status', taskId: 'task_1' },
      { ...taskOf('add'), type: 'task_submit' },
    ]) {
      expect(await client.ask({ ...message, requestId: 1 })).toMatchObject({ type: 'error', code: 'INTERNAL_ERROR' })
    }
    expect(await client.ask({ type: 'task_list', requestId: 2 })).toMatchObject({ tasks: [] })
  })

  it('passes on what has happened during a submission that fails', async () => {
    let asked: () => void = () => undefined
    let refuse: (error: Error) => void = () => undefined
    const isAsked = new Promise<void>((resolve) => (asked = resolve))
    const refused = new Promise<never>((_resolve, reject) => (refuse = reject))
    const cluster = lateCluster(({ service }) => ({
      service: {
        ...service,
        submit: (message) => {
          if (message.task_name !== 'refused') return service.submit(message)
          asked()
          return refused
        },
      },
    }))
    const server = await startTestServer({ cluster, tasks: { maxRetained: 100 } })
    const client = await server.client()
    await client.ask({ type: 'subscribe_instance', instanceId: 'calc' })
    client.send({ ...taskOf('add'), task_name: 'refused', type: 'task_submit', requestId: 1 })
    await isAsked
    expect((await server.post('/api/tools/add', { a: 2, b: 3 })).body).toMatchObject({ success: true, result: 5 })
    expect(client.takeAll()).toEqual([])
    refuse(new AgentTasksError('UNAVAILABLE', 'Redis is away.'))
    await client.ask({ type: 'task_list', requestId: 2 })
    expect(client.takeAll().map(({ type, status, code }) => [type, status ?? code])).toEqual([
      ['task_progress', 'running'],
      ['task_progress', 'success'],
      ['task_complete', 'completed'],
      ['error', 'INTERNAL_ERROR'],
    ])
  })

  it('looks a worker up before it is admitted, and sends it away while it cannot', async () => {
    const asked: string[] = []
    const find = async (instanceId: string): Promise<void> => {
      await setImmediate()
      asked.push(instanceId)
      if (instanceId === 'away') throw new Error('Redis is away.')
    }
    const server = await startTestServer({
      cluster: lateCluster(() => ({ sharedWorkers: { find, announced: () => setImmediate() } })),
    })
    const { instanceId, secret, websocketUrl } = (await server.post('/register', { instanceId: 'w' })).body as Record<
      string,
      string
    >
    const worker = await openSocket(String(websocketUrl))
    onTestFinished(() => worker.close())
    worker.send({ type: 'hello', instanceId, secret })
    expect(await worker.next()).toEqual({ type: 'welcome', instanceId })
    const other = await openSocket(String(websocketUrl))
    other.send({ type: 'hello', instanceId: 'away', secret })
    expect((await other.closed).code).toBe(1001)
    const gone = await openSocket(String(websocketUrl))
    gone.send({ type: 'hello', instanceId: 'away', secret })
    await gone.close()
    expect(asked).toEqual(['w', 'away', 'away'])
  })

  it('welcomes a worker when the others know it, and calls its tools after that', async () => {
    let announce: (() => void) | undefined
    const announced = (): Promise<void> => new Promise((resolve) => (announce = resolve))
    const sharedWorkers = { find: () => Promise.resolve(), announced }
    const server = await startTestServer({ cluster: lateCluster(() => ({ sharedWorkers })) })
    const { secret, websocketUrl } = (await server.post('/register', { instanceId: 'w' })).body
    const worker = await openSocket(String(websocketUrl))
    onTestFinished(() => worker.close())
    const welcome = worker.next()
    worker.send({ type: 'hello', instanceId: 'w', secret })
    while (announce === undefined) await setImmediate()
    const { body } = await server.post('/tasks', { ...taskOf('add'), instanceId: 'w' })
    expect((await server.call(`/tasks/${String(body['taskId'])}`)).body).toMatchObject({ task: { status: 'running' } })
    expect(await Promise.race([welcome, setImmediate('nothing')])).toBe('nothing')
    announce()
    expect(await welcome).toEqual({ type: 'welcome', instanceId: 'w' })
    expect(await worker.next()).toMatchObject({ type: 'tool_call', name: 'add' })
  })

  it('names the address that it is told to', async () => {
    const cluster = lateCluster(() => ({ publicUrl: 'https://tasks.example/' }))
    const server = await startTestServer({ cluster })
    expect((await server.post('/tasks', taskOf('hold'))).body['wsEndpoint']).toBe('wss://tasks.example/ws')
    expect((await server.post('/register')).body['websocketUrl']).toBe('wss://tasks.example/worker')
  })

  it('does not start when it cannot join, or has a store as well', async () => {
    const cluster = { join: () => Promise.reject(new Error('Redis is away.')) }
    await expect(startTestServer({ cluster })).rejects.toThrow('Redis is away.')
    const store = sqliteStore(':memory:')
    onTestFinished(() => store.close())
    await expect(startTestServer({ cluster, store })).rejects.toThrow('kept in Redis')
  })
})
