/** The outgoing side of one client's socket. It combines writes, and drops progress messages for a client that does not read. */
import { setImmediate } from 'node:timers'
import type { RawData, WebSocket } from 'ws'
import { toJson } from './http/json.js'
import { CLIENT_CLOSE } from '../protocol/client-messages.js'
import type { ServerConfig } from '../protocol/server-config.js'
import type { TaskEvent } from './backend/event-log.js'
import type { Metrics } from './metrics.js'

export interface Connection {
  send(message: object): void
  /** Sends an answer that is already JSON text. */
  sendText(json: string): void
  /** Sends an event. A slow reader loses progress events. The connection of a client that does not read at all is closed. */
  deliver(event: TaskEvent): void
  /** Closes the connection with the code that asks the client to connect again. */
  giveUp(why: string): void
  /** Whether the client has so much unread data that nothing more should be read from it. */
  readonly isBehind: boolean
  /** How many frames have left this process. */
  readonly sentFrames: number
}

export interface ConnectionOptions {
  readonly config: ServerConfig
  readonly metrics: Metrics
  readonly batch: WriteBatch
  /** Called when frames have left this process. */
  readonly onSent: () => void
}

/** The memory that a waiting frame needs in addition to its content, in bytes. With it, many small answers count as much as a few large ones. */
const FRAME_COST = 512
/** The smallest frame, in bytes. */
const LEAST_FRAME = 2

/** @param stream the network socket below the WebSocket */
export function createConnection(
  socket: WebSocket,
  stream: Corkable,
  { config: { limits }, metrics, batch, onSent }: ConnectionOptions,
): Connection {
  let frames = 0
  let sentFrames = 0

  const onFrameSent = (): void => {
    sentFrames += 1
    onSent()
  }
  const unread = (): number => {
    const bytes = socket.bufferedAmount
    // `ws` reports a sent frame with a delay, so `frames - sentFrames` may be too high. The bytes limit how many frames can really be waiting.
    return bytes + FRAME_COST * Math.min(frames - sentFrames, Math.ceil(bytes / LEAST_FRAME))
  }
  const giveUp = (why: string): void => socket.close(CLIENT_CLOSE.tryAgainLater, why)
  const write = (data: string | Buffer): void => {
    if (socket.readyState !== socket.OPEN) return
    if (unread() > limits.deadReaderBytes) {
      metrics.closedSlowReader()
      giveUp('Too much unread data. Reconnect and subscribe again.')
      return
    }
    frames += 1
    socket.send(data, { binary: false }, onFrameSent)
  }
  const sendText = (json: string): void => {
    // Corked before the write, because data that only waits for the end of the tick does not count as unread.
    batch.cork(stream)
    write(json)
  }
  return {
    send: (message) => sendText(toJson(message)),
    sendText,
    giveUp,
    deliver: (event) => {
      batch.cork(stream)
      if (!event.isComplete && unread() > limits.slowReaderBytes) metrics.droppedFrame()
      else write(event.frame)
    },
    get isBehind() {
      return unread() > limits.slowReaderBytes
    },
    get sentFrames() {
      return sentFrames
    },
  }
}

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

/** Combines the writes of one tick of the event loop, because a system call costs more than the frame that it sends. */
export interface WriteBatch {
  /** Call this before a write, and before reading how much is buffered. Writes are held until the end of the tick, or until MAX_HELD_BYTES. */
  cork(stream: Corkable): void
}

/** When more than this is held, it is written at once, in bytes. */
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
