/** Sends what fuzz.ts makes up to a server, looks at every answer, and then asks for something sensible. */
import { expect } from 'vitest'
import { serverMessageSchema } from '../../../src/protocol/client-messages.js'
import { restErrorSchema } from '../../../src/protocol/rest.js'
import { openSocket } from '../../support/socket-client.js'
import { createFuzz } from './fuzz.js'
import { startTestServer, taskOf, type TestServer } from './test-server.js'

/** How many are on their way at once. */
const BATCH = 100

/** @returns how many frames were sent */
export async function fuzzSockets(count: number): Promise<number> {
  const fuzz = createFuzz()
  const { seed } = fuzz
  const server = await startQuietServer()
  const client = await server.client()
  const all = fuzz.frames(count)
  for (let sent = 0; sent < all.length; sent += BATCH) {
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
  await expectService(server)
  return all.length
}

/** @returns how many requests were sent */
export async function fuzzRequests(count: number): Promise<number> {
  const fuzz = createFuzz()
  const { seed } = fuzz
  const server = await startQuietServer()
  const all = fuzz.requests(count)
  for (let sent = 0; sent < all.length; sent += BATCH) {
    await Promise.all(
      all.slice(sent, sent + BATCH).map(async ({ path, init }) => {
        const response = await fetch(server.httpUrl + path, init)
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
  await expectService(server)
  return all.length
}

/** @returns how many frames were sent */
export async function fuzzWorkers(count: number): Promise<number> {
  const fuzz = createFuzz()
  const server = await startQuietServer()
  const { body } = await server.post('/register', { instanceId: 'remote' })
  const worker = await openSocket(String(body['websocketUrl']))
  worker.send({ type: 'hello', instanceId: 'remote', secret: body['secret'] })
  await worker.skipTo('welcome')
  await server.post('/tasks', { ...taskOf('look', 'look'), instanceId: 'remote' })
  const all = fuzz.frames(count)
  for (let sent = 0; sent < all.length; sent += BATCH) {
    for (const frame of all.slice(sent, sent + BATCH)) worker.socket.send(workerFrame(frame))
    worker.send({ type: 'ping' })
    await worker.skipTo('pong')
  }
  await expectService(server)
  return all.length
}

/** The same frames, with a worker's words where a client's were. */
function workerFrame(frame: string | Buffer): string | Buffer {
  if (typeof frame !== 'string') return frame
  return frame
    .replace(/"type":"task_(submit|list|status)"/, '"type":"tool_result","callId":"call_2","result":{"content":[]}')
    .replace(/"type":"(un)?subscribe_\w+"/, '"type":"tool_progress","callId":"call_1","progress":1')
    .replace(/"type":"task_cancel"/, '"type":"tool_error","callId":"call_1","code":5,"message":"no"')
}

/** Its limits are high enough that the rest is looked at. */
function startQuietServer(): Promise<TestServer> {
  return startTestServer({
    tasks: { maxQueueSize: 50 },
    limits: { requestsPerMinute: 1e9, framesPerMinute: 1e9 },
  })
}

async function expectService(server: TestServer): Promise<void> {
  const client = await server.client()
  await client.ask({ type: 'subscribe_instance', instanceId: 'calc' })
  const submitted = await server.post('/tasks', { ...taskOf('add'), task_name: 'a valid task' })
  expect(submitted.status).toBe(201)
  for (;;) {
    const message = await client.skipTo('task_complete')
    if (message['taskId'] !== submitted.body['taskId']) continue
    expect(message['status']).toBe('completed')
    return
  }
}
