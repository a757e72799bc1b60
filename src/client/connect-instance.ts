/**
 * The worker's side of a WebSocket instance: registers, runs tool calls, and reconnects with the same id and secret.
 *
 * W1  Every call is answered once, on the socket that it came from; a lost connection aborts its calls, and the next one names those that go on
 *     nevertheless.
 * W2  A worker that was taken over or disconnected on purpose does not reconnect; one that the server no longer knows registers
 *     again.
 */
import { elapsedMs, setLongTimeout, systemClock, type Clock } from '../clock.js'
import { defined } from '../defined.js'
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
import {
  aClock,
  aFunction,
  aName,
  aSecret,
  aTool,
  checkOptions,
  limitFrom,
  listOf,
  required,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { closedError, ConnectionError, TaskServerError, unauthorizedError } from './client-errors.js'
import { parseEndpoints, workerSocketOf } from './endpoints.js'
import { createLink, type LinkEnd } from './link.js'
import { findSocketConstructor, type FetchLike, type SocketConstructor } from './platform.js'
import { createReconnection, reconnectOption, type Reconnection, type ReconnectOptions } from './reconnection.js'
import { callRest } from './rest.js'
import { openSecretFile } from './secret-file.js'
import { createWorkerCalls } from './worker-calls.js'
import { describeTool, type InstanceTool } from '../protocol/instance-tools.js'
import { aTelemetry, type Telemetry } from '../protocol/telemetry.js'

/** Options of `connectInstance`. */
export interface ConnectInstanceOptions {
  /** The tools that commands can call. */
  readonly tools: readonly InstanceTool[]
  /** The id of the instance: letters, digits, `.`, `:`, `-`, `_`. Default: an id from the server. */
  readonly id?: string
  /** The bearer token, for a server that requires one. */
  readonly token?: string
  /**
   * A file of this instance alone, in which the id and the secret of its registration are kept, readable by its owner only. A program that is started
   * again resumes its registration with it: it keeps the id, also when the server was started again, and takes over from a connection that the server still
   * has. Node only. Default: each start registers anew.
   */
  readonly secretFile?: string
  /** Sends the requests. Default: the platform's. */
  readonly fetch?: FetchLike
  /** Opens the sockets. Default: the platform's, or that of `ws` in Node 20. */
  readonly WebSocket?: SocketConstructor
  /** The source of time and timers. Default: the platform's. */
  readonly clock?: Clock
  /** The back-off of reconnections; `false` turns reconnection off. */
  readonly reconnect?: ReconnectOptions | false
  /**
   * How long to wait for a server that cannot be reached yet, in ms: the first connection is tried again until then, with the back-off of
   * `reconnect`. Infinity for any time. Default 0: one attempt.
   */
  readonly connectTimeoutMs?: number
  /** The silence after which the server is pinged, in ms; after twice as long the connection counts as lost. Default 30000. */
  readonly heartbeatMs?: number
  /** The largest frame that the server accepts, in bytes; a larger result becomes an error. Default 1 MiB. */
  readonly maxFrameBytes?: number
  /** Traces the calls (`agent-tasks/telemetry`), as parts of the traces that a server with telemetry names. Default: none. */
  readonly telemetry?: Telemetry
  /** Called with true when it can take calls, at first and after each reconnection, and with false when that connection ends. */
  readonly onConnection?: (isConnected: boolean) => void
  /** Called with each lost connection, each error message of the server, and exceptions of a tool's abort listeners. */
  readonly onError?: (error: unknown) => void
}

const optionTypes: OptionTypes<ConnectInstanceOptions> = {
  tools: required(listOf(aTool)),
  id: aName,
  token: aSecret,
  secretFile: aName,
  fetch: aFunction,
  WebSocket: aFunction,
  clock: aClock,
  reconnect: reconnectOption,
  connectTimeoutMs: limitFrom(0),
  heartbeatMs: limitFrom(1),
  maxFrameBytes: limitFrom(1),
  telemetry: aTelemetry,
  onConnection: aFunction,
  onError: aFunction,
}

/** A registered worker. */
export interface ConnectedInstance {
  /** The id of the instance, for `instanceId` of tasks. */
  readonly instanceId: string
  /** Whether it is connected now. */
  readonly isConnected: boolean
  /** The number of running calls. */
  readonly runningCalls: number
  /**
   * Resolves when the worker will not reconnect: with undefined after `close()`, otherwise with the reason: `TAKEN_OVER`,
   * `INSTANCE_DISCONNECTED` (on purpose), `UNAUTHORIZED`, or the error of the last attempt. Never rejects.
   */
  readonly closed: Promise<AgentTasksError | undefined>
  /** Aborts running calls and disconnects; resolves when the connection is closed. */
  close(): Promise<void>
  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Registers functions of this process as an instance of a server; resolves when it can take calls.
 * @param url the HTTP URL of the server, such as `http://127.0.0.1:3300`
 * @throws InvalidInputError for an invalid URL, for an unknown or wrong option, for tools with the same name, or for a `secretFile` that others can
 *   read, that is damaged or that belongs to another instance; InvalidSettingError for a number out of its range; TaskServerError with the server's code, such as
 *   `UNAUTHORIZED`, or `BAD_ANSWER` when the server redirects, or names another host or a socket without TLS: the token goes to the host of
 *   `url` alone; ConnectionError when the first connection fails, and is not made within `connectTimeoutMs` either
 */
export async function connectInstance(url: string, options: ConnectInstanceOptions): Promise<ConnectedInstance> {
  checkOptions(options, optionTypes)
  const { clock = systemClock, heartbeatMs = 30_000, maxFrameBytes = 1024 * 1024, onError } = options
  const report = (error: unknown): void =>
    callIsolated(
      (): unknown => onError?.(error),
      () => undefined,
    )
  const announce = (isConnected: boolean): void =>
    callIsolated((): unknown => options.onConnection?.(isConnected), report)
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
  const { token, fetch } = options
  const rest = { baseUrl: http, token, fetch, signal: closing.signal, clock, timeoutMs: REGISTER_TIMEOUT_MS }
  const file = options.secretFile === undefined ? undefined : openSecretFile(options.secretFile, options.id)
  const register = async (instanceId: string | undefined): Promise<RegisterResponse> => {
    const answer = await callRest(rest, '/register', registerResponseSchema, {
      ...defined({ instanceId, secret: file?.kept?.secret }),
      tools: descriptions,
    })
    file?.keep(answer)
    return { ...answer, websocketUrl: workerSocketOf(http, answer.websocketUrl) }
  }

  const { connectTimeoutMs = 0 } = options
  const until = elapsedMs(clock) + connectTimeoutMs
  const backOff = createReconnection(options.reconnect)
  let registration = await whenReachable(() => register(file?.kept?.instanceId ?? options.id), {
    clock,
    backOff,
    report,
    until,
  })
  let isRefused = false
  /** The error message before the server closed a connection that was not ready. */
  let complaint: TaskServerError | undefined
  const first = defer<undefined>()
  const closed = defer<AgentTasksError | undefined>()
  let hasBeenReady = false

  const send = (message: WorkerMessage): void => void link.send(message)
  const calls = createWorkerCalls({ tools, maxFrameBytes, send, report, telemetry: options.telemetry })
  const link = createLink({
    url: () => registration.websocketUrl,
    loadSocket: () => findSocketConstructor(options.WebSocket),
    clock,
    reconnection: backOff,
    beforeConnect: async () => {
      if (!isRefused) return
      registration = await register(registration.instanceId)
      isRefused = false
    },
    onOpen: () => {
      const { instanceId, secret } = registration
      // A server that requires no token answers with an error, and goes on.
      if (options.token !== undefined) link.send({ type: 'authenticate', token: options.token })
      const inFlight = calls.nameAbandoned()
      send({
        type: 'hello',
        instanceId,
        secret,
        tools: descriptions,
        ...(inFlight.length > 0 && { calls: inFlight }),
      })
    },
    onMessage: handle,
    onDown: goDown,
    heartbeat: {
      everyMs: heartbeatMs,
      onSilence: (silentMs) => {
        if (silentMs >= 2 * heartbeatMs) link.drop('the server does not answer')
        else send({ type: 'ping' })
      },
    },
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
    // Such as that no token is needed: it does not explain how this connection ends.
    complaint = undefined
    hasBeenReady = true
    first.resolve(undefined)
    announce(true)
  }

  function goDown({ error, code, wasReady, isFinal }: LinkEnd): boolean {
    calls.abandon('The connection to the server was lost.')
    const reason = reasonOf(code, complaint) ?? error
    complaint = undefined
    isRefused ||= code === WORKER_CLOSE.refused
    if (wasReady) announce(false)
    const isAwaited = code !== WORKER_CLOSE.refused && elapsedMs(clock) < until
    if (isFinal || !(hasBeenReady || isAwaited) || FINAL_CODES.includes(code)) {
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

  async function close(): Promise<void> {
    const wasReady = link.isReady
    closing.abort(closedError())
    calls.abandon('The worker was closed.')
    const isClosed = link.close()
    if (wasReady) announce(false)
    await isClosed
    end(undefined)
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
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Tries again while the server cannot be reached, until a time on the clock of `elapsedMs`. */
async function whenReachable<T>(
  connect: () => Promise<T>,
  options: {
    readonly clock: Clock
    readonly backOff: Reconnection
    readonly until: number
    readonly report: (error: unknown) => void
  },
): Promise<T> {
  const { clock, backOff, until, report } = options
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await connect()
    } catch (error) {
      const leftMs = until - elapsedMs(clock)
      const delayMs = leftMs > 0 && isUnreachable(error) ? backOff(attempt, 0) : undefined
      if (delayMs === undefined) throw error
      report(error)
      await new Promise<void>((resolve) => setLongTimeout(clock, resolve, Math.min(delayMs, leftMs)))
    }
  }
}

/** Whether a server may be there a little later: nothing listens yet, or it starts or ends behind its proxy. */
function isUnreachable(error: unknown): boolean {
  if (error instanceof ConnectionError) return error.code === 'CONNECTION_FAILED'
  return error instanceof TaskServerError && [502, 503, 504].includes(error.status ?? 0)
}

/** The time limit of a registration, in ms. */
const REGISTER_TIMEOUT_MS = 30_000

/** The close codes after which a worker does not reconnect. */
const FINAL_CODES: readonly (number | undefined)[] = [
  WORKER_CLOSE.takenOver,
  WORKER_CLOSE.disconnected,
  CLIENT_CLOSE.refused,
]

/** The error that a close code stands for; undefined for other codes. */
function reasonOf(code: number | undefined, complaint: TaskServerError | undefined): TaskServerError | undefined {
  if (code === WORKER_CLOSE.takenOver) {
    return new TaskServerError('TAKEN_OVER', 'Another worker took over this instance.')
  }
  if (code === WORKER_CLOSE.disconnected) {
    return new TaskServerError('INSTANCE_DISCONNECTED', 'The server disconnected this instance.')
  }
  if (code !== WORKER_CLOSE.refused && code !== CLIENT_CLOSE.refused) return undefined
  if (complaint !== undefined && complaint.code !== 'UNAUTHORIZED') return complaint
  const message = complaint?.message ?? 'The server refused the connection.'
  // A worker proves its identity with the secret of its registration; a client sends a token.
  return code === CLIENT_CLOSE.refused ? unauthorizedError(message) : new TaskServerError('UNAUTHORIZED', message)
}

function defer<T>() {
  let resolve: (value: T) => void = () => undefined
  let reject: (reason: AgentTasksError) => void = () => undefined
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  // A rejection without a listener would end the process.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
