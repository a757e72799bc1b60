/** What becomes of a socket that was let in: a client's session, or a worker's connection. */
import type { IncomingMessage } from 'node:http'
import type { RawData, WebSocket } from 'ws'
import type { Clock } from '../clock.js'
import type { InstanceManager } from '../instances/instance-manager.js'
import { acceptWorker } from '../instances/worker-socket.js'
import type { ServerConfig } from '../protocol/server-config.js'
import { packageVersion } from '../version.js'
import { addressOf, type Access } from './access.js'
import { awaitAuthentication } from './authentication.js'
import { openClientSession } from './client-session.js'
import { createConnection, textOf } from './connection.js'
import type { Heartbeat } from './heartbeat.js'
import type { Hub } from './hub.js'
import type { Log } from './log.js'
import type { Metrics } from './metrics.js'
import type { RateLimiter } from './rates.js'
import type { TaskService } from './task-service.js'
import { createWriteTurns } from './write-turns.js'

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
  readonly report: Log
}

export interface ServerSockets {
  readonly client: (socket: WebSocket, request: IncomingMessage) => void
  readonly worker: (socket: WebSocket, request: IncomingMessage) => void
  /** Says goodbye to all (1001); resolves when the last is closed. */
  closeAll(): Promise<void>
  /** Cuts what does not answer the goodbye. */
  terminateAll(): void
}

export function createServerSockets(options: ServerSocketOptions): ServerSockets {
  const { config, clock, access, metrics } = options
  const open = new Set<WebSocket>()
  const turns = createWriteTurns()
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

  /** Calls `ready` at once, or when the socket has said a right token. */
  const authenticated = (socket: WebSocket, request: IncomingMessage, ready: () => void): void => {
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
      const connection = createConnection(socket, request.socket, { config, metrics, turns })
      connection.send({
        type: 'welcome',
        sessionId: options.createId(),
        serverVersion: packageVersion,
        message: 'Connected to the agent-tasks server',
        authenticationRequired: !access.isAuthorized(request),
      })
      authenticated(socket, request, () => {
        const address = addressOf(request)
        const session = openClientSession({
          connection,
          service: options.service,
          hub: options.hub,
          maxSubscriptions: config.limits.subscriptionsPerClient,
          nesting: config.limits.nesting,
          takeFrame: () => options.frames.take(address),
          acceptsToken: (token) => !access.needsToken || access.isToken(token),
          onError: (error) => options.report('error', 'A message failed', error),
        })
        socket.on('message', (data: RawData) => session.receive(textOf(data)))
        socket.once('close', () => session.end())
      })
    },
    worker: (socket, request) => {
      enter(socket, 'worker')
      authenticated(socket, request, () => {
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
        for (const socket of open) socket.close(GOING_AWAY, 'The server goes away.')
        if (open.size === 0) resolve()
      }),
    terminateAll: () => {
      for (const socket of open) socket.terminate()
    },
  }
}

const GOING_AWAY = 1001

/** A client that does not answer a ping before the next is gone, whatever its socket says. */
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
