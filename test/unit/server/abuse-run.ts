/** What clients do that were never meant to be: each abuse is random, costs at most its own connection, and leaves a server that serves on. */
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { openSocket, type SocketClient } from '../../support/socket-client.js'
import { taskOf, type TestServer } from './test-server.js'

const KIB = 1024

/** What a tool may return or report. Some of it throws when it is read or written. */
const oddValues: readonly (() => unknown)[] = [
  () => ({
    toJSON: () => {
      throw new Error('toJSON')
    },
  }),
  () =>
    new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error('ownKeys')
        },
      },
    ),
  () => ({
    get content() {
      throw new Error('content')
    },
  }),
  () => ({
    content: [
      {
        type: 'text',
        get text() {
          throw new Error('text')
        },
      },
    ],
  }),
  () => ({ at: 10n, of: Symbol('s'), by: () => 1, when: new Date(NaN) }),
  () => {
    const ring: Record<string, unknown> = {}
    ring['ring'] = ring
    return ring
  },
  () => nest(20_000),
  () => 'x'.repeat(20 * KIB * KIB),
  () => ({ content: Array.from({ length: 600 }, () => ({ type: 'text', text: oneMiB })) }),
  () => ({ content: 'no list' }),
  () => Object.create(null) as unknown,
]
const oneMiB = 'x'.repeat(KIB * KIB)

function nest(depth: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < depth; level += 1) value = { a: value }
  return value
}

const deepJson = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

interface Choice {
  /** A number that an abuse may use as it likes. */
  readonly size: number
}

/** Resolves when the abuse is over; the peer may still be there. */
type Abuse = (server: TestServer, choice: Choice) => Promise<() => void>

async function openWorker(server: TestServer): Promise<SocketClient | undefined> {
  const { status, body } = await server.post('/register', {})
  if (status !== 201) return undefined
  const worker = await openSocket(String(body['websocketUrl']))
  worker.send({ type: 'hello', instanceId: body['instanceId'], secret: body['secret'] })
  return worker
}

/** Sends and does not read. */
async function floodOf(peer: SocketClient, frames: Iterable<string>): Promise<() => void> {
  peer.socket.pause()
  let sent = 0
  for (const frame of frames) {
    if (peer.socket.readyState !== peer.socket.OPEN) break
    peer.socket.send(frame)
    if ((sent += 1) % 500 === 0) await setImmediate()
  }
  return () => peer.socket.terminate()
}

function* times(count: number, frame: string): Generator<string> {
  for (let sent = 0; sent < count; sent += 1) yield frame
}

function rawTo(url: string, bytes: string): Promise<() => void> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => undefined).on('data', () => undefined)
  return once(socket, 'connect').then(() => {
    socket.write(bytes, 'latin1')
    return () => socket.destroy()
  })
}

const upgrade = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n'

export const abuses: Readonly<Record<string, Abuse>> = {
  'a client that asks and does not read': async (server, { size }) =>
    floodOf(await server.client(), times(size * 20, `{"type":"task_list","requestId":"${'x'.repeat(250)}"}`)),
  'a client that sends nonsense and does not read': async (server, { size }) =>
    floodOf(await server.client(), times(size * 20, '!')),
  'a worker that sends and does not read': async (server, { size }) => {
    const worker = await openWorker(server)
    return worker === undefined ? () => undefined : floodOf(worker, times(size * 20, '{"type":"ping"}'))
  },
  'a subscriber that does not read': async (server, { size }) => {
    const client = await server.client()
    await client.ask({ type: 'subscribe_instance', instanceId: 'calc' })
    client.socket.pause()
    const task = { ...taskOf({ tool_name: 'hold' }), instanceId: 'calc' }
    await server.post('/tasks', task)
    const held = await server.held()
    for (let count = 0; count < size / 10; count += 1) held.progress(count, size, 'x'.repeat(100 * KIB))
    held.finish('x'.repeat(200 * KIB))
    return () => client.socket.terminate()
  },
  'half a connection': (server, { size }) =>
    rawTo(
      [server.httpUrl, server.wsUrl][size % 2]!,
      [
        upgrade('/nothing'),
        upgrade('/ws'),
        upgrade('/worker'),
        upgrade('/ws') + '\x81\xfe',
        'POST /tasks HTTP/1.1\r\n',
        '',
      ][size % 6]!,
    ),
  'HEAD of every route': async (server) => {
    const { body } = await server.post('/tasks', { ...taskOf('hold'), instanceId: 'calc' })
    const held = await server.held()
    const id = String(body['taskId'])
    const paths = [
      '/tasks',
      `/tasks/${id}`,
      `/tasks/${id}/events`,
      `/tasks/${id}/commands/0/result`,
      '/instances',
      '/metrics',
      '/docs',
    ]
    await Promise.all(paths.map((path) => fetch(server.httpUrl + path, { method: 'HEAD' })))
    held.finish()
    return () => undefined
  },
  'values that are huge or deep': async (server, { size }) => {
    const client = await server.client()
    client.send(`{"type":"task_submit","task_name":"t","commands":[],"metadata":${deepJson(size * 20)}}`)
    client.send(`{"type":"task_list","filler":"${'x'.repeat(size * 200)}"}`)
    await fetch(`${server.httpUrl}/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"tools":[{"name":"t","inputSchema":${deepJson(size * 20)}}]}`,
    })
    const worker = await openWorker(server)
    worker?.send(`{"type":"tool_result","callId":"c","result":${deepJson(size * 40)}}`)
    return () => {
      client.socket.terminate()
      worker?.socket.terminate()
    }
  },
  'a tool whose result throws when it is read': async (server, { size }) => {
    await server.post('/tasks', { ...taskOf('hold'), instanceId: 'calc' })
    const held = await server.held()
    held.finish(oddValues[size % oddValues.length]!())
    return () => undefined
  },
  'a body that is too large, or never ends': (server, { size }) =>
    new Promise((resolve) => {
      const headers = {
        'content-type': 'application/json',
        ...(size % 2 === 0 && { 'content-length': String(size * KIB) }),
      }
      const sent = request(`${server.httpUrl}/tasks`, { method: 'POST', headers })
      sent.on('error', () => undefined).on('response', (response) => response.resume())
      sent.write('x'.repeat(Math.min(size, 999) * KIB), () => resolve(() => sent.destroy()))
    }),
  'readers of results and streams that do not read': async (server, { size }) => {
    const { body } = await server.post('/tasks', { ...taskOf('hold'), instanceId: 'calc' })
    ;(await server.held()).finish('x'.repeat(size * KIB))
    const path = `/tasks/${String(body['taskId'])}`
    const ends = [`${path}/commands/0/result`, `${path}/events`, path].map((target) =>
      rawTo(server.httpUrl, `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`),
    )
    const opened = await Promise.all(ends)
    return () => opened.forEach((end) => end())
  },
}

/** One round: some abuses at once, by their names. */
export const round = fc.array(
  fc.record({ name: fc.constantFrom(...Object.keys(abuses)), size: fc.integer({ min: 1, max: 1000 }) }),
  { minLength: 1, maxLength: 6 },
)
