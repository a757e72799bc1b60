/** Connections that say nothing, or take nothing, shut nobody out. */
import { createServer, type ServerResponse } from 'node:http'
import { connect, Socket, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager } from 'agent-tasks'
import { limitConnections } from '../../../src/page/connection-limits.js'
import { until } from '../../support/lifelines.js'
import { startPage } from './test-page.js'

async function openSilent(base: string): Promise<Socket> {
  const { port, hostname } = new URL(base)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  return socket
}

it('200 silent connections are closed for others, the earliest first, and those of a page are not', async () => {
  const manager = new AsyncTaskManager()
  manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'x' })
  const { base, read, get } = await startPage({ tasks: manager })
  const reader = await read()
  await reader.until(({ ready }) => ready !== undefined)
  const silent: Socket[] = []
  for (let index = 0; index < 200; index += 1) silent.push(await openSilent(base))
  await until(() => silent[0]?.closed === true || silent[0]?.readableEnded === true)
  expect((await get('tasks/async:a')).status).toBe(200)
  expect((await get('tasks/async:a')).status).toBe(200)
  expect(silent.at(-1)?.readyState).toBe('open')
  manager.completeTask('a', {})
  await reader.until(({ tasks }) => tasks.get('async:a')?.state === 'completed')
})

it('for each of several connections that come at once, another one is closed', () => {
  // Without a listener that would serve them: these sockets have no other side.
  const server = createServer().removeAllListeners('connection')
  const connections = limitConnections(server)
  onTestFinished(() => connections.destroyAll())
  const sockets = Array.from({ length: 203 }, () => new Socket())
  for (const socket of sockets) server.emit('connection', socket)
  const closed = sockets.flatMap(({ destroyed }, index) => (destroyed ? [index] : []))
  expect(closed).toEqual([0, 1, 2])
})

it('the heads of requests, whole requests and silence have their time', () => {
  const server = createServer()
  limitConnections(server)
  expect([server.headersTimeout, server.requestTimeout, server.timeout]).toEqual([10_000, 30_000, 300_000])
})

it('a download of which nothing is taken is ended', async () => {
  let isEnded = false
  const server = createServer((request, response) => {
    connections.hold(request, response)
    response.once('close', () => (isEnded = true)).writeHead(200)
    response.write(Buffer.alloc(64 * 1024 * 1024))
  })
  const connections = limitConnections(server, 50)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    connections.destroyAll()
    await new Promise((resolve) => server.close(resolve))
  })
  const socket = await openSilent(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  socket.pause().write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await until(() => isEnded)
})

it('a connection with two requests is held until both are answered', async () => {
  const responses: ServerResponse[] = []
  const server = createServer((request, response) => {
    connections.hold(request, response)
    responses.push(response)
  })
  const connections = limitConnections(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    connections.destroyAll()
    await new Promise((resolve) => server.close(resolve))
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const held = await openSilent(base)
  let text = ''
  held.on('data', (chunk: Buffer) => (text += chunk.toString()))
  held.write('GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n')
  await until(() => responses.length === 2)
  responses[0]?.end('the first')
  await until(() => text.includes('the first'))
  const first = await openSilent(base)
  for (let index = 0; index < 200; index += 1) await openSilent(base)
  await until(() => first.readableEnded || first.closed)
  responses[1]?.end('the second')
  await until(() => text.includes('the second'))
  // It is as silent now as the others, and older.
  await openSilent(base)
  await until(() => held.readableEnded || held.closed)
})
