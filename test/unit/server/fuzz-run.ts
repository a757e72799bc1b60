/** Sends generated input to a server, checks every answer, and then sends a valid request. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect } from 'vitest'
import { serverMessageSchema } from '../../../src/protocol/client-messages.js'
import { restErrorSchema } from '../../../src/protocol/rest.js'
import { openSocket } from '../../support/socket-client.js'
import type { RawRequest } from './fuzz-raw.js'
import { fuzzOptions } from './fuzz-options.js'
import { createFuzz } from './fuzz.js'
import { startTestServer, taskOf } from './test-server.js'

/** A server, in this process or another. It has an instance `calc` with the tool `add`. */
export interface FuzzTarget {
  readonly httpUrl: string
  readonly wsUrl: string
}

/** How many frames or requests are in flight at once. */
const BATCH = 100
/** One frame in so many exceeds the size limit. */
const OVERSIZED_EVERY = 5000
const OVERSIZED_BYTES = 1024 * 1024 + 1
const JSON_TYPE = { 'content-type': 'application/json' }

/** @returns the number of frames sent */
export async function fuzzSockets(target: FuzzTarget, count: number): Promise<number> {
  const fuzz = createFuzz()
  const { seed } = fuzz
  const client = await openSocket(target.wsUrl)
  await client.skipTo('welcome')
  const all = fuzz.frames(count)
  for (let sent = 0; sent < all.length; sent += BATCH) {
    if (sent % OVERSIZED_EVERY === 0) await sendOversized(target)
    for (const frame of all.slice(sent, sent + BATCH)) client.socket.send(frame)
    await client.ask({ type: 'task_status', taskId: 'the batch has been read' })
    for (const message of client.takeAll()) {
      const problem = serverMessageSchema.safeParse(message).error?.message
      expect([seed, message.type, message['code'] === 'INTERNAL_ERROR', problem]).toEqual([
        seed,
        message.type,
        false,
        undefined,
      ])
    }
  }
  await client.close()
  await expectService(target)
  return all.length
}

/** Expects that connection to be closed, and no other. */
async function sendOversized({ wsUrl }: FuzzTarget): Promise<void> {
  const client = await openSocket(wsUrl)
  client.socket.send(`{"type":"task_list","cursor":"${'x'.repeat(OVERSIZED_BYTES)}"}`)
  expect(await client.closed).toMatchObject({ code: 1009 })
}

/** Expects 413, unless the server closed the connection before the whole body was sent. */
async function postOversized({ httpUrl }: FuzzTarget): Promise<void> {
  const body = `{"task_name":"${'x'.repeat(OVERSIZED_BYTES)}"}`
  const status = await fetch(`${httpUrl}/tasks`, { method: 'POST', headers: JSON_TYPE, body }).then(
    (response) => response.status,
    () => 'closed',
  )
  expect([413, 'closed']).toContain(status)
}

/** @returns the number of requests sent */
export async function fuzzRequests(target: FuzzTarget, count: number): Promise<number> {
  const fuzz = createFuzz()
  const { seed } = fuzz
  const all = fuzz.requests(count)
  for (let sent = 0; sent < all.length; sent += BATCH) {
    if (sent % OVERSIZED_EVERY === 0) {
      await postOversized(target)
    }
    await Promise.all(
      all.slice(sent, sent + BATCH).map(async ({ path, init }) => {
        const response = await fetch(target.httpUrl + path, init)
        const what = [seed, path, init.method, init.body]
        expect([...what, response.status < 500 || response.status === 503]).toEqual([...what, true])
        if (path.includes('/events')) await response.body?.cancel()
        else {
          const body = await response.text()
          const isProblem = response.status >= 400 && init.method !== 'HEAD'
          if (isProblem) expect([...what, restErrorSchema.safeParse(JSON.parse(body)).success]).toEqual([...what, true])
        }
      }),
    )
  }
  await expectService(target)
  return all.length
}

/** @returns the number of requests sent */
export async function fuzzRaw(target: FuzzTarget, count: number): Promise<number> {
  const fuzz = createFuzz()
  const { seed } = fuzz
  const all = fuzz.raw(count)
  for (let sent = 0; sent < all.length; sent += BATCH) {
    const held: Socket[] = []
    await Promise.all(
      all.slice(sent, sent + BATCH).map(async (request) => {
        const answer = await exchange(target, request, held)
        const what = [seed, JSON.stringify(request.bytes.slice(0, 300)), request.then]
        expect([...what, /^($|HTTP\/1\.[01] [1-5]\d\d )/.test(answer), answer.includes('HTTP/1.1 500')]).toEqual([
          ...what,
          true,
          false,
        ])
      }),
    )
    // Requests that never end do not keep the server from others.
    if (held.length > 0 && sent % (10 * BATCH) === 0) await expectService(target)
    for (const socket of held) socket.destroy()
  }
  await expectService(target)
  return all.length
}

/** Returns what was received until the server closed; does not wait for requests that are incomplete. */
async function exchange(target: FuzzTarget, { bytes, then, port }: RawRequest, held: Socket[]): Promise<string> {
  const socket = connect(Number(new URL(port === 'http' ? target.httpUrl : target.wsUrl).port), '127.0.0.1')
  let answer = ''
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => (answer += text))
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  if (then === 'end') {
    socket.end(bytes, 'latin1')
    await once(socket, 'close')
  } else {
    await new Promise((resolve) => socket.write(bytes, 'latin1', resolve))
    if (then === 'cut') socket.destroy()
    else held.push(socket)
  }
  return answer
}

/** @returns the number of frames sent */
export async function fuzzWorkers(target: FuzzTarget, count: number): Promise<number> {
  const fuzz = createFuzz()
  const { body } = await post(target, '/register', { instanceId: 'remote' })
  const worker = await openSocket(String(body['websocketUrl']))
  worker.send({ type: 'hello', instanceId: 'remote', secret: body['secret'] })
  await worker.skipTo('welcome')
  await post(target, '/tasks', { ...taskOf('look', 'look'), instanceId: 'remote' })
  const all = fuzz.frames(count)
  for (let sent = 0; sent < all.length; sent += BATCH) {
    for (const frame of all.slice(sent, sent + BATCH)) worker.socket.send(workerFrame(frame))
    worker.send({ type: 'ping' })
    await worker.skipTo('pong')
  }
  await worker.close()
  await expectService(target)
  return all.length
}

/** The same frames with the message types of a worker. */
function workerFrame(frame: string | Buffer): string | Buffer {
  if (typeof frame !== 'string') return frame
  return frame
    .replace(/"type":"task_(submit|list|status)"/, '"type":"tool_result","callId":"call_2","result":{"content":[]}')
    .replace(/"type":"(un)?subscribe_\w+"/, '"type":"tool_progress","callId":"call_1","progress":1')
    .replace(/"type":"task_cancel"/, '"type":"tool_error","callId":"call_1","code":5,"message":"no"')
}

/** In this process. */
export function startFuzzTarget(): Promise<FuzzTarget> {
  return startTestServer(fuzzOptions)
}

async function post({ httpUrl }: FuzzTarget, path: string, body: object) {
  const response = await fetch(httpUrl + path, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(body) })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

async function expectService(target: FuzzTarget): Promise<void> {
  const client = await openSocket(target.wsUrl)
  await client.ask({ type: 'subscribe_instance', instanceId: 'calc' })
  const submitted = await post(target, '/tasks', { ...taskOf('add'), instanceId: 'calc', task_name: 'a valid task' })
  expect(submitted.status).toBe(201)
  for (;;) {
    const message = await client.skipTo('task_complete')
    if (message['taskId'] !== submitted.body['taskId']) continue
    expect(message['status']).toBe('completed')
    break
  }
  await client.close()
}
