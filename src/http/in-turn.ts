/** The requests of a connection, one at a time: a client may send many before it reads an answer (HTTP pipelining, RFC 9112, section 9.3.2). */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The most requests of a connection that wait for the one before. */
const MAX_WAITING = 10

/**
 * Serves each request of a connection when the one before was answered and its answer has left: Node keeps the answers of later requests until
 * then, and starts as many as there are in what it has read. A connection with more than 10 that wait is destroyed.
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
      // An answer may have closed the connection.
      if (socket.writable) serve(request, response)
    })
    line.last = response
  }
}
