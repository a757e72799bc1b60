/** A WebSocket of the server that the test drives: what it sends is kept, and has left when the test says so. */
import { EventEmitter } from 'node:events'
import { vi } from 'vitest'
import type { WebSocket } from 'ws'

export function createFakeSocket() {
  const sent: string[] = []
  const unsent: (() => void)[] = []
  const socket = Object.assign(new EventEmitter(), {
    OPEN: 1,
    readyState: 1,
    bufferedAmount: 0,
    isPaused: false,
    pause: () => void (socket.isPaused = true),
    resume: () => void (socket.isPaused = false),
    send: (data: string | Buffer, _options?: unknown, onSent: () => void = () => undefined) => {
      sent.push(String(data))
      unsent.push(onSent)
    },
    close: vi.fn(),
    ping: vi.fn(),
    terminate: vi.fn(),
  })
  return {
    socket,
    asSocket: socket as unknown as WebSocket,
    /** The frames that were sent, parsed. */
    frames: () => sent.map((text) => JSON.parse(text) as Record<string, unknown>),
    receive: (message: unknown) => void socket.emit('message', Buffer.from(JSON.stringify(message))),
    /** The next frame has left this process. */
    leave: () => unsent.shift()?.(),
    end: () => {
      socket.readyState = 3
      socket.emit('close', 1000, Buffer.alloc(0))
    },
  }
}
