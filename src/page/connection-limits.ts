/** Limits the number and duration of connections, so that silent connections cannot block others. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { trackConnections, type Connections } from '../http/connections.js'

const MAX_CONNECTIONS = 200

/** How long the head of a request and the whole request may take, in ms. */
const HEAD_MS = 10_000
const REQUEST_MS = 30_000

/**
 * How long a client may read nothing of a response, in ms. Systems buffer some megabytes of a connection and report space only when a third of that
 * was read. The reads of a client with 5 kB/s therefore show only every few minutes.
 */
export const MAX_SILENCE_MS = 300_000

export interface ConnectionLimits extends Connections {
  /** Keeps the connection of an authenticated request open until the response, instead of closing it in favour of another one. */
  hold(request: IncomingMessage, response: ServerResponse): void
}

/** Limits the connections of a server. Call it before it listens. */
export function limitConnections(server: Server, silenceMs = MAX_SILENCE_MS): ConnectionLimits {
  const held = new WeakMap<Socket, number>()
  server.headersTimeout = HEAD_MS
  server.requestTimeout = REQUEST_MS
  // Node closes a connection without reads and writes for this long, even during a download.
  server.timeout = silenceMs
  const connections = trackConnections([server], MAX_CONNECTIONS, (socket) => held.has(socket))
  return {
    ...connections,
    hold: ({ socket }, response) => {
      held.set(socket, (held.get(socket) ?? 0) + 1)
      response.once('close', () => {
        const more = (held.get(socket) ?? 0) - 1
        if (more > 0) held.set(socket, more)
        else held.delete(socket)
      })
    },
  }
}
