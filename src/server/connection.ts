/** The outgoing side of one client's socket: batches writes, and drops messages for a client that does not read. */
import { setImmediate } from 'node:timers'
import type { RawData, WebSocket } from 'ws'
import { toJson } from '../http/json.js'
import { CLIENT_CLOSE } from '../protocol/client-messages.js'
import type { ServerConfig } from '../protocol/server-config.js'
import type { TaskEvent } from './event-log.js'
import type { Metrics } from './metrics.js'

export interface Connection {
  /** Sends an answer. */
  send(message: object): void
  /** Sends an event. A slow reader loses progress events; one that does not read at all is closed. */
  deliver(event: TaskEvent): void
}

export interface ConnectionOptions {
  readonly config: ServerConfig
  readonly metrics: Metrics
  readonly batch: WriteBatch
}

/** @param stream the network socket below the WebSocket */
export function createConnection(
  socket: WebSocket,
  stream: Corkable,
  { config: { limits }, metrics, batch }: ConnectionOptions,
): Connection {
  const write = (data: string | Buffer): void => {
    if (socket.readyState !== socket.OPEN) return
    if (socket.bufferedAmount > limits.deadReaderBytes) {
      metrics.closedSlowReader()
      socket.close(CLIENT_CLOSE.tryAgainLater, 'Too much unread data. Reconnect and subscribe again.')
      return
    }
    socket.send(data, { binary: false })
  }
  return {
    send: (message) => {
      batch.cork(stream)
      write(toJson(message))
    },
    deliver: (event) => {
      // First: what only waits for the end of the turn does not count as unread.
      batch.cork(stream)
      if (!event.isComplete && socket.bufferedAmount > limits.slowReaderBytes) metrics.droppedFrame()
      else write(event.frame)
    },
  }
}

/** The text of a frame. */
export function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString()
  return Buffer.isBuffer(data) ? data.toString() : Buffer.from(data).toString()
}

/** The part of `net.Socket` that batching needs. */
export interface Corkable {
  cork(): void
  uncork(): void
  readonly writableLength: number
}

/** Gathers the writes of one turn of the event loop, because each system call costs more than the frame it sends. */
export interface WriteBatch {
  /** Call before a write, and before looking at what is buffered. Writes are held until the end of the turn, or until they are many. */
  cork(stream: Corkable): void
}

/** Beyond this, writes are not held any longer, in bytes. */
const MAX_HELD_BYTES = 64 * 1024

export function createWriteBatch(): WriteBatch {
  let corked = new Set<Corkable>()
  const flush = (): void => {
    const streams = corked
    corked = new Set()
    for (const stream of streams) stream.uncork()
  }
  return {
    cork: (stream) => {
      if (corked.has(stream)) {
        if (stream.writableLength <= MAX_HELD_BYTES) return
        stream.uncork()
      } else {
        if (corked.size === 0) setImmediate(flush)
        corked.add(stream)
      }
      stream.cork()
    },
  }
}
