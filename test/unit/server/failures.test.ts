// Failures at start and while the server runs: the error, and what continues to work.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { localInstance } from '../../../src/command-tasks/instances/local-instance.js'
import { registerWorker } from '../../../src/command-tasks/instances/worker-socket.js'
import { startTaskServer } from '../../../src/server/index.js'
import type { TaskProgressMessage } from '../../../src/protocol/command-tasks.js'
import { textOf } from '../../../src/server/connection.js'
import { createEventLog } from '../../../src/server/backend/event-log.js'
import { openEventStream } from '../../../src/server/event-stream.js'
import { eventsToResume } from '../../../src/server/backend/followed-task.js'
import { createRateLimiter } from '../../../src/server/rates.js'
import { createUpgrades } from '../../../src/server/upgrades.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { openSocket } from '../../support/socket-client.js'
import { createHolding, startTestServer, taskOf } from './test-server.js'

async function fileWith(content: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'agent-tasks-server-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'file')
  await writeFile(file, content)
  return file
}

describe('a server does not start', () => {
  const start = (env: Record<string, string>) => startTaskServer({ env, port: 0, tasks: { wsPort: 0 } })

  it('with a configuration file that is not JSON', async () => {
    const file = await fileWith('{')
    await expect(start({ CONFIG_FILE: file })).rejects.toThrow(
      `Setting CONFIG_FILE: got ${JSON.stringify(file)}, expected the path of a file that contains JSON (`,
    )
    const started = startTaskServer({ env: {}, configFile: await fileWith('{"auth": {"tokens": ["secret" x]}}') })
    const message = await started.then(String, (error: unknown) => (error as Error).message)
    expect(message).toMatch(/^Setting --config, options\.configFile: got .* contains JSON \(.*position/)
    expect(message).not.toContain('secret')
  })

  it('with a certificate or a key that cannot be read', async () => {
    const file = await fileWith('')
    for (const [TLS_CERT_PATH, TLS_KEY_PATH, setting] of [
      ['/no/cert', file, 'TLS_CERT_PATH: got "/no/cert"'],
      [file, '/no/key', 'TLS_KEY_PATH: got "/no/key"'],
    ] as const) {
      await expect(start({ TLS_CERT_PATH, TLS_KEY_PATH })).rejects.toThrow(
        `Setting ${setting}, expected the path of a readable PEM file.`,
      )
    }
  })

  it('with an invalid certificate, and does not show its text', async () => {
    const file = await fileWith('SECRET')
    const error: unknown = await start({ TLS_CERT_PATH: file, TLS_KEY_PATH: file }).catch((reason: unknown) => reason)
    expect(error).toMatchObject({
      code: 'INVALID_SETTING',
      field: 'TLS_CERT_PATH',
      message: expect.stringContaining('expected a PEM certificate and its private key.') as string,
      cause: expect.any(Error) as Error,
    })
    expect(JSON.stringify(error) + String(error)).not.toContain('SECRET')
  })
})

describe('a client socket', () => {
  it('is closed (1008) when no token is sent in time', async () => {
    const clock = createManualClock(1_000_000)
    const server = await startTestServer({ auth: { tokens: ['right'] }, clock, limits: { authenticateMs: 5000 } })
    const client = await openSocket(server.wsUrl)
    await client.next()
    clock.advance(5000)
    expect(await client.next()).toEqual({
      type: 'error',
      message: 'No token was sent in time.',
      error: 'Not authenticated',
      code: 'UNAUTHORIZED',
    })
    expect(await client.closed).toMatchObject({ code: 1008 })
  })

  it('may authenticate again, and gets the outcome', async () => {
    const server = await startTestServer({ auth: { tokens: ['right'] } })
    const client = await server.client({ headers: { authorization: 'Bearer right' } })
    expect(await client.ask({ type: 'authenticate', token: 'right' })).toMatchObject({ success: true })
    expect(await client.ask({ type: 'authenticate', token: 'wrong' })).toMatchObject({
      success: false,
      error: 'Invalid token.',
      code: 'UNAUTHORIZED',
    })
    expect(await client.ask({ type: 'task_list' })).toMatchObject({ tasks: [] })
    const open = await (await startTestServer()).client()
    expect(await open.ask({ type: 'authenticate', token: 'any' })).toMatchObject({ success: true })
  })

  it('gets an error beyond the subscription limit, for a task as well', async () => {
    const server = await startTestServer({ limits: { subscriptionsPerClient: 1 } })
    const { body } = await server.post('/tasks', taskOf('hold'))
    const client = await server.client()
    await client.ask({ type: 'subscribe_instance', instanceId: 'a' })
    expect(await client.ask({ type: 'subscribe_task', taskId: body['taskId'] })).toMatchObject({
      type: 'error',
      code: 'TOO_MANY_SUBSCRIPTIONS',
      error: 'Too many subscriptions',
      message: 'This connection has reached its limit of 1 subscriptions (limits.subscriptionsPerClient).',
    })
    await client.ask({ type: 'unsubscribe_instance', instanceId: 'a' })
    expect(await client.ask({ type: 'subscribe_task', taskId: body['taskId'] })).toMatchObject({
      type: 'subscribe_ack',
    })
  })

  it('gets INTERNAL_ERROR for a request that fails in the server, and stays usable', async () => {
    const lines: string[] = []
    const server = await startTestServer({ logLevel: 'error', writeLog: (line) => lines.push(line) })
    const client = await server.client()
    const broken = vi.spyOn(server.taskManager, 'getTask').mockImplementation(() => {
      throw new Error('out of order')
    })
    expect(await client.ask({ type: 'task_status', taskId: 'x' })).toMatchObject({
      type: 'error',
      code: 'INTERNAL_ERROR',
      message: 'The server failed to answer this message.',
    })
    broken.mockRestore()
    expect(lines).toEqual(['agent-tasks error: A message failed: out of order'])
    expect(await client.ask({ type: 'task_status', taskId: 'x' })).toMatchObject({ type: 'task_status_response' })
  })

  it('reads a frame as text in all the forms that ws delivers', () => {
    const parts = [Buffer.from('{"a"'), Buffer.from(':1}')]
    const whole = Buffer.concat(parts)
    const bytes = whole.buffer.slice(whole.byteOffset, whole.byteOffset + whole.byteLength)
    expect([parts, whole, bytes].map((data) => textOf(data as Buffer))).toEqual(Array(3).fill('{"a":1}'))
  })

  it('is refused (503) when the server is closing, before any limit is checked', async () => {
    const admit = vi.fn(() => undefined)
    const onRefused = vi.fn()
    const upgrades = createUpgrades({
      access: { checkSource: () => undefined } as never,
      frameBytes: 1000,
      admit,
      onRefused,
      onSocket: () => expect.unreachable(),
    })
    const server = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    upgrades.attach(server, true)
    upgrades.close()
    const { port } = server.address() as AddressInfo
    await expect(openSocket(`ws://127.0.0.1:${port}/`)).rejects.toMatchObject({
      status: 503,
      body: { code: 'SHUTTING_DOWN' },
    })
    expect(admit).not.toHaveBeenCalled()
    expect(onRefused).toHaveBeenCalledOnce()
  })
})

describe('an exception in a handler', () => {
  it('is logged with its source, and changes nothing else', async () => {
    const lines: string[] = []
    const server = await startTestServer({ logLevel: 'warn', writeLog: (line) => lines.push(line) })
    const throws = (): never => {
      throw new Error('in a handler')
    }
    server.instances.onDisconnect(throws)
    server.taskManager.on('complete', throws)
    const client = await server.client()
    await client.ask({ type: 'task_submit', ...taskOf('add') })
    expect(await client.skipTo('task_complete')).toMatchObject({ status: 'completed' })
    await server.instances.disconnect('calc')
    expect(lines).toEqual([
      'agent-tasks error: handler: in a handler',
      'agent-tasks error: handler of instance calc: in a handler',
    ])
  })
})

describe('POST /register', () => {
  it('accepts at most 1,000 workers that have not connected', async () => {
    const server = await startTestServer()
    for (let count = 0; count < 1000; count += 1) registerWorker(server.instances, {}, { websocketUrl: 'ws://x' })
    expect(await server.post('/register', {})).toMatchObject({
      status: 429,
      body: { error: '1000 registered workers have not connected', code: 'TOO_MANY_REGISTRATIONS' },
    })
    expect(server.instances.list()).toHaveLength(1001)
  })

  it('answers 500 without details, which are logged', async () => {
    const lines: string[] = []
    const server = await startTestServer({ logLevel: 'error', writeLog: (line) => lines.push(line) })
    await server.instances.dispose()
    expect(await server.post('/register', {})).toMatchObject({
      status: 500,
      body: { error: 'Internal error', code: 'INTERNAL_ERROR' },
    })
    expect(lines).toEqual([
      'agent-tasks error: A request failed: The instance manager was disposed: it takes no instances.',
    ])
  })
})

describe('GET /instances', () => {
  it('lists an instance whose tools cannot be listed, without tools', async () => {
    const odd = { ...localInstance({ id: 'odd', tools: [] }), listTools: () => Promise.reject(new Error('not now')) }
    const server = await startTestServer({ instances: [createHolding('calc').instance, odd] })
    const { body } = await server.call('/instances')
    expect(body).toMatchObject({ instances: [{ id: 'calc' }, { id: 'odd', isConnected: true }] })
    expect((body as { instances: object[] }).instances[1]).not.toHaveProperty('tools')
  })
})

describe('GET /metrics', () => {
  it('counts refusals by code, and escapes labels', async () => {
    const server = await startTestServer({ instances: [createHolding('a"b\\c\nd').instance] })
    await server.post('/tasks', taskOf('hold'))
    await expect(openSocket(server.httpUrl.replace('http', 'ws'))).rejects.toMatchObject({ status: 404 })
    const { text } = (await server.call('/metrics')).body as { text: string }
    expect(text).toContain('agent_tasks_refused_total{code="NOT_FOUND"} 1\n')
    expect(text).toContain('agent_tasks_lane_depth{instance="a\\"b\\\\c\\nd"} 1\n')
  })
})

describe('the events of a task', () => {
  it('begin with a snapshot when earlier ones were removed', () => {
    const log = createEventLog({ clock: createManualClock(), isKnown: () => true })
    const ended = { id: 'task_1', completedAt: 2 } as never
    expect(eventsToResume(log, ended, '5')).toBeUndefined()
    expect(eventsToResume(log, { id: 'task_1' } as never, '0')).toEqual([])
    for (const id of [undefined, 'x', '-1', '1'.repeat(16)]) expect(eventsToResume(log, ended, id)).toBeUndefined()
  })

  it('end once for a reader that is too slow for the missed events', () => {
    const log = createEventLog({ clock: createManualClock(), isKnown: () => true })
    const message: TaskProgressMessage = {
      type: 'task_progress',
      taskId: 'task_1',
      instanceId: 'calc',
      commandId: 'cmd_1',
      commandIndex: 0,
      totalCommands: 1,
      status: 'running',
      timestamp: 0,
      tool_name: 'add',
      intention: 'x'.repeat(100),
    }
    const missed = Array.from({ length: 4 }, () => log.append(message))
    const leave = vi.fn()
    const metrics = { droppedFrame: vi.fn(), closedSlowReader: vi.fn() }
    const [cut, onEnd] = [vi.fn(), vi.fn()]
    const stream = openEventStream({
      cut,
      onEnd,
      metrics: metrics as never,
      followed: { task: { id: 'task_1' } as never, seq: 4, missed, idOf: (seq) => log.idOf(seq) },
      hub: { join: () => ({ leave, addTask: () => expect.unreachable() }) } as never,
      limits: { slowReaderBytes: 1000, deadReaderBytes: 100 } as never,
    })
    expect(stream.isOpen).toBe(false)
    stream.beat()
    stream.end()
    expect([cut, onEnd, leave, metrics.closedSlowReader].map((called) => called.mock.calls.length)).toEqual([
      1, 1, 1, 1,
    ])
  })

  it('are cut once when events may be missing, so that their client comes back', () => {
    const [cut, onEnd, leave] = [vi.fn(), vi.fn(), vi.fn()]
    let miss = (): void => undefined
    const join = (_deliver: unknown, _max: number, onMissed: () => void) => {
      miss = onMissed
      return { leave, addTask: () => true }
    }
    const stream = openEventStream({
      cut,
      onEnd,
      metrics: {} as never,
      followed: { task: { id: 'task_1' } as never, seq: 0, missed: [], idOf: String },
      hub: { join } as never,
      limits: { slowReaderBytes: 1000, deadReaderBytes: 1000 } as never,
    })
    expect(stream.isOpen).toBe(true)
    miss()
    miss()
    expect(stream.isOpen).toBe(false)
    expect([cut, onEnd, leave].map((called) => called.mock.calls.length)).toEqual([1, 1, 1])
  })

  it('are followed by no comment while so much is unread that reports are dropped', async () => {
    const stream = openEventStream({
      cut: vi.fn(),
      onEnd: vi.fn(),
      metrics: {} as never,
      followed: { task: { id: 'task_1' } as never, seq: 0, missed: [], idOf: String },
      hub: { join: () => ({ leave: vi.fn(), addTask: () => true }) } as never,
      limits: { slowReaderBytes: 10, deadReaderBytes: 1000 } as never,
    })
    const reader = stream.body.getReader()
    // The first line alone is as much as may wait.
    stream.beat()
    const text = async () => new TextDecoder().decode((await reader.read()).value)
    expect(await text()).toBe(': events\n\n')
    stream.beat()
    expect(await text()).toBe(': keep-alive\n\n')
    stream.beat()
    stream.beat()
    stream.end()
    expect(await text()).toBe(': keep-alive\n\n')
    expect((await reader.read()).done).toBe(true)
  })

  it('are kept alive by comments', async () => {
    const clock = createManualClock(1_000_000)
    const server = await startTestServer({ clock })
    const { body } = await server.post('/tasks', taskOf('hold'))
    const { body: events } = await fetch(`${server.httpUrl}/tasks/${String(body['taskId'])}/events`)
    const reader = (events as ReadableStream<Uint8Array>).getReader()
    let received = ''
    const until = async (text: string): Promise<void> => {
      while (!received.includes(text)) received += new TextDecoder().decode((await reader.read()).value)
    }
    await until('subscribe_ack')
    clock.advance(30_000)
    await until(': keep-alive\n\n')
    const held = await server.held()
    held.finish()
    await until('event: task_complete')
  })
})

describe('the rate limiter', () => {
  it('forgets idle addresses, and only those', () => {
    const clock = createManualClock()
    const limiter = createRateLimiter(60, clock)
    for (let count = 0; count < 60; count += 1) limiter.take('busy')
    for (let count = 0; count < 10_000; count += 1) limiter.take(`quiet ${count}`)
    clock.advance(30_000)
    expect(limiter.take('new')).toBe(0)
    for (let count = 0; count < 30; count += 1) expect(limiter.take('busy')).toBe(0)
    expect(limiter.take('busy')).toBe(1000)
  })
})
