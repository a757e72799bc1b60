/** Limits how many connections there are and how long they may be silent, so that idle clients cannot keep other clients out. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { trackConnections, type Connections } from '../server/http/connections.js'

const MAX_CONNECTIONS = 200

/** The maximum time for the head of a request, and for the whole request, in ms. */
const HEAD_MS = 10_000
const REQUEST_MS = 30_000

/**
 * How long a client may read nothing of a response, in ms. The limit is generous, because the operating system buffers some megabytes and reports
 * progress only after a third of them was read. At 5 kB/s this takes minutes.
 */
export const MAX_SILENCE_MS = 300_000

export interface ConnectionLimits extends Connections {
  /** Protects the connection of an authenticated request until its response ends. When there are too many connections, an unprotected one is closed. */
  hold(request: IncomingMessage, response: ServerResponse): void
}

/** Sets the limits of a server. Call this before the server listens. */
export function limitConnections(server: Server, silenceMs = MAX_SILENCE_MS): ConnectionLimits {
  const held = new WeakMap<Socket, number>()
  server.headersTimeout = HEAD_MS
  server.requestTimeout = REQUEST_MS
  // Node closes a connection after this time without reads and writes, even during a download.
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
