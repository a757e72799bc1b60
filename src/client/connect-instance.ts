/**
 * The worker's side of a WebSocket instance: registers with the server, runs tool calls, and reconnects with the same id and secret.
 *
 * - The worker answers every call once, on the socket that the call came from. When a connection is lost, its calls are aborted. Calls
 * that keep running nevertheless are listed in the `hello` of the next connection.
 * - The worker does not reconnect after another worker took over its instance, or after the server disconnected it on purpose. When the
 * server no longer knows the worker, the worker registers again.
 */
import { elapsedMs, setLongTimeout, systemClock, type Clock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { InvalidInputError, type AgentTasksError } from '../errors.js'
import { callIsolated } from '../isolation/isolated-call.js'
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
  checkOptions,
  limitFrom,
  listOf,
  required,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { aTool } from '../protocol/tool-option.js'
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
  /** The id of the instance: letters, digits, `.`, `:`, `-`, `_`. Default: the server generates an id. */
  readonly id?: string
  /** The bearer token, for a server that requires one. */
  readonly token?: string
  /**
   * The path of a file for the id and the secret of this registration. Each instance needs a file of its own, readable by its owner only.
   * A program that is started again with this file resumes its registration: it keeps its id, also after a restart of the server, and takes
   * over from a connection that the server still has. Node only. Default: each start registers a new instance.
   */
  readonly secretFile?: string
  /** Sends the HTTP requests. Default: the platform's `fetch`. */
  readonly fetch?: FetchLike
  /** The class that opens the sockets. Default: the platform's `WebSocket`, or the one of the package `ws` in Node 20. */
  readonly WebSocket?: SocketConstructor
  /** The source of time and timers. Default: the platform's clock. */
  readonly clock?: Clock
  /** The back-off of reconnections; `false` turns reconnection off. */
  readonly reconnect?: ReconnectOptions | false
  /**
   * How long to retry the first connection while the server cannot be reached, in ms. The retries use the back-off of `reconnect`. Infinity
   * retries forever. Default 0: one attempt.
   */
  readonly connectTimeoutMs?: number
  /** How long the server may be silent before the worker pings it, in ms. After twice this time the connection counts as lost. Default 30000. */
  readonly heartbeatMs?: number
  /** The largest frame that the server accepts, in bytes. A larger result is replaced by an error. Default 1 MiB. */
  readonly maxFrameBytes?: number
  /**
   * Traces the calls (`agent-tasks/telemetry`). A server with telemetry sends its trace with each call, and the call becomes a part of
   * it. Default: no tracing.
   */
  readonly telemetry?: Telemetry
  /** Called with true when the worker can take calls, at first and after each reconnection. Called with false when that connection ends. */
  readonly onConnection?: (isConnected: boolean) => void
  /** Called with the error of each lost connection, with each error message of the server, and with exceptions of abort listeners of tools. */
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
  /** Whether the worker is connected to the server now. */
  readonly isConnected: boolean
  /** The number of running calls. */
  readonly runningCalls: number
  /**
   * Resolves when the worker will not reconnect. The value is undefined after `close()`, and otherwise the reason: `TAKEN_OVER`,
   * `INSTANCE_DISCONNECTED` (on purpose), `UNAUTHORIZED`, or the error of the last attempt. Never rejects.
   */
  readonly closed: Promise<AgentTasksError | undefined>
  /** Aborts running calls and disconnects; resolves when the connection is closed. */
  close(): Promise<void>
  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Registers functions of this process as an instance of a server. Resolves when the instance can take calls.
 * The server sends queued commands as soon as the instance is registered, so a tool may be called before this promise resolves.
 * @param url the HTTP URL of the server, such as `http://127.0.0.1:3300`
 * @throws INVALID_INPUT for an invalid URL, an unknown option, an option of a wrong type, or two tools of the same name
 * @throws INVALID_INPUT for a `secretFile` that others can read, that is damaged, or that belongs to another instance
 * @throws INVALID_SETTING for a number out of its range
 * @throws AgentTasksError when the server refuses the registration; its `code`, such as `UNAUTHORIZED`, comes from the server
 * @throws AgentTasksError `CONNECTION_FAILED` when the server redirects, or cannot be reached within `connectTimeoutMs`
 * @throws AgentTasksError `BAD_ANSWER` when the server names a socket on another host, or without TLS although `url` has TLS
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
      'a different name for each tool',
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
      ...omitUndefined({ instanceId, secret: file?.kept?.secret }),
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
  /** The error message that the server sent before it closed a connection that was not ready. */
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
      // A server that requires no token answers with an error message, and keeps the connection.
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
    // The complaint may be that no token is needed. It does not explain why this connection ends later.
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

/** Retries `connect` while the server cannot be reached. `until` is a time by the monotonic clock `elapsedMs`. */
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

/** Whether a later attempt may succeed: nothing listens at the URL yet, or a proxy answers that its server is starting or stopping. */
function isUnreachable(error: unknown): boolean {
  if (error instanceof ConnectionError) return error.code === 'CONNECTION_FAILED'
  return error instanceof TaskServerError && [502, 503, 504].includes(error.status ?? 0)
}

/** The time limit of the request that registers the worker, in ms. */
const REGISTER_TIMEOUT_MS = 30_000

/** The close codes after which a worker does not reconnect. */
const FINAL_CODES: readonly (number | undefined)[] = [
  WORKER_CLOSE.takenOver,
  WORKER_CLOSE.disconnected,
  CLIENT_CLOSE.refused,
]

/** The error for the close code of a connection. Undefined for codes that are no refusal. */
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
  // A socket of a worker is refused for a wrong secret. Only a socket of a client is refused for its token, which the caller can change.
  return code === CLIENT_CLOSE.refused ? unauthorizedError(message) : new TaskServerError('UNAUTHORIZED', message)
}

function defer<T>() {
  let resolve: (value: T) => void = () => undefined
  let reject: (reason: AgentTasksError) => void = () => undefined
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  // Nobody may be listening to the promise. A rejection without a listener would end the process.
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
