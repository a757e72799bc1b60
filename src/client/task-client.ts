/** The typed client of a task server: submits, watches, lists and cancels command tasks. */
import type { Observable } from 'rxjs'
import { z } from 'zod'
import { IsolatedObservable } from '../isolation/isolated-observable.js'
import { systemClock, type Clock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { ClientMessageInput } from '../protocol/client-messages.js'
import type { Task, TaskStatus, TaskSubmitMessage, TaskSummary } from '../protocol/command-tasks.js'
import {
  aClock,
  aFunction,
  aName,
  aSecret,
  aString,
  aText,
  checkOptions,
  integerFrom,
  limitFrom,
  objectWith,
  required,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { instanceListSchema, instancePausedSchema, taskCreatedSchema, type InstanceSummary } from '../protocol/rest.js'
import { closedError, TaskServerError } from './client-errors.js'
import { parseEndpoints } from './endpoints.js'
import { createFeeds } from './feeds.js'
import type { FetchLike, SocketConstructor } from './platform.js'
import { createReconnection, reconnectOption, type ReconnectOptions } from './reconnection.js'
import type { AnswerOf, Request } from './requests.js'
import { callRest, type RestOptions } from './rest.js'
import { createSession, type ConnectionState, type TaskMessage } from './session.js'
import { createWatchQueue } from './watch-queue.js'

/** Options of `createTaskClient`. */
export interface TaskClientOptions {
  /** The HTTP URL of the server (`http://127.0.0.1:3300`), or the URL of its client socket (`ws://127.0.0.1:3400`). */
  readonly url: string
  /** The bearer token. On a socket the client sends it in an `authenticate` message. */
  readonly token?: string
  /** Sends the HTTP requests. Default: the platform's `fetch`. */
  readonly fetch?: FetchLike
  /** The class that opens the sockets. Default: the platform's `WebSocket`, or the one of the package `ws` in Node 20. */
  readonly WebSocket?: SocketConstructor
  /** The source of time and timers. Default: the platform's clock. */
  readonly clock?: Clock
  /** The back-off of reconnections; `false` turns reconnection off. */
  readonly reconnect?: ReconnectOptions | false
  /** The time limit of a request, including the wait for a connection, in ms. Default 30000. */
  readonly requestTimeoutMs?: number
  /** While a task is watched: how long the server may be silent before the client checks that it answers, in ms. Default 30000. */
  readonly heartbeatMs?: number
  /** The maximum number of unread events of one watch. At the limit, the oldest progress messages are dropped. Default 1000. */
  readonly maxBuffered?: number
}

const optionTypes: OptionTypes<TaskClientOptions> = {
  url: required(aString),
  token: aSecret,
  fetch: aFunction,
  WebSocket: aFunction,
  clock: aClock,
  reconnect: reconnectOption,
  requestTimeoutMs: limitFrom(1),
  heartbeatMs: limitFrom(1),
  maxBuffered: limitFrom(1),
}

/** The default of `reconnect.giveUpMs`. */
const DEFAULT_GIVE_UP_MS = 60_000

/** A task to submit. */
export type TaskSubmission = Omit<TaskSubmitMessage, 'type'>

/** Options of `TaskClient.submit`. */
export interface SubmitTaskOptions {
  /**
   * Identifies the submission: 1 to 255 visible ASCII characters. A task with a key is sent over REST. If the connection is lost, submit again
   * with the same key: the server gives the same answer, and submits nothing twice.
   */
  readonly idempotencyKey?: string
}

const submitOptionTypes: OptionTypes<SubmitTaskOptions> = {
  idempotencyKey: aText('1 to 255 visible ASCII characters', /^[\x21-\x7e]{1,255}$/),
}

/** Options of `TaskClient.list`. */
export interface TaskListOptions {
  /** Only tasks of this instance. */
  readonly instanceId?: string
  /** Only tasks with this status. Default `all`. */
  readonly status?: TaskStatus | 'all'
  /** The page size. Default: the server's default. */
  readonly limit?: number
  /** `nextCursor` of the previous page. */
  readonly cursor?: string
}

const listOptionTypes: OptionTypes<TaskListOptions> = {
  instanceId: aName,
  status: aName,
  limit: integerFrom(1),
  cursor: aString,
}

/** One page of tasks, newest first. */
export interface TaskList {
  /** At most `limit` tasks. */
  readonly tasks: readonly TaskSummary[]
  /** The `cursor` of the next page. Absent on the last page. */
  readonly nextCursor?: string
}

/** Options of `TaskClient.watch`. */
export interface WatchOptions {
  /** Ends the watch when it is aborted: the iteration throws the reason of the signal. */
  readonly signal?: AbortSignal
  /** Called with the whole task when the watch starts, and after each reconnection, because progress may have been missed by then. */
  readonly onSnapshot?: (task: Task) => void
}

const watchOptionTypes: OptionTypes<WatchOptions> = {
  signal: objectWith('an AbortSignal', 'addEventListener', 'removeEventListener'),
  onSnapshot: aFunction,
}

/** A client of a task server. Methods reject with an `AgentTasksError`, whose `code` comes from the server or says why there is no answer. */
export interface TaskClient {
  /** The current state of the connection. */
  readonly connection: ConnectionState
  /**
   * Emits the state of the connection, now and after each change. Completes when the client is closed. An exception of a subscriber is
   * printed on the console, and has no other effect.
   */
  readonly connection$: Observable<ConnectionState>
  /** Submits a task. `queuePosition` is the place of the task among the unfinished tasks of its instance, from 1. */
  submit(task: TaskSubmission, options?: SubmitTaskOptions): Promise<{ taskId: string; queuePosition: number }>
  /**
   * Iterates over the events of a task, up to and including its `task_complete`. The iteration continues after a reconnection.
   * The watch starts with the iteration, and ends when the loop is left. A watch that starts right after `submit` gets all events.
   *
   * A slow consumer or a lost connection may miss progress messages, never the `task_complete`. When a lost connection cannot be restored
   * within `reconnect.giveUpMs`, the iteration throws `CONNECTION_LOST`. The task may still be running then.
   * @throws TASK_EXPIRED while iterating, when the server no longer has the task
   * @throws AgentTasksError `TASK_NOT_FOUND` while iterating, when the server never had the task
   * @throws AgentTasksError while iterating, when the connection fails or the client is closed
   */
  watch(taskId: string, options?: WatchOptions): AsyncIterable<TaskMessage, undefined>
  /** One page of tasks, newest first. */
  list(options?: TaskListOptions): Promise<TaskList>
  /** Returns a task with its commands; undefined when the server does not have the task. */
  get(taskId: string): Promise<Task | undefined>
  /**
   * Returns the whole result of a command. Events and tasks have a `resultRef` in place of a `result` that is too large for them.
   * @param index the index of the command, from 0
   * @throws AgentTasksError `RESULT_NOT_FOUND` when the command has no result
   * @throws AgentTasksError `TASK_NOT_FOUND` when the server does not have the task
   */
  result(taskId: string, index: number): Promise<unknown>
  /**
   * Cancels a task. Resolves with false when the task had already ended.
   * @throws AgentTasksError `TASK_NOT_FOUND` when the server does not have the task
   */
  cancel(taskId: string): Promise<boolean>
  /** The instances that can run commands. */
  instances(): Promise<readonly InstanceSummary[]>
  /**
   * Pauses an instance: its queued tasks do not start until `resumeInstance`.
   * @throws AgentTasksError `INVALID_INSTANCE` when the server does not have the instance
   * @throws AgentTasksError `NOT_SUPPORTED` when the server belongs to a cluster
   */
  pauseInstance(instanceId: string): Promise<void>
  /** Lets the queued tasks of a paused instance start again. Throws the same errors as `pauseInstance`. */
  resumeInstance(instanceId: string): Promise<void>
  /** Fails all watches and requests with `CLIENT_CLOSED`. Resolves when the connection is closed. */
  close(): Promise<void>
  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Creates a client. It connects at the first request or watch, and reconnects while a request or a watch needs the connection.
 * @throws INVALID_INPUT for an invalid URL, an unknown option, or an option of a wrong type
 * @throws INVALID_SETTING for a number out of its range
 */
export function createTaskClient(options: TaskClientOptions): TaskClient {
  checkOptions(options, optionTypes)
  const { token, fetch, clock = systemClock } = options
  const endpoints = parseEndpoints(options.url)
  const { maxBuffered = 1000, requestTimeoutMs = 30_000 } = options
  const closing = new AbortController()
  const feeds = createFeeds({ clock, maxBuffered, session: () => session })
  const session = createSession({
    url: endpoints.socket,
    token,
    WebSocket: options.WebSocket,
    clock,
    reconnection: createReconnection(options.reconnect, DEFAULT_GIVE_UP_MS),
    requestTimeoutMs,
    heartbeatMs: options.heartbeatMs ?? 30_000,
    onEvent: (event) => feeds.push(event),
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

  /** @throws AgentTasksError when the client is closed */
  function restOptions(): RestOptions {
    closing.signal.throwIfAborted()
    return { baseUrl: endpoints.http, token, fetch, signal: closing.signal, clock, timeoutMs: requestTimeoutMs }
  }

  async function setPaused(instanceId: string, action: 'pause' | 'resume'): Promise<void> {
    const path = `/instances/${encodeURIComponent(instanceId)}/${action}`
    await callRest(restOptions(), path, instancePausedSchema, {})
  }

  async function close(): Promise<void> {
    if (!closing.signal.aborted) closing.abort(closedError())
    feeds.close(closedError())
    await session.close()
  }

  return {
    get connection() {
      return session.connection.value
    },
    connection$: new IsolatedObservable(
      (error) => console.error('[agent-tasks] subscriber of connection$:', error),
      (subscriber) => session.connection.subscribe(subscriber),
    ),

    submit: async (task, options = {}) => {
      checkOptions(options, submitOptionTypes)
      const { idempotencyKey: key } = options
      if (key !== undefined) {
        const headers = { 'idempotency-key': key }
        const { taskId, queuePosition } = await callRest(restOptions(), '/tasks', taskCreatedSchema, task, headers)
        return { taskId, queuePosition }
      }
      return await ask(
        { message: { ...task, type: 'task_submit' }, answer: 'task_submit_response', isRepeatable: false },
        ({ taskId, queuePosition, code = 'REJECTED', error = 'The server rejected the task.' }) => {
          if (taskId === undefined || queuePosition === undefined) throw new TaskServerError(code, error)
          // The next frame may be the first event of the task, so the feed must be open before that frame is read.
          feeds.adopt(taskId)
          return { taskId, queuePosition }
        },
      )
    },

    watch: (taskId, options = {}) => ({
      [Symbol.asyncIterator]: () => {
        checkOptions(options, watchOptionTypes)
        const { signal, onSnapshot } = options
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

    list: async (which = {}) => {
      checkOptions(which, listOptionTypes)
      return ask(
        { message: { ...which, type: 'task_list' }, answer: 'task_list_response', isRepeatable: true },
        ({ tasks, nextCursor }) => ({ tasks, ...omitUndefined({ nextCursor }) }),
      )
    },

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

    result: async (taskId, index) => {
      const path = `/tasks/${encodeURIComponent(taskId)}/commands/${index}/result`
      return await callRest(restOptions(), path, z.unknown())
    },

    instances: async () => {
      return (await callRest(restOptions(), '/instances', instanceListSchema)).instances
    },

    pauseInstance: (instanceId) => setPaused(instanceId, 'pause'),
    resumeInstance: (instanceId) => setPaused(instanceId, 'resume'),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Wraps `onSnapshot` so that its exception fails only its own watch. */
function isolated(onSnapshot: (task: Task) => void, onError: (error: unknown) => void) {
  return (task: Task): void => {
    try {
      onSnapshot(task)
    } catch (error) {
      onError(error)
    }
  }
}
