/**
 * The worker's side of a WebSocket instance: registers, says hello, runs the tools that it is asked for, and comes back
 * with the same id and secret when the connection is lost.
 *
 * W1  Every call is answered once, on the socket that asked; a lost connection aborts its calls.
 * W2  Whoever is taken over, or disconnected on purpose, stays away; whoever is no longer known registers again.
 */
import { clearLongTimeout, setLongTimeout, systemClock, type Clock, type LongTimer } from '../clock.js'
import { InvalidInputError, type AgentTasksError } from '../errors.js'
import { callIsolated } from '../callbacks/isolated-call.js'
import {
  registerResponseSchema,
  serverToWorkerSchema,
  WORKER_CLOSE,
  type RegisterResponse,
  type WorkerMessage,
} from '../protocol/instance-messages.js'
import { CLIENT_CLOSE } from '../protocol/client-messages.js'
import { TaskServerError } from './client-errors.js'
import { parseEndpoints } from './endpoints.js'
import { createLink, type LinkEnd } from './link.js'
import type { FetchLike, SocketConstructor } from './platform.js'
import { createReconnection, type ReconnectOptions } from './reconnection.js'
import { callRest } from './rest.js'
import { closedError } from './session.js'
import { createWorkerCalls } from './worker-calls.js'
import { describeTool, type InstanceTool } from '../protocol/instance-tools.js'

/** Options of `connectInstance`. */
export interface ConnectInstanceOptions {
  /** What the worker can do. */
  readonly tools: readonly InstanceTool[]
  /** The id that the instance wants: letters, digits, `.`, `:`, `-`, `_`. Default: one that the server makes. */
  readonly name?: string
  /** The server's bearer token, if it asks for one. */
  readonly token?: string
  /** Default: the platform's. */
  readonly fetch?: FetchLike
  /** Default: the platform's, or that of `ws` where there is none. */
  readonly WebSocket?: SocketConstructor
  /** Default: the platform's. */
  readonly clock?: Clock
  /** How a lost connection is made again; false: it is not. */
  readonly reconnect?: ReconnectOptions | false
  /** After how long a silence, in ms, the server is pinged; after as long again the connection counts as lost. Default 30000. */
  readonly heartbeatMs?: number
  /** The largest frame that the server takes, in bytes; a result that is larger is an error. Default 1 MiB. */
  readonly maxFrameBytes?: number
  /** Told of each lost connection, of what the server complains about, and of exceptions in a tool's abort listeners. Default: nobody. */
  readonly onError?: (error: unknown) => void
}

/** A worker that is registered. */
export interface ConnectedInstance {
  /** The id under which tasks name it. */
  readonly instanceId: string
  /** Whether its connection is open just now. */
  readonly isConnected: boolean
  /** How many calls are running. */
  readonly runningCalls: number
  /**
   * Resolves when the instance has ended for good: with nothing after `close()`, else with why: `TAKEN_OVER`,
   * `INSTANCE_DISCONNECTED` (on purpose), `UNAUTHORIZED`, or the last failed attempt. Never rejects.
   */
  readonly closed: Promise<AgentTasksError | undefined>
  /** Aborts what runs and disconnects; resolves when the connection is gone. */
  close(): Promise<void>
}

/**
 * Registers functions of this process as an instance of a server, and resolves when commands may come.
 * @param url the HTTP port of the server, such as `http://127.0.0.1:3300`
 * @throws InvalidInputError for a URL that is none or two tools of one name; TaskServerError with the server's code, such as
 *   `UNAUTHORIZED`; ConnectionError when there is no connection: the first is not tried twice
 */
export async function connectInstance(url: string, options: ConnectInstanceOptions): Promise<ConnectedInstance> {
  const { clock = systemClock, heartbeatMs = 30_000, maxFrameBytes = 1024 * 1024, onError } = options
  const report = (error: unknown): void =>
    callIsolated(
      (): unknown => onError?.(error),
      () => undefined,
    )
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]))
  if (tools.size < options.tools.length) {
    throw new InvalidInputError(
      'options.tools',
      options.tools.map(({ name }) => name).join(', '),
      'tools of different names',
    )
  }
  const descriptions = options.tools.map(describeTool)
  const { http } = parseEndpoints(url)
  const closing = new AbortController()
  const rest = { baseUrl: http, token: options.token, fetch: options.fetch, signal: closing.signal }
  const register = (instanceId: string | undefined): Promise<RegisterResponse> =>
    callRest(rest, '/register', registerResponseSchema, {
      ...(instanceId !== undefined && { instanceId }),
      tools: descriptions,
    })

  let registration = await register(options.name)
  let isRefused = false
  /** What the server said before it closed a connection that was not ready. */
  let complaint: TaskServerError | undefined
  let heartbeat: LongTimer | undefined
  const first = defer<undefined>()
  const closed = defer<AgentTasksError | undefined>()
  let hasBeenReady = false

  const send = (message: WorkerMessage): void => void link.send(message)
  const calls = createWorkerCalls({ tools, maxFrameBytes, send, report })
  const link = createLink({
    url: () => registration.websocketUrl,
    WebSocket: options.WebSocket,
    clock,
    reconnection: createReconnection(options.reconnect),
    beforeConnect: async () => {
      if (!isRefused) return
      registration = await register(registration.instanceId)
      isRefused = false
    },
    onOpen: () => {
      const { instanceId, secret } = registration
      // A server that asks for no token answers with an error, and goes on to the hello.
      if (options.token !== undefined) link.send({ type: 'authenticate', token: options.token })
      send({ type: 'hello', instanceId, secret, tools: descriptions })
    },
    onMessage: handle,
    onDown: goDown,
  })

  function handle(raw: unknown): void {
    const parsed = serverToWorkerSchema.safeParse(raw)
    if (!parsed.success) return
    const message = parsed.data
    if (message.type === 'welcome') becomeReady()
    else if (message.type === 'tool_call') calls.start(message)
    else if (message.type === 'tool_cancel') calls.cancel(message)
    else if (message.type === 'ping') send({ type: 'pong' })
    else if (message.type === 'error') {
      const error = new TaskServerError(message.code, message.message)
      if (link.isReady) report(error)
      else complaint = error
    }
  }

  function becomeReady(): void {
    if (link.isReady) return
    link.ready()
    hasBeenReady = true
    first.resolve(undefined)
    watchSilence()
  }

  function watchSilence(): void {
    const silentMs = clock.now() - link.heardAt
    if (silentMs >= 2 * heartbeatMs) {
      link.drop('the server fell silent')
      return
    }
    if (silentMs >= heartbeatMs) send({ type: 'ping' })
    heartbeat = setLongTimeout(clock, watchSilence, silentMs < heartbeatMs ? heartbeatMs - silentMs : heartbeatMs)
  }

  function goDown({ error, code, isFinal }: LinkEnd): boolean {
    clearLongTimeout(clock, heartbeat)
    calls.abandon('The connection to the server was lost.')
    const reason = reasonOf(code, complaint) ?? error
    complaint = undefined
    isRefused ||= code === WORKER_CLOSE.refused
    const staysAway = farewells.includes(code)
    if (isFinal || !hasBeenReady || staysAway) {
      end(reason)
      return false
    }
    report(reason)
    return true
  }

  function end(error: AgentTasksError | undefined): void {
    closed.resolve(error)
    first.reject(error ?? closedError())
  }

  link.wake()
  await first.promise
  return {
    get instanceId() {
      return registration.instanceId
    },
    get isConnected() {
      return link.isReady
    },
    get runningCalls() {
      return calls.size
    },
    closed: closed.promise,
    close: async () => {
      clearLongTimeout(clock, heartbeat)
      closing.abort(closedError())
      calls.abandon('The worker was closed.')
      await link.close()
      end(undefined)
    },
  }
}

/** The worker is not to come back. */
const farewells: readonly (number | undefined)[] = [
  WORKER_CLOSE.takenOver,
  WORKER_CLOSE.disconnected,
  CLIENT_CLOSE.refused,
]

/** What the server meant by closing; undefined when the connection just ended. */
function reasonOf(code: number | undefined, complaint: TaskServerError | undefined): TaskServerError | undefined {
  if (code === WORKER_CLOSE.takenOver) {
    return new TaskServerError('TAKEN_OVER', 'Another worker took this instance over.')
  }
  if (code === WORKER_CLOSE.disconnected) {
    return new TaskServerError('INSTANCE_DISCONNECTED', 'The server disconnected this instance.')
  }
  if (code !== WORKER_CLOSE.refused && code !== CLIENT_CLOSE.refused) return undefined
  return complaint ?? new TaskServerError('UNAUTHORIZED', 'The server refused the connection.')
}

function defer<T>() {
  let resolve: (value: T) => void = () => undefined
  let reject: (reason: AgentTasksError) => void = () => undefined
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  // Whoever waits hears of it; nobody may be waiting.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
