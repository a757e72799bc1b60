/** Handles WebSocket upgrades on both ports: checks the request, and passes the socket on according to its path. */
import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer, type WebSocket } from 'ws'
import type { Access, Refusal } from './http/access.js'
import { toJson } from './http/json.js'

/** The path of workers' sockets, on both ports. */
export const WORKER_PATH = '/worker'
/** The path of clients' sockets. On the client port, `/` is accepted as well. */
export const CLIENT_PATH = '/ws'

export interface UpgradeOptions {
  readonly access: Access
  readonly frameBytes: number
  /** Checks rates and limits. Returns undefined when the request is accepted. */
  readonly admit: (request: IncomingMessage) => Refusal | undefined
  readonly onSocket: (kind: 'client' | 'worker', socket: WebSocket, request: IncomingMessage) => void
  readonly onRefused: (refusal: Refusal, request: IncomingMessage) => void
}

export interface Upgrades {
  attach(server: Server, isClientPort: boolean): void
  /** Refuses all further upgrades. */
  close(): void
}

export function createUpgrades(options: UpgradeOptions): Upgrades {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: options.frameBytes,
    perMessageDeflate: false,
    clientTracking: false,
  })
  let isClosed = false

  const refuse = (socket: Duplex, refusal: Refusal, request: IncomingMessage): void => {
    options.onRefused(refusal, request)
    const { status, error, code, headers = {} } = refusal
    const body = toJson({ error, code })
    const fields = {
      ...headers,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      connection: 'close',
    }
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
    // Destroyed, because the client may keep its side of the connection open.
    socket.once('finish', () => socket.destroy())
    socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join('')}\r\n${body}`)
  }

  const check = (request: IncomingMessage, kind: 'client' | 'worker' | undefined): Refusal | undefined => {
    const refusal = options.access.checkSource(request)
    if (refusal !== undefined) return refusal
    if (isClosed) return { status: 503, error: 'The server is shutting down', code: 'SHUTTING_DOWN' }
    if (kind === undefined) return { status: 404, error: 'There is no WebSocket at this path', code: 'NOT_FOUND' }
    return options.admit(request)
  }

  return {
    attach: (server, isClientPort) => {
      server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
        // Without a listener, a connection reset would end the process.
        socket.on('error', () => socket.destroy())
        const path = (request.url ?? '').split('?', 1)[0]
        const isClient = path === CLIENT_PATH || (isClientPort && path === '/')
        const kind = isClient ? 'client' : path === WORKER_PATH ? 'worker' : undefined
        const refusal = check(request, kind)
        if (refusal !== undefined || kind === undefined) {
          if (refusal !== undefined) refuse(socket, refusal, request)
          return
        }
        sockets.handleUpgrade(request, socket, head, (opened) => {
          // `ws` itself closes the socket after an invalid frame. Without a listener the error would end the process.
          opened.on('error', () => undefined)
          options.onSocket(kind, opened, request)
        })
      })
    },
    close: () => {
      isClosed = true
    },
  }
}
