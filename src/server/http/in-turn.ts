/**
 * Serves the requests of a connection one at a time. A client may send several requests before it reads an answer (HTTP pipelining, RFC 9112,
 * section 9.3.2).
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The maximum number of requests of one connection that wait for their turn. */
const MAX_WAITING = 10

/**
 * Starts a request when the answer to the one before has left the process. Without this, Node starts all requests that it has read, and keeps the
 * answers of the later ones in memory. A connection with more than MAX_WAITING waiting requests is destroyed.
 */
export function inTurn(serve: RequestListener): RequestListener {
  const lines = new WeakMap<Socket, { last: ServerResponse; waiting: number }>()
  return (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request
    const line = lines.get(socket)
    if (line === undefined || line.last.closed) {
      lines.set(socket, { last: response, waiting: 0 })
      serve(request, response)
      return
    }
    if (line.waiting >= MAX_WAITING) {
      socket.destroy()
      return
    }
    line.waiting += 1
    line.last.once('close', () => {
      line.waiting -= 1
      // The answer to the request before may have closed the connection.
      if (socket.writable) serve(request, response)
    })
    line.last = response
  }
}
