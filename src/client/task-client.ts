/** The typed client of a task server: submits command tasks, watches them to their end, lists and cancels them. */
import { systemClock, type Clock } from '../clock.js'
import { InvalidSettingError } from '../errors.js'
import type { ClientMessageInput } from '../protocol/client-messages.js'
import type { Task, TaskStatus, TaskSubmitMessage, TaskSummary } from '../protocol/command-tasks.js'
import { instanceListSchema, type InstanceSummary } from '../protocol/rest.js'
import { TaskServerError } from './client-errors.js'
import { parseEndpoints } from './endpoints.js'
import { createFeeds } from './feeds.js'
import type { FetchLike, SocketConstructor } from './platform.js'
import { createReconnection, type ReconnectOptions } from './reconnection.js'
import type { AnswerOf, Request } from './requests.js'
import { callRest } from './rest.js'
import { closedError, createSession, type TaskEvent } from './session.js'
import { createWatchQueue } from './watch-queue.js'

/** Options of `createTaskClient`. All durations in ms. */
export interface TaskClientOptions {
  /** The server: its HTTP port (`http://127.0.0.1:3300`), or its client socket (`ws://127.0.0.1:3400`). */
  readonly url: string
  /** Sent as the bearer token, and as the first message of a socket that asks for one. */
  readonly token?: string
  /** Default: the platform's. */
  readonly fetch?: FetchLike
  /** Default: the platform's, or that of `ws` where there is none. */
  readonly WebSocket?: SocketConstructor
  /** Default: the platform's. */
  readonly clock?: Clock
  /** How a lost connection is made again; false: it is not. */
  readonly reconnect?: ReconnectOptions | false
  /** How long a request may wait for a connection and an answer, in ms. Default 30000. */
  readonly requestTimeoutMs?: number
  /** After how long a silence, in ms, a server is asked for a sign of life while a task is watched. Default 30000. */
  readonly heartbeatMs?: number
  /** How many unread events a watch keeps; then the oldest progress messages go. Default 1000. */
  readonly maxBuffered?: number
}

/** A task as it is submitted. */
export type TaskSubmission = Omit<TaskSubmitMessage, 'type'>

/** Which tasks to list. */
export interface TaskListOptions {
  /** Only tasks of this instance. */
  readonly instanceId?: string
  /** Only tasks that stand so. */
  readonly status?: TaskStatus
  /** The most tasks of a page. */
  readonly limit?: number
  /** `nextCursor` of the page before. */
  readonly cursor?: string
}

/** One page of tasks, newest first. */
export interface TaskPage {
  /** At most `limit` of them. */
  readonly tasks: readonly TaskSummary[]
  /** Absent on the last page. */
  readonly nextCursor?: string
}

/** Options of `TaskClient.watch`. */
export interface WatchOptions {
  /** Ends the watch: the iteration throws the signal's reason. */
  readonly signal?: AbortSignal
  /** Told how the task stands when the watch begins, and after each reconnection: progress may have been missed by then. */
  readonly onSnapshot?: (task: Task) => void
}

/** Every method rejects with an `AgentTasksError`: `TaskServerError` with the server's code, or `ConnectionError`. */
export interface TaskClient {
  /** Queues a task. `queuePosition` counts from 1 among the tasks of its instance that have not ended. */
  submit(task: TaskSubmission): Promise<{ taskId: string; queuePosition: number }>
  /**
   * The events of a task, up to and with its `task_complete`, across reconnections. The watch begins with the iteration,
   * and leaving the iteration ends it. Begun right after `submit`, it misses nothing.
   *
   * A consumer that falls behind, and a lost connection, may cost progress messages, never the `task_complete`.
   * @throws while iterating: TaskExpiredError (`TASK_EXPIRED`) when the server knew the task and no longer does,
   *   TaskServerError (`TASK_NOT_FOUND`) when it never did, ConnectionError
   */
  watch(taskId: string, options?: WatchOptions): AsyncIterable<TaskEvent, undefined>
  /** One page of tasks, newest first. */
  list(options?: TaskListOptions): Promise<TaskPage>
  /** A task, whole; undefined when the server does not know it. */
  get(taskId: string): Promise<Task | undefined>
  /** Ends a task. False when it had ended; rejects with `TASK_NOT_FOUND` when the server does not know it. */
  cancel(taskId: string): Promise<boolean>
  /** What can run commands. */
  instances(): Promise<readonly InstanceSummary[]>
  /** Ends every watch and request (`CLIENT_CLOSED`) and resolves when the connection is gone. */
  close(): Promise<void>
}

/**
 * Makes a client. It connects when it is first used, and connects again while something waits for an answer or an event.
 * @throws InvalidInputError for a URL that is none; InvalidSettingError for another option out of its range
 */
export function createTaskClient(options: TaskClientOptions): TaskClient {
  const { token, fetch, clock = systemClock } = options
  const endpoints = parseEndpoints(options.url)
  const maxBuffered = atLeastOne('maxBuffered', options.maxBuffered ?? 1000)
  const closing = new AbortController()
  const feeds = createFeeds({ clock, maxBuffered, session: () => session })
  const session = createSession({
    url: endpoints.socket,
    token,
    WebSocket: options.WebSocket,
    clock,
    reconnection: createReconnection(options.reconnect),
    requestTimeoutMs: atLeastOne('requestTimeoutMs', options.requestTimeoutMs ?? 30_000),
    heartbeatMs: atLeastOne('heartbeatMs', options.heartbeatMs ?? 30_000),
    onEvent: (event) => feeds.tell(event),
    onReady: () => feeds.resume(),
    onGivenUp: (error) => feeds.fail(error),
    watchedTask: () => feeds.watchedTask(),
  })

  function ask<T extends Request['answer'], R>(
    request: { message: ClientMessageInput; answer: T; isRepeatable: boolean },
    read: (answer: AnswerOf<T>) => R,
  ): Promise<R> {
    return new Promise((resolve, reject) => {
      const onAnswer = (answer: AnswerOf<T>): void => {
        try {
          resolve(read(answer))
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)))
        }
      }
      session.request<T>({ ...request, onAnswer, onError: reject })
    })
  }

  return {
    submit: (task) =>
      ask(
        { message: { ...task, type: 'task_submit' }, answer: 'task_submit_response', isRepeatable: false },
        ({ taskId, queuePosition, code = 'REJECTED', error = 'The server took no task.' }) => {
          if (taskId === undefined || queuePosition === undefined) throw new TaskServerError(code, error)
          // In the step that reads the answer: the first event may be in the very next frame.
          feeds.adopt(taskId)
          return { taskId, queuePosition }
        },
      ),

    watch: (taskId, { signal, onSnapshot } = {}) => ({
      [Symbol.asyncIterator]: () => {
        let leave: () => void = () => undefined
        const onAbort = (): void => queue.fail(signal?.reason, true)
        const queue = createWatchQueue(maxBuffered, {
          onEnd: () => leave(),
          onRead: () => signal?.removeEventListener('abort', onAbort),
        })
        if (closing.signal.aborted) queue.fail(closing.signal.reason)
        else if (signal?.aborted === true) onAbort()
        else {
          signal?.addEventListener('abort', onAbort, { once: true })
          leave = feeds.watch(taskId, {
            onEvent: (event) => queue.push(event),
            onError: (error) => queue.fail(error),
            onSnapshot: onSnapshot && isolated(onSnapshot, (error) => queue.fail(error, true)),
          })
        }
        return queue.iterator
      },
    }),

    list: (which = {}) =>
      ask(
        { message: { ...which, type: 'task_list' }, answer: 'task_list_response', isRepeatable: true },
        ({ tasks, nextCursor }) => ({ tasks, ...(nextCursor !== undefined && { nextCursor }) }),
      ),

    get: (taskId) =>
      ask(
        { message: { type: 'task_status', taskId }, answer: 'task_status_response', isRepeatable: true },
        ({ task }) => task ?? undefined,
      ),

    cancel: (taskId) =>
      ask(
        { message: { type: 'task_cancel', taskId }, answer: 'task_cancel_response', isRepeatable: true },
        ({ success, code = 'TASK_ENDED', error = 'The task was not cancelled.' }) => {
          if (!success && code !== 'TASK_ENDED') throw new TaskServerError(code, error)
          return success
        },
      ),

    instances: async () => {
      closing.signal.throwIfAborted()
      const rest = { baseUrl: endpoints.http, token, fetch, signal: closing.signal }
      return (await callRest(rest, '/instances', instanceListSchema)).instances
    },

    close: async () => {
      if (!closing.signal.aborted) closing.abort(closedError())
      feeds.close(closedError())
      await session.close()
    },
  }
}

/** A callback of the caller whose exception ends its own watch and harms nobody else. */
function isolated(onSnapshot: (task: Task) => void, onError: (error: unknown) => void) {
  return (task: Task): void => {
    try {
      onSnapshot(task)
    } catch (error) {
      onError(error)
    }
  }
}

function atLeastOne(setting: string, value: number): number {
  if (value >= 1) return value
  throw new InvalidSettingError(setting, value, 'a number >= 1')
}
