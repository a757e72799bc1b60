// The signs of life of a client, and what is left when it is gone, on a socket that the test drives.
import { EventEmitter } from 'node:events'
import { expect, it, vi } from 'vitest'
import type { Kept } from '../../../src/server/heartbeat.js'
import { createServerSockets } from '../../../src/server/server-sockets.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { createFakeSocket } from './fake-socket.js'

const MIB = 1024 * 1024

function createSubject() {
  const fake = createFakeSocket()
  const kept: Kept[] = []
  const [released, disconnected, left] = [vi.fn(), vi.fn(), vi.fn()]
  const stream = Object.assign(new EventEmitter(), { cork: vi.fn(), uncork: vi.fn(), writableLength: 0 })
  const sockets = createServerSockets({
    config: {
      limits: { slowReaderBytes: MIB, deadReaderBytes: 16 * MIB, subscriptionsPerClient: 10, nesting: 10 },
    },
    clock: createManualClock(),
    access: { isAuthorized: () => true, needsToken: false },
    service: { list: () => ({ tasks: [] }) },
    hub: { join: () => ({ hasRoom: true, leave: left }) },
    metrics: { connected: () => disconnected },
    heartbeat: {
      keep: (each: Kept) => {
        kept.push(each)
        return released
      },
    },
    frames: { take: () => 0 },
    createId: () => 'session-1',
    log: vi.fn(),
    writeEvent: vi.fn(),
  } as never)
  sockets.client(fake.asSocket, { socket: stream, headers: {} } as never)
  const beat = (): void => kept.forEach((each) => each.beat())
  return { ...fake, sockets, beat, counts: () => [released, disconnected, left].map(({ mock }) => mock.calls.length) }
}

it('a client is terminated at the beat after a ping that it has not answered', () => {
  const { socket, beat } = createSubject()
  beat()
  socket.emit('pong')
  beat()
  expect([socket.ping.mock.calls.length, socket.terminate.mock.calls.length]).toEqual([2, 0])
  beat()
  expect([socket.ping.mock.calls.length, socket.terminate.mock.calls.length]).toEqual([2, 1])
})

it('a client that nothing is read from lives as long as it has read something since the last beat', () => {
  const { socket, receive, leave, beat } = createSubject()
  receive({ type: 'task_list' })
  leave()
  socket.bufferedAmount = 2 * MIB
  receive({ type: 'task_list' })
  expect(socket.isPaused).toBe(true)
  beat()
  leave()
  beat()
  expect(socket.terminate).not.toHaveBeenCalled()
  // What it has read before does not count again.
  beat()
  expect(socket.terminate).toHaveBeenCalledOnce()
})

it('what a client has read is no sign of life while it is read from: it could answer', () => {
  const { socket, receive, leave, beat } = createSubject()
  beat()
  receive({ type: 'task_list' })
  leave()
  leave()
  beat()
  expect(socket.terminate).toHaveBeenCalledOnce()
})

it('a client that is closing is neither pinged nor terminated', () => {
  const { socket, beat } = createSubject()
  socket.readyState = 2
  beat()
  beat()
  expect([socket.ping.mock.calls.length, socket.terminate.mock.calls.length]).toEqual([0, 0])
})

it('a client that is gone leaves no beat, no subscription and no count, and the server does not wait for it', async () => {
  const { sockets, end, counts, socket } = createSubject()
  expect(counts()).toEqual([0, 0, 0])
  let isClosed = false
  const closed = sockets.closeAll().then(() => (isClosed = true))
  expect(socket.close.mock.calls).toEqual([[1001, 'The server is shutting down.']])
  await Promise.resolve()
  expect(isClosed).toBe(false)
  end()
  await closed
  expect(counts()).toEqual([1, 1, 1])
  await sockets.closeAll()
})
