/**
 * One socket: what goes out, with care for a reader that does not read; what comes in, as checked JSON; and whether it is alive.
 */
import type { RawData, WebSocket } from 'ws'
import { CLIENT_CLOSE } from '../protocol/client-messages.js'
import type { ServerConfig } from '../protocol/server-config.js'
import type { TaskEvent } from './event-log.js'
import { toJson } from './json.js'
import type { Metrics } from './metrics.js'
import type { Corkable, WriteTurns } from './write-turns.js'

export interface Connection {
  /** Sends an answer. */
  send(message: object): void
  /** Sends an event; a reader that is slow loses it if it is progress, one that does not read at all is closed. */
  deliver(event: TaskEvent): void
}

export interface ConnectionOptions {
  readonly config: ServerConfig
  readonly metrics: Metrics
  readonly turns: WriteTurns
}

/** @param stream what the socket writes to */
export function createConnection(
  socket: WebSocket,
  stream: Corkable,
  { config: { limits }, metrics, turns }: ConnectionOptions,
): Connection {
  const write = (data: string | Buffer): void => {
    if (socket.readyState !== socket.OPEN) return
    turns.hold(stream)
    if (socket.bufferedAmount > limits.deadReaderBytes) {
      metrics.closedSlowReader()
      socket.close(CLIENT_CLOSE.tryAgainLater, 'You do not read. Connect again and subscribe again.')
      return
    }
    socket.send(data, { binary: false })
  }
  return {
    send: (message) => write(toJson(message)),
    deliver: (event) => {
      // What was only held back for the turn does not make a reader slow.
      turns.hold(stream)
      if (!event.isComplete && socket.bufferedAmount > limits.slowReaderBytes) metrics.droppedFrame()
      else write(event.frame)
    },
  }
}

/** A frame as text. */
export function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString()
  return Buffer.isBuffer(data) ? data.toString() : Buffer.from(data).toString()
}
