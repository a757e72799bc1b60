/** What one connection to the page may hold, and for how long, so that silent ones shut nobody out. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { trackConnections, type Connections } from '../http/connections.js'

/** The most connections. */
const MAX_CONNECTIONS = 200

/** How long the head of a request may take, and the whole of it, in ms. */
const HEAD_MS = 10_000
const REQUEST_MS = 30_000

/**
 * How long a client may take nothing of what is sent to it, in ms. Systems buffer some megabytes of a connection, and say that they have room when a
 * third of that has left: a client of 5 kB/s is seen to read every few minutes only.
 */
export const MAX_SILENCE_MS = 300_000

export interface ConnectionLimits extends Connections {
  /** A request has shown its token: its connection is not closed for another one until it is answered. */
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
