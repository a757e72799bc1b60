// No request, frame or URL ends the process. These are sent as raw bytes, since no client library would send them.
import { connect } from 'node:net'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { startTestServer, taskOf, type TestServer } from './test-server.js'

/** Sends bytes and returns everything received until the server closed the connection. */
async function exchange(url: string, bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  let answer = ''
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => (answer += text))
  socket.on('error', () => undefined)
  socket.end(bytes, 'latin1')
  await once(socket, 'close')
  return answer
}

async function stillServes(server: TestServer): Promise<void> {
  const client = await server.client()
  await client.ask({ type: 'task_submit', ...taskOf('add') })
  expect(await client.skipTo('task_complete')).toMatchObject({ status: 'completed' })
  expect((await server.call('/health')).status).toBe(200)
}

const host = 'Host: 127.0.0.1\r\nConnection: close\r\n\r\n'
const upgrade = 'Host: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'

it('refuses malformed requests, and continues to serve', async () => {
  const server = await startTestServer()
  const odd: readonly (readonly [string, RegExp])[] = [
    [`GET // HTTP/1.1\r\n${host}`, /^HTTP\/1.1 404/],
    [`GET //evil.example/tasks HTTP/1.1\r\n${host}`, /^HTTP\/1.1 404/],
    [`GET /\\ HTTP/1.1\r\n${host}`, /^HTTP\/1.1 40/],
    [`GET http://[ HTTP/1.1\r\n${host}`, /^HTTP\/1.1 40/],
    [`GET http://evil.example/tasks HTTP/1.1\r\n${host}`, /^HTTP\/1.1 /],
    [`GET /tasks/%E0%A4%A HTTP/1.1\r\n${host}`, /^HTTP\/1.1 404/],
    [`GET /tasks/%00 HTTP/1.1\r\n${host}`, /^HTTP\/1.1 404/],
    [`GET /tasks?limit=%E0%A4%A HTTP/1.1\r\n${host}`, /^HTTP\/1.1 400/],
    [`GET /tasks/__proto__ HTTP/1.1\r\n${host}`, /^HTTP\/1.1 404/],
    [`OPTIONS * HTTP/1.1\r\n${host}`, /^HTTP\/1.1 40/],
    [`TRACE / HTTP/1.1\r\n${host}`, /^HTTP\/1.1 /],
    [`CONNECT evil.example:443 HTTP/1.1\r\n${host}`, /^(HTTP\/1.1 4|$)/],
    [`GET /tasks HTTP/1.1\r\nConnection: close\r\n\r\n`, /^HTTP\/1.1 400/],
    [`POST /tasks HTTP/1.1\r\n${host}`, /^HTTP\/1.1 400[^]*body\.task_name/],
    [`GET /tasks HTTP/1.0\r\n\r\n`, /^HTTP\/1.1 403/],
    [`GET /tasks HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n`, /^HTTP\/1.1 403/],
    [`GET /tasks HTTP/1.1\r\nHost: [\r\nConnection: close\r\n\r\n`, /^HTTP\/1.1 403/],
    [`POST /tasks HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 10\r\n${host}{`, /^(HTTP\/1.1 4|$)/],
    [
      `POST /tasks HTTP/1.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n${host}zz\r\n`,
      /^(HTTP\/1.1 4|$)/,
    ],
    [
      `POST /tasks HTTP/1.1\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 2\r\n${host}{}`,
      /HTTP\/1.1 400/,
    ],
    ['\x00\x01\x02\x03\r\n\r\n', /^HTTP\/1.1 400/],
    [`GET /${'a'.repeat(20_000)} HTTP/1.1\r\n${host}`, /^HTTP\/1.1 431/],
    [`GET /ws HTTP/1.1\r\n${upgrade}\r\n`, /^HTTP\/1.1 400/],
    [`GET // HTTP/1.1\r\n${upgrade}\r\n`, /^HTTP\/1.1 404/],
    [`GET /ws HTTP/1.1\r\n${upgrade}Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 99\r\n\r\n`, /^HTTP\/1.1 400/],
    [
      `POST /ws HTTP/1.1\r\n${upgrade}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n`,
      /^HTTP\/1.1 405/,
    ],
    [`GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: nonsense\r\n\r\n`, /^HTTP\/1.1 /],
  ]
  for (const [bytes, expected] of odd) {
    for (const url of [server.httpUrl, server.wsUrl]) {
      const answer = await exchange(url, bytes)
      if (url === server.httpUrl) {
        expect([bytes.slice(0, 80), answer.slice(0, 200)]).toEqual([
          bytes.slice(0, 80),
          expect.stringMatching(expected),
        ])
      }
      expect(answer).not.toContain('HTTP/1.1 500')
    }
  }
  await stillServes(server)
})

it('closes a socket after an invalid frame, and continues to serve', async () => {
  const server = await startTestServer()
  const handshake = `GET /ws HTTP/1.1\r\n${upgrade}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n`
  const frames = [
    '\x81\x05hello', // not masked
    '\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff', // reserved bits, a length beyond all
    '\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00', // a frame of exabytes
    '\x88\x81\x00\x00\x00\x00\x01', // a close with half a code
    '\x81\x82\x00\x00\x00\x00\xff\xfe', // text that is not UTF-8
    '\x89\xfe\x00\xff\x00\x00\x00\x00', // a ping that is too long
  ]
  for (const frame of frames) expect(await exchange(server.httpUrl, handshake + frame)).toMatch(/^HTTP\/1.1 101/)
  await stillServes(server)
})

it('reads a binary frame as text', async () => {
  const server = await startTestServer()
  const client = await server.client()
  client.socket.send(Buffer.from('{"type":"task_list"}'), { binary: true })
  expect(await client.next()).toMatchObject({ type: 'task_list_response' })
  client.socket.send(Buffer.from([0xff, 0x00]), { binary: true })
  expect(await client.next()).toMatchObject({ type: 'error', code: 'MALFORMED_JSON' })
})
