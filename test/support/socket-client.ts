/** A socket client for tests. It keeps the messages in order, so that a test can await them instead of sleeping. */
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { WebSocket, type ClientOptions } from 'ws'

/** A message with its type and any other fields. */
export type Received = { readonly type: string } & Readonly<Record<string, unknown>>

export interface SocketClient {
  readonly socket: WebSocket
  /** Sends a message, or raw text. */
  send(message: object | string): void
  /** Takes the next message. Rejects when the socket has closed and none is left. */
  next(): Promise<Received>
  /** Takes messages up to the next one of a type, and returns that one. */
  skipTo(type: string): Promise<Received>
  /** Sends a request and returns its answer. Messages that the server pushes meanwhile stay for `next`. */
  ask(message: object): Promise<Received>
  /** Takes all messages that were not taken yet. */
  takeAll(): Received[]
  /** How the socket closed. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  /** Closes the socket, and waits until it is closed. */
  close(): Promise<void>
}

/** Opens a socket. Rejects with `UpgradeRefused` when the server refuses the upgrade. */
export async function openSocket(url: string, options: ClientOptions = {}): Promise<SocketClient> {
  const socket = new WebSocket(url, options)
  const received: Received[] = []
  /** All calls that wait, because several requests may be open. */
  const waiting: (() => void)[] = []
  const onChange = (): void => {
    for (const wake of waiting.splice(0)) wake()
  }
  let isClosed = false
  socket.on('error', () => undefined)
  socket.on('message', (data: Buffer) => {
    received.push(JSON.parse(data.toString()) as Received)
    onChange()
  })
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.once('close', (code, reason) => {
      isClosed = true
      onChange()
      resolve({ code, reason: String(reason) })
    })
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve)
    socket.once('error', reject)
    socket.once('unexpected-response', (_request, response: IncomingMessage) => {
      void text(response).then((body) => reject(new UpgradeRefused(response.statusCode ?? 0, body)))
    })
  })

  const changed = (): Promise<void> =>
    new Promise((resolve) => {
      waiting.push(resolve)
    })
  const take = async (isWanted: (message: Received) => boolean): Promise<Received> => {
    for (;;) {
      const at = received.findIndex(isWanted)
      if (at !== -1) return received.splice(at, 1)[0]!
      if (isClosed) throw new Error('The socket has closed, and no such message came.')
      await changed()
    }
  }
  let requests = 0
  return {
    socket,
    send: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    next: () => take(() => true),
    skipTo: async (type) => {
      for (;;) {
        const message = await take(() => true)
        if (message.type === type) return message
      }
    },
    ask: (message) => {
      const requestId = `test-${(requests += 1)}`
      socket.send(JSON.stringify({ ...message, requestId }))
      return take((answer) => answer['requestId'] === requestId)
    },
    takeAll: () => received.splice(0),
    closed,
    close: async () => {
      socket.close()
      await closed
    },
  }
}

/** The error when the server refuses an upgrade with an HTTP status. */
export class UpgradeRefused extends Error {
  readonly status: number
  readonly body: { readonly error: string; readonly code: string }

  constructor(status: number, body: string) {
    super(`The upgrade was refused with ${status}: ${body}`)
    this.status = status
    this.body = JSON.parse(body) as { error: string; code: string }
  }
}
