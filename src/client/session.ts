/**
 * The client's side of the client socket: greeting, authentication, requests, pushed events, and signs of life.
 *
 * It connects when there is something to do, and connects again while there is. The first connection is not tried
 * twice: a wrong URL or token is told at once.
 */
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
import type { AgentTasksError } from '../errors.js'
import { CLIENT_CLOSE, serverMessageSchema, type ServerMessage } from '../protocol/client-messages.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'
import { ConnectionError, TaskServerError } from './client-errors.js'
import { createLink, type LinkEnd } from './link.js'
import type { SocketConstructor } from './platform.js'
import type { Reconnection } from './reconnection.js'
import { createRequests, type Requests } from './requests.js'

/** The events of a task. */
export type TaskEvent = TaskProgressMessage | TaskCompleteMessage

export interface SessionOptions {
  readonly url: string
  readonly token: string | undefined
  readonly WebSocket: SocketConstructor | undefined
  readonly clock: Clock
  readonly reconnection: Reconnection
  readonly requestTimeoutMs: number
  /** After how many ms of silence the server is asked for a sign of life. */
  readonly heartbeatMs: number
  readonly onEvent: (event: TaskEvent) => void
  /** There is a new connection: nothing is subscribed on it. */
  readonly onReady: () => void
  /** There will be no connection until something is asked again. */
  readonly onGivenUp: (error: AgentTasksError) => void
  /** A task that is being watched, if any: it keeps the connection. */
  readonly watchedTask: () => string | undefined
}

export interface Session {
  readonly isReady: boolean
  readonly request: Requests['add']
  /** Connects, unless it is connected or is going to. */
  wake(): void
  close(): Promise<void>
}

export function createSession(options: SessionOptions): Session {
  const { clock } = options
  let hasBeenReady = false
  let isClosed = false
  let heartbeat: LongTimer | undefined
  const requests = createRequests({
    clock,
    timeoutMs: options.requestTimeoutMs,
    send: (message) => link.isReady && link.send(message),
    onTimeout: (sentAt) => {
      // Nothing at all has come since: the connection is dead, though nobody closed it.
      if (link.isReady && link.heardAt <= sentAt) link.drop('the server fell silent')
    },
  })
  const link = createLink({
    url: () => options.url,
    WebSocket: options.WebSocket,
    clock,
    reconnection: options.reconnection,
    onOpen: () => undefined,
    onMessage: handle,
    onDown: goDown,
  })

  function handle(raw: unknown): void {
    const parsed = serverMessageSchema.safeParse(raw)
    if (!parsed.success) {
      // A type of a later version is no harm, unless somebody waits for it.
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
        giveUp(
          new TaskServerError('UNAUTHORIZED', `The server at ${options.url} asks for a token, and none was given.`),
        )
      }
    } else if (message.type === 'authenticate_response') {
      const { success, code = 'UNAUTHORIZED', error = 'The server refused the token.' } = message
      if (success) becomeReady()
      else giveUp(new TaskServerError(code, error))
    } else if (message.type === 'error') giveUp(new TaskServerError(message.code, message.message))
  }

  function becomeReady(): void {
    hasBeenReady = true
    link.ready()
    options.onReady()
    requests.resume()
    watchSilence()
  }

  /** What the server said is no reason to ask again. */
  function giveUp(error: AgentTasksError): void {
    refusal = error
    link.drop(error.message)
  }
  let refusal: AgentTasksError | undefined

  function goDown(end: LinkEnd): boolean {
    clearLongTimeout(clock, heartbeat)
    const refused = refusal ?? (end.code === CLIENT_CLOSE.refused ? refusedBy(end) : undefined)
    refusal = undefined
    if (refused !== undefined || end.isFinal || !hasBeenReady) {
      const error = refused ?? end.error
      requests.fail(error)
      options.onGivenUp(error)
      return false
    }
    requests.interrupt(end.error)
    return requests.size > 0 || options.watchedTask() !== undefined
  }

  function watchSilence(): void {
    clearLongTimeout(clock, heartbeat)
    const silentMs = clock.now() - link.heardAt
    const taskId = options.watchedTask()
    if (silentMs >= options.heartbeatMs && taskId !== undefined) {
      const ignore = (): void => undefined
      requests.add({
        message: { type: 'task_status', taskId },
        answer: 'task_status_response',
        isRepeatable: false,
        onAnswer: ignore,
        onError: ignore,
      })
    }
    const waitMs = silentMs < options.heartbeatMs ? options.heartbeatMs - silentMs : options.heartbeatMs
    heartbeat = setLongTimeout(clock, watchSilence, waitMs)
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
      link.wake()
    },
    wake: () => link.wake(),
    close: async () => {
      isClosed = true
      clearLongTimeout(clock, heartbeat)
      requests.fail(closedError())
      await link.close()
    },
  }
}

export const closedError = (): ConnectionError => new ConnectionError('CLIENT_CLOSED', 'The client was closed.')

function refusedBy({ error }: LinkEnd): TaskServerError {
  return new TaskServerError('UNAUTHORIZED', `The server refused the connection. ${error.message}`)
}
