/** A server with a store: registrations, keys, event ids and refusals, also after a restart. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createTaskClient } from '../../../src/client/index.js'
import { startTaskServer, type TaskServerOptions } from '../../../src/server/index.js'
import { memoryStore, readStore, type MemoryStore } from '../../../src/store/index.js'
import { breakableStore } from '../../support/breakable-store.js'
import { openSocket } from '../../support/socket-client.js'
import { startTestServer, taskOf } from './test-server.js'

/** The next life of a server that was killed. */
const restarted = (store: MemoryStore, options?: TaskServerOptions) =>
  startTestServer({ ...options, store: store.copy() })

async function hello(url: string, registration: Record<string, unknown>) {
  const { instanceId, secret } = registration
  const worker = await openSocket(url)
  worker.send({ type: 'hello', instanceId, secret })
  onTestFinished(() => worker.close())
  return worker
}

describe('a registered worker', () => {
  it('K12: connects with its secret after a restart, and gets the tasks that waited for it', async () => {
    const store = memoryStore()
    const first = await startTestServer({ store, instances: [] })
    const { body: registration, status } = await first.post('/register', {
      instanceId: 'w',
      tools: [{ name: 'click' }],
    })
    expect(status).toBe(201)
    expect(store.contents().instances).toEqual([
      {
        id: 'w',
        secretSha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
        registration: { tools: [{ name: 'click' }], isBrowser: false },
      },
    ])
    expect(JSON.stringify(store.contents())).not.toContain(registration['secret'])
    const worker = await hello(String(registration['websocketUrl']), registration)
    await worker.skipTo('welcome')
    const { body: submitted } = await first.post('/tasks', taskOf('click', 'click'))
    const { body: waiting } = await first.post('/tasks', taskOf('click'))
    await worker.skipTo('tool_call')

    const next = await restarted(store, { instances: [] })
    const taken = await next.post('/register', { instanceId: 'w' })
    expect([taken.status, taken.body['code']]).toEqual([409, 'INSTANCE_ID_IN_USE'])
    expect((await next.post('/tasks', { ...taskOf('click'), instanceId: 'w' })).status).toBe(409)
    const url = `${next.httpUrl.replace('http', 'ws')}/worker`
    const stranger = await hello(url, { instanceId: 'w', secret: 'guessed' })
    expect(await stranger.skipTo('error')).toMatchObject({ code: 'UNAUTHORIZED' })
    const again = await hello(url, registration)
    expect(await again.skipTo('tool_call')).toMatchObject({ taskId: waiting['taskId'] })
    expect((await next.call(`/tasks/${String(submitted['taskId'])}`)).body['task']).toMatchObject({
      status: 'failed',
      error: { code: 'INTERRUPTED' },
    })
    const { body } = await next.call('/instances')
    expect(body['instances']).toMatchObject([{ id: 'w', tools: [{ name: 'click' }] }])
  })

  it('K12: that was started again resumes its registration with its secret, also after a restart of the server', async () => {
    const store = memoryStore()
    const first = await startTestServer({ store, instances: [] })
    const request = { instanceId: 'w', tools: [{ name: 'click' }] }
    const { body: registration } = await first.post('/register', request)
    const worker = await hello(String(registration['websocketUrl']), registration)
    await worker.skipTo('welcome')
    await first.post('/tasks', taskOf('click'))
    const { body: waiting } = await first.post('/tasks', taskOf('click'))
    await worker.skipTo('tool_call')

    const next = await restarted(store, { instances: [] })
    const { secret } = registration
    for (const guess of [{}, { secret: 'guessed' }, { secret: `${String(secret)}x` }]) {
      expect((await next.post('/register', { ...request, ...guess })).status).toBe(409)
    }
    expect((await next.post('/register', { ...request, secret: '' })).status).toBe(400)
    const resumed = await next.post('/register', { ...request, secret })
    expect(resumed).toMatchObject({
      status: 201,
      body: { instanceId: 'w', secret, websocketUrl: `${next.httpUrl.replace('http', 'ws')}/worker` },
    })
    const again = await hello(String(resumed.body['websocketUrl']), resumed.body)
    expect(await again.skipTo('tool_call')).toMatchObject({ taskId: waiting['taskId'] })

    // The server has not noticed yet that this connection is dead.
    const third = await hello(
      String(resumed.body['websocketUrl']),
      (await next.post('/register', { ...request, secret })).body,
    )
    expect(await third.skipTo('welcome')).toMatchObject({ instanceId: 'w' })
    expect(await again.closed).toMatchObject({ code: 4409 })
    // The secret of an instance that is gone is worth nothing: its worker gets a new one.
    await third.close()
    await expect.poll(() => next.instances.get('w')).toBeUndefined()
    const anew = await next.post('/register', { ...request, secret })
    expect(anew.status).toBe(201)
    expect(anew.body['secret']).not.toBe(secret)
  })

  it('K12: is forgotten when it is gone, and not when the server closes', async () => {
    const store = memoryStore()
    const first = await startTestServer({ store, instances: [] })
    const register = async (instanceId: string) => {
      const { body } = await first.post('/register', { instanceId })
      const worker = await hello(String(body['websocketUrl']), body)
      await worker.skipTo('welcome')
      return worker
    }
    const gone = await register('gone')
    await register('stays')
    await gone.close()
    await expect.poll(() => store.contents().instances.map(({ id }) => id)).toEqual(['stays'])
    await first.close({ drainMs: 0 })
    expect(store.contents().instances.map(({ id }) => id)).toEqual(['stays'])
    const next = await startTestServer({ store, instances: [], tasks: { instanceGraceMs: 50 } })
    expect(next.instances.get('stays')?.state).toBe('connecting')
    await expect.poll(() => store.contents().instances).toEqual([])
  })

  it('K12: cannot have an id that tasks wait for', async () => {
    const store = memoryStore()
    const first = await startTestServer({ store })
    await first.post('/tasks', taskOf('hold'))
    await first.post('/tasks', taskOf('add'))
    const next = await restarted(store, { instances: [] })
    const taken = await next.post('/register', { instanceId: 'calc' })
    expect(taken).toMatchObject({ status: 409, body: { code: 'INSTANCE_ID_IN_USE' } })
    expect(next.taskManager.persistence?.takeWorkers()).toEqual([])
  })

  it('is forgotten when an instance of the next server has its id', async () => {
    const store = memoryStore()
    const first = await startTestServer({ store, instances: [] })
    for (const instanceId of ['calc', 'other']) await first.post('/register', { instanceId })
    const nextStore = store.copy()
    await startTestServer({ store: nextStore })
    await expect.poll(() => nextStore.contents().instances.map(({ id }) => id)).toEqual(['other'])
  })

  it('is not registered when it cannot be stored', async () => {
    const { store, state } = breakableStore()
    const server = await startTestServer({ store })
    state.isBroken = true
    const refused = await server.post('/register', { instanceId: 'w' })
    expect(refused).toMatchObject({ status: 503, body: { code: 'NOT_STORED' } })
    expect(server.instances.get('w')).toBeUndefined()
    state.isBroken = false
    expect((await server.post('/register', { instanceId: 'w' })).status).toBe(201)
  })

  it('is stored without its tools when all have said too much', async () => {
    const store = memoryStore()
    const server = await startTestServer({ store })
    const tools = Array.from({ length: 40 }, (_, n) => ({ name: `tool${n}`, description: 'x'.repeat(5000) }))
    for (let n = 0; n < 90; n += 1) await server.post('/register', { instanceId: `w${n}`, tools })
    const stored = store.contents().instances
    expect(stored).toHaveLength(90)
    expect(JSON.stringify(stored).length).toBeLessThan(17 * 1024 * 1024)
    expect(stored.at(-1)?.registration).toEqual({ isBrowser: false })
  })
})

describe('POST /tasks', () => {
  it('K12: is refused with 503 when the task cannot be stored', async () => {
    const { store, state } = breakableStore()
    const server = await startTestServer({ store })
    state.isBroken = true
    expect(await server.post('/tasks', taskOf('add'))).toMatchObject({ status: 503, body: { code: 'NOT_STORED' } })
    const client = await server.client()
    const answer = await client.ask({ type: 'task_submit', ...taskOf('add') })
    expect(answer).toMatchObject({ success: false, status: 'rejected', code: 'NOT_STORED' })
    await client.close()
    state.isBroken = false
    expect((await server.call('/tasks')).body['tasks']).toEqual([])
  })

  it('K12: with an Idempotency-Key is submitted once, for each caller, also across a restart', async () => {
    const store = memoryStore()
    const options = { auth: { tokens: ['one', 'two'] } }
    const first = await startTestServer({ store, ...options })
    const as = (token: string, key = 'key-1') => ({ authorization: `Bearer ${token}`, 'idempotency-key': key })
    const [a, b] = await Promise.all([
      first.post('/tasks', taskOf('hold'), as('one')),
      first.post('/tasks', taskOf('hold'), as('one')),
    ])
    expect([a.status, b.status, b.body]).toEqual([201, 201, a.body])
    const other = await first.post('/tasks', taskOf('hold'), as('two'))
    expect(other.body['taskId']).not.toBe(a.body['taskId'])
    expect(await first.post('/tasks', taskOf('add'), as('one'))).toMatchObject({
      status: 422,
      body: { code: 'IDEMPOTENCY_KEY_REUSED' },
    })
    expect(JSON.stringify(store.contents())).not.toContain('Bearer')
    const next = await restarted(store, options)
    const again = await next.post('/tasks', taskOf('hold'), as('one'))
    expect([again.status, again.body['taskId']]).toEqual([201, a.body['taskId']])
    for (const key of ['', 'x'.repeat(256), 'a b']) {
      const refused = await next.post('/tasks', taskOf('add'), as('one', key))
      // fetch trims the empty one, and the server gets an empty header.
      expect(refused, key).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
      expect(refused.body['error']).toContain('header.idempotency-key')
    }
  })

  it('K12: the client sends its key, and submits once', async () => {
    const server = await startTestServer()
    const client = createTaskClient({ url: server.httpUrl })
    onTestFinished(() => client.close())
    const task = taskOf('add')
    const first = await client.submit(task, { idempotencyKey: 'k' })
    expect(await client.submit(task, { idempotencyKey: 'k' })).toEqual(first)
    await expect(client.submit(taskOf('echo'), { idempotencyKey: 'k' })).rejects.toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
      status: 422,
    })
    await expect(client.submit(task, { idempotencyKey: 'é' })).rejects.toThrow('options.idempotencyKey')
    for await (const event of client.watch(first.taskId)) if (event.type === 'task_complete') break
    expect(await client.list()).toMatchObject({ tasks: [{ id: first.taskId, status: 'completed' }] })
  })
})

it('POST /tasks/:id/cancel answers 503 when that cannot be stored', async () => {
  const { store, state } = breakableStore()
  const server = await startTestServer({ store })
  const { body } = await server.post('/tasks', taskOf('hold'))
  await server.held()
  state.isBroken = true
  const refused = await server.post(`/tasks/${String(body['taskId'])}/cancel`)
  expect(refused).toMatchObject({ status: 503, body: { code: 'NOT_STORED' } })
  expect((await server.call('/metrics')).body['text']).toContain('\nagent_tasks_store_failing 1\n')
  state.isBroken = false
})

it('K12: Last-Event-ID of an earlier life gets a snapshot, and then what follows', async () => {
  const store = memoryStore()
  const first = await startTestServer({ store })
  const { body } = await first.post('/tasks', taskOf('hold'))
  const { body: queued } = await first.post('/tasks', taskOf('add', 'add'))
  const held = await first.held()
  held.progress(1)
  const read = async (server: { httpUrl: string }, taskId: unknown, lastEventId: string) => {
    const headers = { 'last-event-id': lastEventId }
    const response = await fetch(`${server.httpUrl}/tasks/${String(taskId)}/events`, { headers })
    const text = await response.text()
    return [...text.matchAll(/id: (.*)\nevent: (.*)/g)].map(([, id = '', type = '']) => [id, type] as const)
  }
  const old = read(first, body['taskId'], '0')
  const next = await restarted(store)
  const seen = await read(next, queued['taskId'], '0')
  expect(seen.map(([, type]) => type)).toEqual([...Array.from({ length: 4 }, () => 'task_progress'), 'task_complete'])
  const resumed = await read(next, queued['taskId'], seen[1]?.[0] ?? '')
  expect(resumed).toEqual(seen.slice(2))
  await first.close({ drainMs: 0 })
  const ofFirst = await old
  expect(ofFirst.map(([, type]) => type)).toEqual(['task_progress', 'task_progress'])
  for (const id of [ofFirst[0]?.[0] ?? '', '0', '1']) {
    const after = await read(next, body['taskId'], id)
    expect(after.map(([, type]) => type)).toEqual(['subscribe_ack', 'task_complete'])
  }
})

describe('a server with a store', () => {
  it('K12: leaves queued tasks for the next one when it closes', async () => {
    const store = memoryStore()
    const first = await startTestServer({ store })
    const { body } = await first.post('/tasks', taskOf('hold', 'add'))
    const { body: queued } = await first.post('/tasks', taskOf('add'))
    const held = await first.held()
    const closed = first.close({ drainMs: 60_000 })
    held.finish()
    await closed
    expect(store.contents().commandTasks.map(({ id, status }) => [id, status])).toEqual([
      [body['taskId'], 'completed'],
      [queued['taskId'], 'queued'],
    ])
  })

  it('does not start on a file that is no store, and leaves it as it is', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'notes.txt')
    writeFileSync(file, 'my notes')
    const options = { port: 0, env: { TASKS_STORE: file }, logLevel: 'silent', tasks: { wsPort: 0 } } as const
    await expect(startTaskServer(options)).rejects.toMatchObject({ code: 'STORE_INVALID' })
  })

  it('keeps tasks in the file of its settings', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'tasks.db')
    const server = await startTestServer({ env: { TASKS_STORE: file } })
    const { body } = await server.post('/tasks', taskOf('add'))
    expect(readStore(file).commandTasks.map(({ id }) => id)).toEqual([body['taskId']])
    await server.close()
  })
})
