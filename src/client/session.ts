/**
 * The client's side of the client socket: handshake, authentication, requests, events and heartbeat.
 *
 * The session connects on demand, and reconnects while a request or a watched task needs the connection. A failure of the first connection
 * is not retried, so that a wrong URL or token is reported at once.
 */
import { BehaviorSubject } from 'rxjs'
import type { Clock } from '../system/clock.js'
import type { AgentTasksError } from '../errors.js'
import { CLIENT_CLOSE, serverMessageSchema, type ServerMessage } from '../protocol/client-messages.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'
import { closedError, TaskServerError, unauthorizedError } from './client-errors.js'
import { createLink, type LinkEnd } from './link.js'
import { findSocketConstructor, type SocketConstructor } from './platform.js'
import type { Reconnection } from './reconnection.js'
import { createRequests, type Requests } from './requests.js'

/**
 * - `disconnected`: there is no connection, and no request or watch needs one.
 * - `connecting`: the first attempt, or the first one after `disconnected`.
 * - `reconnecting`: the connection was lost, and a request or a watch needs it.
 * - `closed`: `close()` was called.
 */
export type ConnectionState = 'disconnected' | 'connecting' | 'connected' | 'reconnecting' | 'closed'

/** An event of a task, as `watch` yields it: progress, or the end of the task. */
export type TaskMessage = TaskProgressMessage | TaskCompleteMessage

export interface SessionOptions {
  readonly url: string
  readonly token: string | undefined
  readonly WebSocket: SocketConstructor | undefined
  readonly clock: Clock
  readonly reconnection: Reconnection
  readonly requestTimeoutMs: number
  /** After this much silence, in ms, the session sends a request to check that the server still answers. */
  readonly heartbeatMs: number
  readonly onEvent: (event: TaskMessage) => void
  /** Called when a new connection is ready. It has no subscriptions yet. */
  readonly onReady: () => void
  /** Called when the session stops trying to connect. The next request starts a new attempt. */
  readonly onGivenUp: (error: AgentTasksError) => void
  /** Returns the id of a watched task, if there is one. The session keeps the connection while there is one. */
  readonly watchedTask: () => string | undefined
}

export interface Session {
  readonly isReady: boolean
  /** The state of the connection. It completes after `closed`. */
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
      // No frame has come since the request was sent, so the connection is dead although no close was reported.
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
      // The type of the message is unknown. The message is ignored, unless it answers a request: then that request fails.
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
    // An observer of the state may call `close`, or make a request that needs the connection again.
    connection.next(isNeeded ? 'reconnecting' : 'disconnected')
    return isNeeded
  }

  function wake(): void {
    link.wake()
    if (connection.value === 'disconnected') connection.next('connecting')
  }

  /** Sends a request. If the server does not answer, the timeout of the request ends the dead connection. */
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
