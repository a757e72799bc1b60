// A client that sends requests before it reads the answers (HTTP pipelining): one connection holds one answer.
import { once } from 'node:events'
import type { RequestListener, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { createServer, listen } from '../../../src/server/http/listening.js'

const requests = (...paths: readonly string[]): string =>
  paths.map((path) => `GET /${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join('')

async function open(serve: RequestListener): Promise<Socket> {
  const server = createServer(undefined, serve)
  const port = await listen(server, '127.0.0.1', 0, { host: 'host', port: 'port' })
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => {
    socket.destroy()
    server.close()
  })
  await once(socket, 'connect')
  return socket
}

/** Many turns of the event loop, which the server shares with the test. */
async function quiet(): Promise<void> {
  for (let turn = 0; turn < 300; turn += 1) await setImmediate()
}

/** Keeps the responses, by the path of their requests. */
function keep(): { serve: RequestListener; started: Map<string, ServerResponse> } {
  const started = new Map<string, ServerResponse>()
  return { started, serve: ({ url = '' }, response) => started.set(url.slice(1), response) }
}

it('serves the next request of a connection when the one before is answered, and answers all of them', async () => {
  const { serve, started } = keep()
  const socket = await open(serve)
  const other = await open(serve)
  let text = ''
  socket.setEncoding('utf8').on('data', (more: string) => (text += more))
  socket.write(requests('a', 'b', 'c'))
  await expect.poll(() => [...started.keys()]).toEqual(['a'])
  other.write(requests('other'))
  await expect.poll(() => [...started.keys()]).toEqual(['a', 'other'])
  started.get('a')?.end('answer a')
  await expect.poll(() => [...started.keys()]).toEqual(['a', 'other', 'b'])
  started.get('b')?.end('answer b')
  await expect.poll(() => started.has('c')).toBe(true)
  started.get('c')?.end('answer c')
  await expect.poll(() => text.match(/answer ./g)).toEqual(['answer a', 'answer b', 'answer c'])
  socket.write(requests('d'))
  await expect.poll(() => started.has('d')).toBe(true)
})

it('does not write the next answer while the client has not read the last one', async () => {
  const served: string[] = []
  const socket = await open(({ url = '' }, response) => {
    served.push(url)
    response.end(Buffer.alloc(32 * 1024 * 1024))
  })
  socket.pause()
  socket.write(requests('a', 'b', 'c', 'd'))
  await expect.poll(() => served).toEqual(['/a'])
  await quiet()
  expect(served).toEqual(['/a'])
})

it('serves nothing after an answer that closes the connection', async () => {
  const { serve, started } = keep()
  const socket = await open(serve)
  socket.resume().write(requests('a', 'b'))
  await expect.poll(() => started.has('a')).toBe(true)
  started.get('a')?.setHeader('connection', 'close').end()
  await once(socket, 'close')
  await quiet()
  expect([...started.keys()]).toEqual(['a'])
})

it('serves nothing more when the client has gone', async () => {
  const { serve, started } = keep()
  const socket = await open(serve)
  socket.write(requests('a', 'b'))
  await expect.poll(() => started.has('a')).toBe(true)
  const response = started.get('a')
  socket.destroy()
  await expect.poll(() => response?.closed).toBe(true)
  await quiet()
  expect([...started.keys()]).toEqual(['a'])
})

it('destroys a connection with more than 10 requests that wait', async () => {
  const { serve, started } = keep()
  const [patient, flooding] = [await open(serve), await open(serve)]
  const many = Array.from({ length: 11 }, (_, at) => `p${at}`)
  patient.write(requests(...many))
  flooding.on('error', () => undefined).write(requests('f', ...many))
  await once(flooding, 'close')
  for (const path of many) {
    await expect.poll(() => started.has(path)).toBe(true)
    started.get(path)?.end()
  }
  expect([...started.keys()].toSorted()).toEqual(['f', ...many].toSorted())
})

it('serves any number of requests of a connection of which no more than 10 wait at once', async () => {
  const { serve, started } = keep()
  const socket = await open(serve)
  socket.resume()
  socket.write(requests('r0', 'r1'))
  for (let at = 0; at < 25; at += 1) {
    await expect.poll(() => started.has(`r${at}`)).toBe(true)
    socket.write(requests(`r${at + 2}`))
    // Both that have arrived wait behind this one.
    await quiet()
    started.get(`r${at}`)?.end()
  }
  expect(socket.destroyed).toBe(false)
})
