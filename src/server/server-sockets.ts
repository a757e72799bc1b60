/** Open sockets: authenticates each, and connects it to a client session or to an instance. */
import type { IncomingMessage } from 'node:http'
import type { RawData, WebSocket } from 'ws'
import type { Clock } from '../clock.js'
import { addressOf, type Access } from '../http/access.js'
import type { Log } from '../http/log.js'
import type { InstanceManager } from '../instances/instance-manager.js'
import { acceptWorker } from '../instances/worker-socket.js'
import { CLIENT_CLOSE } from '../protocol/client-messages.js'
import type { ServerConfig } from '../protocol/server-config.js'
import { packageVersion } from '../version.js'
import { awaitAuthentication } from './authentication.js'
import { openClientSession } from './client-session.js'
import { createConnection, createWriteBatch, textOf } from './connection.js'
import type { Heartbeat } from './heartbeat.js'
import type { Hub } from './hub.js'
import type { Metrics } from './metrics.js'
import type { RateLimiter } from './rates.js'
import type { TaskService } from './task-service.js'

export interface ServerSocketOptions {
  readonly config: ServerConfig
  readonly clock: Clock
  readonly access: Access
  readonly service: TaskService
  readonly instances: InstanceManager
  readonly hub: Hub
  readonly metrics: Metrics
  readonly heartbeat: Heartbeat
  readonly frames: RateLimiter
  readonly createId: () => string
  readonly log: Log
}

export interface ServerSockets {
  readonly client: (socket: WebSocket, request: IncomingMessage) => void
  readonly worker: (socket: WebSocket, request: IncomingMessage) => void
  /** Closes all sockets (1001); resolves when the last is closed. */
  closeAll(): Promise<void>
}

export function createServerSockets(options: ServerSocketOptions): ServerSockets {
  const { config, clock, access, metrics } = options
  const open = new Set<WebSocket>()
  const batch = createWriteBatch()
  let onEmpty: () => void = () => undefined

  const enter = (socket: WebSocket, kind: 'client' | 'worker'): void => {
    const disconnected = metrics.connected(kind)
    open.add(socket)
    socket.once('close', () => {
      open.delete(socket)
      disconnected()
      if (open.size === 0) onEmpty()
    })
  }

  /** Calls `ready` once the socket is authenticated: at once, or after `authenticate`. */
  const whenAuthenticated = (socket: WebSocket, request: IncomingMessage, ready: () => void): void => {
    if (access.isAuthorized(request)) ready()
    else {
      awaitAuthentication(socket, {
        clock,
        timeoutMs: config.limits.authenticateMs,
        isToken: (token) => access.isToken(token),
        onAuthenticated: ready,
      })
    }
  }

  return {
    client: (socket, request) => {
      enter(socket, 'client')
      watchLiveness(socket, options.heartbeat)
      const connection = createConnection(socket, request.socket, { config, metrics, batch })
      connection.send({
        type: 'welcome',
        sessionId: options.createId(),
        serverVersion: packageVersion,
        message: 'Connected to the agent-tasks server',
        authenticationRequired: !access.isAuthorized(request),
      })
      whenAuthenticated(socket, request, () => {
        const address = addressOf(request)
        const session = openClientSession({
          connection,
          service: options.service,
          hub: options.hub,
          maxSubscriptions: config.limits.subscriptionsPerClient,
          nesting: config.limits.nesting,
          takeFrame: () => options.frames.take(address),
          acceptsToken: (token) => !access.needsToken || access.isToken(token),
          onError: (error) => options.log('error', 'A message failed', error),
        })
        socket.on('message', (data: RawData) => session.receive(textOf(data)))
        socket.once('close', () => session.end())
      })
    },
    worker: (socket, request) => {
      enter(socket, 'worker')
      whenAuthenticated(socket, request, () => {
        const port = {
          send: (text: string) => {
            if (socket.readyState === socket.OPEN) socket.send(text)
          },
          close: (code: number, reason: string) => socket.close(code, reason),
        }
        const worker = acceptWorker(options.instances, port, { clock, helloTimeoutMs: config.limits.authenticateMs })
        socket.on('message', (data: RawData) => worker.receive(textOf(data)))
        socket.once('close', () => worker.closed())
      })
    },
    closeAll: () =>
      new Promise((resolve) => {
        onEmpty = resolve
        for (const socket of open) socket.close(CLIENT_CLOSE.goingAway, 'The server is shutting down.')
        if (open.size === 0) resolve()
      }),
  }
}

/** Terminates a client that has not answered the last ping when the next is due. */
function watchLiveness(socket: WebSocket, heartbeat: Heartbeat): void {
  let isAlive = true
  socket.on('pong', () => (isAlive = true))
  const release = heartbeat.keep({
    beat: () => {
      if (!isAlive) socket.terminate()
      else if (socket.readyState === socket.OPEN) {
        isAlive = false
        socket.ping()
      }
    },
    end: () => undefined,
  })
  socket.once('close', release)
}
