/**
 * Requests over the client socket, matched with their answers by `requestId`. When the connection is lost, a repeatable request is
 * sent again on the next one; any other fails.
 */
import { clearLongTimeout, elapsedMs, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
import { InvalidInputError, type AgentTasksError } from '../errors.js'
import type { ClientMessageInput, ServerMessage } from '../protocol/client-messages.js'
import { ConnectionError, TaskServerError } from './client-errors.js'

type AnswerType = Exclude<ServerMessage['type'], 'welcome' | 'error' | 'task_progress' | 'task_complete'>
export type AnswerOf<T extends AnswerType> = Extract<ServerMessage, { type: T }>

/** A request. Exactly one of its callbacks is called, once. */
export interface Request<T extends AnswerType = AnswerType> {
  readonly message: ClientMessageInput
  readonly answer: T
  /** Whether it can be sent twice. */
  readonly isRepeatable: boolean
  readonly onAnswer: (answer: AnswerOf<T>) => void
  readonly onError: (error: AgentTasksError) => void
}

interface Pending {
  readonly request: Request
  readonly timer: LongTimer
  /** When it was sent on the current connection, on the clock of `elapsedMs`; undefined while it waits for one. */
  sentAt: number | undefined
}

export interface RequestsOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  /** @returns false when there is no connection */
  readonly send: (message: ClientMessageInput) => boolean
  /** A request that was sent at this time has timed out. */
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
    const why = sentAt === undefined ? 'No connection' : 'No answer'
    take(requestId)?.onError(new ConnectionError('REQUEST_TIMEOUT', `${why} within ${timeoutMs} ms.`))
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
    /** Passes an answer to its request. */
    settle(message: ServerMessage): void {
      if (!('requestId' in message)) return
      const request = take(message.requestId)
      if (request === undefined) return
      if (message.type === 'error') request.onError(new TaskServerError(message.code, message.message))
      else if (message.type === request.answer) request.onAnswer(message)
      else request.onError(badAnswer(`a ${message.type}`))
    },
    /** Fails the request of an invalid answer. An error can still be read from its `code`. */
    reject(answer: unknown): void {
      const { requestId, code, error } = Object(answer) as { requestId?: unknown; code?: unknown; error?: unknown }
      const isRefusal = typeof code === 'string' && typeof error === 'string'
      take(requestId)?.onError(isRefusal ? new TaskServerError(code, error) : badAnswer('an invalid message'))
    },
    /** Sends the waiting requests on a new connection. */
    resume(): void {
      for (const [requestId, entry] of pending) if (entry.sentAt === undefined) transmit(requestId, entry)
    },
    /** The connection is lost: fails the requests that were sent and cannot be sent twice. */
    interrupt(error: AgentTasksError): void {
      for (const [requestId, entry] of [...pending]) {
        if (entry.sentAt !== undefined && !entry.request.isRepeatable) take(requestId)?.onError(error)
        else entry.sentAt = undefined
      }
    },
    /** Fails all requests. */
    fail(error: AgentTasksError): void {
      for (const requestId of [...pending.keys()]) take(requestId)?.onError(error)
    },
  }
}

const badAnswer = (what: string): ConnectionError =>
  new ConnectionError('BAD_ANSWER', `The server answered with ${what}: is it an agent-tasks server of this version?`)

function checkJson(message: ClientMessageInput): void {
  try {
    JSON.stringify(message)
  } catch (error) {
    throw new InvalidInputError('message', error, 'a value that JSON can represent')
  }
}
