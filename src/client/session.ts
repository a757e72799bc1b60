/**
 * The client's side of the client socket: handshake, authentication, requests, events and heartbeat.
 *
 * It connects on demand, and reconnects while a request or a watched task needs it. The first connection is not retried, so
 * that a wrong URL or token is reported at once.
 */
import { BehaviorSubject } from 'rxjs'
import type { Clock } from '../clock.js'
import type { AgentTasksError } from '../errors.js'
import { CLIENT_CLOSE, serverMessageSchema, type ServerMessage } from '../protocol/client-messages.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'
import { closedError, TaskServerError, unauthorizedError } from './client-errors.js'
import { createLink, type LinkEnd } from './link.js'
import { findSocketConstructor, type SocketConstructor } from './platform.js'
import type { Reconnection } from './reconnection.js'
import { createRequests, type Requests } from './requests.js'

/**
 * - `disconnected`: there is no connection, and nothing needs one.
 * - `connecting`: the first attempt, or one after `disconnected`.
 * - `reconnecting`: the connection was lost, and is needed.
 * - `closed`: `close()` was called.
 */
export type ConnectionState = 'disconnected' | 'connecting' | 'connected' | 'reconnecting' | 'closed'

/** An event of a task, as `watch` yields it: a progress message, or the message of its end. */
export type TaskMessage = TaskProgressMessage | TaskCompleteMessage

export interface SessionOptions {
  readonly url: string
  readonly token: string | undefined
  readonly WebSocket: SocketConstructor | undefined
  readonly clock: Clock
  readonly reconnection: Reconnection
  readonly requestTimeoutMs: number
  /** After this much silence a request checks that the server is there, in ms. */
  readonly heartbeatMs: number
  readonly onEvent: (event: TaskMessage) => void
  /** A new connection is ready; it has no subscriptions. */
  readonly onReady: () => void
  /** The connection failed; the next request starts a new attempt. */
  readonly onGivenUp: (error: AgentTasksError) => void
  /** A watched task, if there is one. The connection is kept for it. */
  readonly watchedTask: () => string | undefined
}

export interface Session {
  readonly isReady: boolean
  /** The state of the connection, and each change of it. Completes after `closed`. */
  readonly connection: BehaviorSubject<ConnectionState>
  readonly request: Requests['add']
  /** Connects, unless it is connected or connecting. */
  wake(): void
  close(): Promise<void>
}

export function createSession(options: SessionOptions): Session {
  const { clock } = options
  const connection = new BehaviorSubject<ConnectionState>('disconnected')
  let hasBeenReady = false
  let isClosed = false
  /** Why the server refused the handshake. */
  let refusal: AgentTasksError | undefined
  const requests = createRequests({
    clock,
    timeoutMs: options.requestTimeoutMs,
    send: (message) => link.isReady && link.send(message),
    onTimeout: (sentAt) => {
      // Without a frame since then, the connection is dead although it was not closed.
      if (link.isReady && link.heardAt <= sentAt) link.drop('the server does not answer')
    },
  })
  const link = createLink({
    url: () => options.url,
    loadSocket: () => findSocketConstructor(options.WebSocket),
    clock,
    reconnection: options.reconnection,
    onOpen: () => undefined,
    onMessage: handle,
    onDown: goDown,
    heartbeat: { everyMs: options.heartbeatMs, onSilence: checkServer },
  })

  function handle(raw: unknown): void {
    const parsed = serverMessageSchema.safeParse(raw)
    if (!parsed.success) {
      // An unknown type is ignored, unless it answers a request.
      requests.reject(raw)
      return
    }
    const message = parsed.data as ServerMessage
    if (message.type === 'task_progress' || message.type === 'task_complete') options.onEvent(message)
    else if (link.isReady) requests.settle(message)
    else shakeHands(message)
  }

  function shakeHands(message: ServerMessage): void {
    if (message.type === 'welcome') {
      if (!message.authenticationRequired) becomeReady()
      else if (options.token !== undefined) link.send({ type: 'authenticate', token: options.token })
      else {
        giveUp(unauthorizedError(`The server at ${options.url} requires a token.`))
      }
    } else if (message.type === 'authenticate_response') {
      const { success, code = 'UNAUTHORIZED', error = 'The server refused the token.' } = message
      if (success) becomeReady()
      else giveUp(refusalOf(code, error))
    } else if (message.type === 'error') giveUp(refusalOf(message.code, message.message))
  }

  function becomeReady(): void {
    hasBeenReady = true
    link.ready()
    connection.next('connected')
    options.onReady()
    requests.resume()
  }

  /** Ends the attempt without a retry. */
  function giveUp(error: AgentTasksError): void {
    refusal = error
    link.drop(error.message)
  }

  function goDown(end: LinkEnd): boolean {
    const refused = refusal ?? (end.code === CLIENT_CLOSE.refused ? refusedBy(end) : undefined)
    refusal = undefined
    if (refused !== undefined || end.isFinal || !hasBeenReady) {
      const error = refused ?? end.error
      requests.fail(error)
      options.onGivenUp(error)
      connection.next('disconnected')
      return false
    }
    requests.interrupt(end.error)
    const isNeeded = requests.size > 0 || options.watchedTask() !== undefined
    // An observer may close the client, or need the connection again.
    connection.next(isNeeded ? 'reconnecting' : 'disconnected')
    return isNeeded
  }

  function wake(): void {
    link.wake()
    if (connection.value === 'disconnected') connection.next('connecting')
  }

  /** Sends a request whose timeout ends a dead connection. */
  function checkServer(): void {
    const taskId = options.watchedTask()
    if (taskId === undefined) return
    const ignore = (): void => undefined
    requests.add({
      message: { type: 'task_status', taskId },
      answer: 'task_status_response',
      isRepeatable: false,
      onAnswer: ignore,
      onError: ignore,
    })
  }

  return {
    get isReady() {
      return link.isReady
    },
    request: (request) => {
      if (isClosed) {
        request.onError(closedError())
        return
      }
      requests.add(request)
      wake()
    },
    connection,
    wake,
    close: async () => {
      isClosed = true
      connection.next('closed')
      connection.complete()
      requests.fail(closedError())
      await link.close()
    },
  }
}

const refusalOf = (code: string, message: string): TaskServerError =>
  code === 'UNAUTHORIZED' ? unauthorizedError(message) : new TaskServerError(code, message)

function refusedBy({ error }: LinkEnd): TaskServerError {
  return unauthorizedError(`The server refused the connection. ${error.message}`)
}
