/** The open sockets. Each is authenticated, and then connected to a client session or to an instance. */
import type { IncomingMessage } from 'node:http'
import type { WebSocket } from 'ws'
import type { Clock } from '../system/clock.js'
import { addressOf, type Access } from './http/access.js'
import type { Log } from './http/log.js'
import type { InstanceManager } from '../command-tasks/instances/instance-manager.js'
import { acceptWorker, type SharedWorkers } from '../command-tasks/instances/worker-socket.js'
import { CLIENT_CLOSE } from '../protocol/client-messages.js'
import { WORKER_CLOSE } from '../protocol/instance-messages.js'
import type { ServerConfig } from '../protocol/server-config.js'
import { packageVersion } from '../system/version.js'
import { awaitAuthentication } from './authentication.js'
import { openClientSession } from './client-session.js'
import { createConnection, createWriteBatch, textOf, type Connection } from './connection.js'
import { readFrames, type FrameReader } from './frame-reader.js'
import type { Heartbeat } from './heartbeat.js'
import type { Hub } from './backend/hub.js'
import type { WriteEvent } from './event-lines.js'
import { requestFields } from './logged-events.js'
import type { Metrics } from './metrics.js'
import type { RateLimiter } from './rates.js'
import type { TaskService } from './backend/task-service.js'

/** The maximum length of a stored `User-Agent`, in characters. */
const MAX_USER_AGENT = 512

export interface ServerSocketOptions {
  readonly config: ServerConfig
  readonly clock: Clock
  readonly access: Access
  readonly service: TaskService
  readonly instances: InstanceManager
  readonly hub: Hub
  readonly metrics: Metrics
  readonly heartbeat: Heartbeat
  /** The rate limit of client frames. Frames above the limit are refused. */
  readonly frames: RateLimiter
  /** The rate limit of worker frames. Frames above the limit are read later. */
  readonly workerFrames: RateLimiter
  readonly createId: () => string
  /** The workers that other servers of a cluster have registered. Default: there is no other server. */
  readonly sharedWorkers?: SharedWorkers | undefined
  readonly log: Log
  readonly writeEvent: WriteEvent
}

export interface ServerSockets {
  readonly client: (socket: WebSocket, request: IncomingMessage) => void
  readonly worker: (socket: WebSocket, request: IncomingMessage) => void
  /** Closes all sockets (1001). Resolves when the last one is closed. */
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

  /** Calls `ready` when the socket is authenticated: at once if the upgrade request had a token, otherwise after `authenticate`. */
  const whenAuthenticated = (socket: WebSocket, request: IncomingMessage, ready: () => void): void => {
    if (access.isAuthorized(request)) ready()
    else {
      awaitAuthentication(socket, {
        clock,
        timeoutMs: config.limits.authenticateMs,
        isToken: (token) => access.isToken(token),
        onRefused: (reason) => options.writeEvent('info', 'refused socket', { ...requestFields(request), reason }),
        onAuthenticated: ready,
      })
    }
  }

  return {
    client: (socket, request) => {
      enter(socket, 'client')
      let reader: FrameReader | undefined
      const connection = createConnection(socket, request.socket, {
        config,
        metrics,
        batch,
        onSent: () => reader?.wake(),
      })
      watchLiveness(socket, options.heartbeat, connection, () => reader?.isHeld === true)
      const sessionId = options.createId()
      options.writeEvent('debug', 'client connected', { session: sessionId, address: addressOf(request) })
      socket.once('close', (code, reason) =>
        options.writeEvent('debug', 'client disconnected', {
          session: sessionId,
          code,
          reason: textOf(reason) || undefined,
        }),
      )
      connection.send({
        type: 'welcome',
        sessionId,
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
        reader = readFrames(socket, {
          clock,
          isBehind: () => connection.isBehind,
          read: (text) => session.receive(text),
        })
        socket.once('close', () => session.end())
      })
    },
    worker: (socket, request) => {
      enter(socket, 'worker')
      let reader: FrameReader | undefined
      const connection = createConnection(socket, request.socket, {
        config,
        metrics,
        batch,
        onSent: () => reader?.wake(),
      })
      whenAuthenticated(socket, request, () => {
        const address = addressOf(request)
        const port = {
          peer: {
            address,
            port: request.socket.localPort,
            userAgent: request.headers['user-agent']?.slice(0, MAX_USER_AGENT),
          },
          send: (text: string) => connection.sendText(text),
          close: (code: number, reason: string) => {
            if (code === WORKER_CLOSE.refused) options.writeEvent('info', 'refused worker', { address, reason })
            socket.close(code, reason)
          },
        }
        const worker = acceptWorker(options.instances, port, {
          clock,
          helloTimeoutMs: config.limits.authenticateMs,
          shared: options.sharedWorkers,
        })
        reader = readFrames(socket, {
          clock,
          isBehind: () => connection.isBehind,
          pace: () => options.workerFrames.take(address),
          read: (text) => worker.receive(text),
        })
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

/**
 * Terminates a client that has shown no sign of life since the last heartbeat. A sign of life is an answer to the ping. While the server does not
 * read from the client, it is that the client reads.
 */
function watchLiveness(socket: WebSocket, heartbeat: Heartbeat, connection: Connection, isHeld: () => boolean): void {
  let isAlive = true
  let sentFrames = 0
  socket.on('pong', () => (isAlive = true))
  const release = heartbeat.keep({
    beat: () => {
      if (isHeld() && connection.sentFrames > sentFrames) isAlive = true
      sentFrames = connection.sentFrames
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
