// A peer that sends and does not read: the server stops reading from it, keeps little for it, and loses none of its frames.
import { setImmediate } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { WebSocket } from 'ws'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { openSocket, type SocketClient } from '../../support/socket-client.js'
import { startTestServer, taskOf, type TestServer } from './test-server.js'

const KIB = 1024
const MIB = 1024 * KIB

/** Resolves when the server has not read anything for many turns of the event loop, which it shares with the test. */
async function settled(socket: WebSocket): Promise<number> {
  for (let quiet = 0, last = -1; quiet < 300; quiet += 1) {
    await setImmediate()
    if (socket.bufferedAmount === last) continue
    last = socket.bufferedAmount
    quiet = 0
  }
  return socket.bufferedAmount
}

async function openWorker(server: TestServer): Promise<SocketClient> {
  const { body } = await server.post('/register', { instanceId: 'remote' })
  const worker = await openSocket(String(body['websocketUrl']))
  worker.send({ type: 'hello', instanceId: 'remote', secret: body['secret'] })
  await worker.skipTo('welcome')
  return worker
}

it.each([
  ['client', (server: TestServer) => server.client(), 'task_list_response'],
  ['worker', openWorker, 'error'],
])('stops reading from a %s that does not read, and answers every frame once it does', async (_who, open, answer) => {
  const server = await startTestServer({
    clock: createManualClock(),
    limits: { slowReaderBytes: 64 * KIB, deadReaderBytes: 2 * MIB },
  })
  const peer = await open(server)
  peer.socket.pause()
  // More than the system buffers, in both directions: an answer repeats the id.
  const [count, filler] = [40_000, 'x'.repeat(KIB)]
  const idOf = (at: number): string => String(at).padStart(250, 'x')
  for (let sent = 0; sent < count; sent += 1) peer.send({ type: 'task_list', requestId: idOf(sent), filler })
  expect(await settled(peer.socket)).toBeGreaterThan(MIB)
  // Others are served meanwhile.
  const other = await server.client()
  expect(await other.ask({ type: 'task_list' })).toMatchObject({ tasks: [] })
  peer.socket.resume()
  for (let got = 0; got < count; got += 1) {
    const message = await peer.next()
    // Without `expect`, which takes longer than the answer.
    const isRight = message.type === answer && (answer === 'error' || message['requestId'] === idOf(got))
    if (!isRight) throw new Error(`${JSON.stringify(message)} instead of ${answer} number ${got}`)
  }
  expect((await server.call('/metrics')).body['text']).toContain('agent_tasks_slow_readers_closed_total 0\n')
})

it('does not terminate such a client while it reads slowly, and does once it has stopped', async () => {
  const clock = createManualClock(1_000_000)
  const server = await startTestServer({ clock, limits: { slowReaderBytes: 64 * KIB } })
  const peer = await server.client()
  peer.socket.pause()
  const filler = 'x'.repeat(KIB)
  for (let sent = 0; sent < 24_000; sent += 1) peer.send({ type: 'task_list', filler })
  for (let beat = 0; beat < 3; beat += 1) {
    await settled(peer.socket)
    clock.advance(30_000)
    peer.socket.resume()
    for (let got = 0; got < 5000; got += 1) await peer.next()
    peer.socket.pause()
  }
  await settled(peer.socket)
  clock.advance(30_000)
  clock.advance(30_000)
  peer.socket.resume()
  expect(await peer.closed).toMatchObject({ code: 1006 })
})

it('closes a worker (1013) that does not read its calls', async () => {
  const server = await startTestServer({
    limits: { slowReaderBytes: 64 * KIB, deadReaderBytes: MIB },
    tasks: { commandTimeout: 1 },
  })
  const worker = await openWorker(server)
  worker.socket.pause()
  const watcher = await server.client()
  await watcher.ask({ type: 'subscribe_instance', instanceId: 'remote' })
  const task = { ...taskOf({ tool_name: 'look', args: { filler: 'x'.repeat(900 * KIB) } }), instanceId: 'remote' }
  for (;;) {
    const { code } = await watcher.ask({ type: 'task_submit', ...task })
    if (code === 'INVALID_INSTANCE') break
    await watcher.skipTo('task_complete')
    if ((await server.call('/metrics')).body['text']?.toString().includes('slow_readers_closed_total 1\n') === true) {
      break
    }
  }
  worker.socket.resume()
  expect(await worker.closed).toMatchObject({ code: 1013 })
})

it('reads the frames of a worker that sends too many later, each of them', async () => {
  const clock = createManualClock(1_000_000)
  const server = await startTestServer({ clock, limits: { framesPerMinute: 60 } })
  const worker = await openWorker(server)
  for (let sent = 0; sent < 100; sent += 1) worker.send({ type: 'ping' })
  // One of the sixty was hello.
  for (let got = 0; got < 59; got += 1) await worker.skipTo('pong')
  await settled(worker.socket)
  expect(worker.takeAll()).toEqual([])
  for (let got = 0; got < 41; got += 1) {
    clock.advance(1000)
    await worker.skipTo('pong')
  }
  // A client at the same address has its own rate.
  const client = await server.client()
  expect(await client.ask({ type: 'task_list' })).toMatchObject({ type: 'task_list_response' })
})

it('ends a peer that sends WebSocket pings and does not read', async () => {
  const server = await startTestServer()
  const client = await server.client()
  client.socket.pause()
  for (let sent = 0; sent < 400_000 && client.socket.readyState === client.socket.OPEN; sent += 1) {
    client.socket.ping('x'.repeat(120))
    if (sent % 1000 === 0) await setImmediate()
  }
  await settled(client.socket)
  client.socket.resume()
  expect(await client.closed).toMatchObject({ code: 1006 })
})
