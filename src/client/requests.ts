/**
 * Requests over the client socket. An answer has the `requestId` of its request. When the connection is lost, requests that can be repeated
 * are sent again on the next connection. The others fail.
 */
import { clearLongTimeout, elapsedMs, setLongTimeout, type Clock, type LongTimer } from '../system/clock.js'
import { InvalidInputError, type AgentTasksError } from '../errors.js'
import type { ClientMessageInput, ServerMessage } from '../protocol/client-messages.js'
import { ConnectionError, TaskServerError } from './client-errors.js'

type AnswerType = Exclude<ServerMessage['type'], 'welcome' | 'error' | 'task_progress' | 'task_complete'>
export type AnswerOf<T extends AnswerType> = Extract<ServerMessage, { type: T }>

/** A request. Either `onAnswer` or `onError` is called, once. */
export interface Request<T extends AnswerType = AnswerType> {
  readonly message: ClientMessageInput
  readonly answer: T
  /** Whether the request may reach the server twice without harm. */
  readonly isRepeatable: boolean
  readonly onAnswer: (answer: AnswerOf<T>) => void
  readonly onError: (error: AgentTasksError) => void
}

interface Pending {
  readonly request: Request
  readonly timer: LongTimer
  /** When the request was sent on the current connection, by the monotonic clock `elapsedMs`. Undefined while it waits for a connection. */
  sentAt: number | undefined
}

export interface RequestsOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  /** @returns false when there is no connection */
  readonly send: (message: ClientMessageInput) => boolean
  /** Called when a request has timed out, with the time when it was sent. */
  readonly onTimeout: (sentAt: number) => void
}

export type Requests = ReturnType<typeof createRequests>

export function createRequests(options: RequestsOptions) {
  const { clock, send, timeoutMs } = options
  const pending = new Map<string, Pending>()
  let count = 0

  function take(requestId: unknown): Request | undefined {
    const found = typeof requestId === 'string' ? pending.get(requestId) : undefined
    if (found === undefined) return undefined
    pending.delete(requestId as string)
    clearLongTimeout(clock, found.timer)
    return found.request
  }

  function transmit(requestId: string, entry: Pending): void {
    entry.sentAt = send({ ...entry.request.message, requestId }) ? elapsedMs(clock) : undefined
  }

  function expire(requestId: string): void {
    const sentAt = pending.get(requestId)?.sentAt
    const why = sentAt === undefined ? 'There was no connection to the server' : 'The server did not answer'
    take(requestId)?.onError(
      new ConnectionError('REQUEST_TIMEOUT', `${why} within ${timeoutMs} ms (requestTimeoutMs).`),
    )
    if (sentAt !== undefined) options.onTimeout(sentAt)
  }

  return {
    /** The number of requests that wait for an answer or a connection. */
    get size(): number {
      return pending.size
    },
    /** Sends a request, or keeps it until there is a connection. */
    add<T extends AnswerType>(request: Request<T>): void {
      checkJson(request.message)
      const requestId = `r${(count += 1).toString(36)}`
      const entry: Pending = {
        request: request as unknown as Request,
        timer: setLongTimeout(clock, () => expire(requestId), timeoutMs),
        sentAt: undefined,
      }
      pending.set(requestId, entry)
      transmit(requestId, entry)
    },
    settle(message: ServerMessage): void {
      if (!('requestId' in message)) return
      const request = take(message.requestId)
      if (request === undefined) return
      if (message.type === 'error') request.onError(new TaskServerError(message.code, message.message))
      else if (message.type === request.answer) request.onAnswer(message)
      else request.onError(badAnswer(`a message of type ${message.type}`))
    },
    /** Fails the request whose answer is not valid. If the answer has a `code` and an `error`, the request fails with these. */
    reject(answer: unknown): void {
      const { requestId, code, error } = Object(answer) as { requestId?: unknown; code?: unknown; error?: unknown }
      const isRefusal = typeof code === 'string' && typeof error === 'string'
      take(requestId)?.onError(isRefusal ? new TaskServerError(code, error) : badAnswer('an invalid message'))
    },
    /** Sends the waiting requests when a new connection is ready. */
    resume(): void {
      for (const [requestId, entry] of pending) if (entry.sentAt === undefined) transmit(requestId, entry)
    },
    /** The connection is lost: fails the requests that were sent and may not be repeated. The others wait for the next connection. */
    interrupt(error: AgentTasksError): void {
      for (const [requestId, entry] of [...pending]) {
        if (entry.sentAt !== undefined && !entry.request.isRepeatable) take(requestId)?.onError(error)
        else entry.sentAt = undefined
      }
    },
    fail(error: AgentTasksError): void {
      for (const requestId of [...pending.keys()]) take(requestId)?.onError(error)
    },
  }
}

const badAnswer = (what: string): ConnectionError =>
  new ConnectionError(
    'BAD_ANSWER',
    `The server answered the request with ${what}. Check that the URL is that of an agent-tasks server, and that its version is that of this client.`,
  )

function checkJson(message: ClientMessageInput): void {
  try {
    JSON.stringify(message)
  } catch (error) {
    throw new InvalidInputError('message', error, 'a value that JSON can represent')
  }
}
