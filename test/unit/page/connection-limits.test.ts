/** Connections that say nothing, or take nothing, shut nobody out. */
import { createServer, type ServerResponse } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { once } from 'node:events'
import { expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager } from 'agent-tasks'
import { limitConnections } from '../../../src/page/connection-limits.js'
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
  await expect.poll(() => silent[0]?.closed === true || silent[0]?.readableEnded).toBe(true)
  expect((await get('tasks/async:a')).status).toBe(200)
  expect((await get('tasks/async:a')).status).toBe(200)
  expect(silent.at(-1)?.readyState).toBe('open')
  manager.completeTask('a', {})
  await reader.until(({ tasks }) => tasks.get('async:a')?.state === 'completed')
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
  await expect.poll(() => isEnded).toBe(true)
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
  await expect.poll(() => responses.length).toBe(2)
  responses[0]?.end('the first')
  await expect.poll(() => text).toContain('the first')
  const first = await openSilent(base)
  for (let index = 0; index < 200; index += 1) await openSilent(base)
  await expect.poll(() => first.readableEnded || first.closed).toBe(true)
  responses[1]?.end('the second')
  await expect.poll(() => text).toContain('the second')
  // It is as silent now as the others, and older.
  await openSilent(base)
  await expect.poll(() => held.readableEnded || held.closed).toBe(true)
})
