// What a peer may leave open: an upgrade that was refused, half a connection, a handshake that never begins. Closing waits for none of them.
import { once } from 'node:events'
import { createServer as createHttpsServer, type ServerOptions } from 'node:https'
import { connect, type Socket } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { trackConnections } from '../../../src/server/http/connections.js'
import { createServer, listen, stopListening } from '../../../src/server/http/listening.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { acceptedConnections } from '../../support/accepted-connections.js'
import { until } from '../../support/lifelines.js'
import { startTestServer } from './test-server.js'

vi.mock('node:https', async (load) => {
  const https = await load<typeof import('node:https')>()
  return { ...https, createServer: vi.fn(https.createServer) }
})

/** A connection that stays half open: it does not end when the server ends its half. */
async function open(url: string, bytes = ''): Promise<{ socket: Socket; received: () => string }> {
  const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  let text = ''
  socket.setEncoding('latin1').on('data', (part: string) => (text += part))
  await once(socket, 'connect')
  socket.write(bytes)
  return { socket, received: () => text }
}

/** Resolves when the server has destroyed its end: what is written then is answered with a reset. */
async function gone(socket: Socket): Promise<void> {
  while (!socket.destroyed) {
    socket.write('x')
    await new Promise(setImmediate)
  }
}

const upgrade = (path: string, host = '127.0.0.1'): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n'

it.each([
  ['at an unknown path', '/nothing', '127.0.0.1', 404],
  ['of a foreign host', '/ws', 'evil.example', 403],
])('closes both halves of the connection of a refused upgrade %s', async (_what, path, host, status) => {
  const server = await startTestServer()
  const { socket, received } = await open(server.httpUrl, upgrade(path, host))
  await gone(socket)
  expect(received()).toContain(`HTTP/1.1 ${status} `)
})

it('closes while peers of refused upgrades, of open sockets and of half requests keep their connections', async () => {
  const clock = createManualClock(1_000_000)
  const server = await startTestServer({ clock })
  const silent = [
    await open(server.httpUrl),
    await open(server.httpUrl, 'POST /tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{'),
    await open(server.httpUrl, upgrade('/nothing')),
    await open(server.httpUrl, upgrade('/ws')),
    await open(server.httpUrl, upgrade('/worker')),
    await open(server.wsUrl, upgrade('/', 'evil.example')),
    await open(server.wsUrl),
  ]
  await until(() => silent[3]?.received().includes('welcome') === true)
  const state = { isClosed: false }
  void server.close().then(() => (state.isClosed = true))
  await until(() => {
    clock.advance(100)
    return state.isClosed
  })
})

it('destroys a connection whose TLS handshake has not begun', async () => {
  const server = createServer({ cert: '', key: '' }, () => undefined)
  const network = trackConnections([server], 10)
  const port = await listen(server, '127.0.0.1', 0, { host: 'HOST', port: 'PORT' })
  const accepted = once(server, 'connection')
  const { socket } = await open(`https://127.0.0.1:${port}`)
  await accepted
  const stopped = stopListening(server)
  network.destroyAll()
  await stopped
  await gone(socket)
})

it('gives a TLS handshake 10 s', async () => {
  // The time is kept by Node, on a clock that no test can set: here it is 1 ms.
  const limits: unknown[] = []
  vi.mocked(createHttpsServer).mockImplementationOnce((options, listener) => {
    const { handshakeTimeout = NaN } = options as ServerOptions
    limits.push(handshakeTimeout)
    return createHttpsServer({ ...(options as ServerOptions), handshakeTimeout: handshakeTimeout / 10_000 }, listener)
  })
  const server = createServer({ cert: '', key: '' }, () => undefined)
  const port = await listen(server, '127.0.0.1', 0, { host: 'HOST', port: 'PORT' })
  onTestFinished(() => stopListening(server))
  const { socket } = await open(`https://127.0.0.1:${port}`)
  await once(socket, 'end')
  expect(limits).toEqual([10_000])
})

it('accepts 1,000 connections of an address besides its sockets and streams, and no more', async () => {
  const server = await startTestServer({ limits: { connectionsPerClient: 1 } })
  expect(await acceptedConnections(server.httpUrl, 1001)).toBe(1001)
})

it('closes a connection beyond the most that an address may have, before it says anything', async () => {
  const server = createServer(undefined, (_request, response) => response.end('served'))
  const network = trackConnections([server], 2)
  const port = await listen(server, '127.0.0.1', 0, { host: 'HOST', port: 'PORT' })
  onTestFinished(async () => {
    const stopped = stopListening(server)
    network.destroyAll()
    await stopped
  })
  const url = `http://127.0.0.1:${port}`
  const first = await open(url)
  const served = await open(url, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await until(() => served.received().includes('served'))
  const third = await open(url, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await gone(third.socket)
  expect(third.received()).toBe('')
  first.socket.destroy()
  const response = await admitted(url)
  expect(await response.text()).toBe('served')
})

/** The server may see the close of another connection a little later than its client. */
async function admitted(url: string): Promise<Response> {
  for (;;) {
    const response = await fetch(url, { headers: { connection: 'close' } }).catch(() => undefined)
    if (response !== undefined) return response
  }
}
