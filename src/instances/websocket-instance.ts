/**
 * The server's side of a remote worker, independent of the transport. The machine of the instance (`machines/instance.ts`, in the
 * instance manager) decides whether it is connected and when its calls fail; this file sends the events.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { clearLongTimeout, setLongTimeout, systemClock, type Clock, type LongTimer } from '../clock.js'
import { defined } from '../defined.js'
import { InstanceError, ToolCallError } from '../errors.js'
import { WORKER_CLOSE, type ServerToWorkerMessage, type WorkerMessage } from '../protocol/instance-messages.js'
import { toError } from './calls-in-flight.js'
import { createDelay, type Delay } from './delay.js'
import type { Instance, InstanceConnection, InstanceEnd, InstancePeer, ToolCall, ToolDescription } from './instance.js'
import type { ToolCallResult } from '../protocol/tool-result.js'

/** The socket of a worker. */
export interface WorkerSocket {
  readonly peer?: InstancePeer | undefined
  send(text: string): void
  close(code: number, reason: string): void
}

/** The socket of a worker after `hello`. */
export interface WorkerLink {
  /** Handles a message after `hello`. */
  receive(message: Exclude<WorkerMessage, { type: 'hello' }>): void
  /** The socket has closed. Ignored when another one has taken over. */
  closed(): void
}

export interface WebSocketInstance extends Instance {
  readonly passesInstanceId: true
  /** Includes answers on another socket than the one that was asked. */
  readonly lateAnswers: number
  /** Checks the secret in constant time. */
  admits(secret: string): boolean
  /**
   * Attaches a socket, which replaces the current one. Returns undefined when the instance is gone.
   * @param calls the calls in flight of earlier connections, which are cancelled
   */
  attach(socket: WorkerSocket, tools?: readonly ToolDescription[], calls?: readonly string[]): WorkerLink | undefined
}

export interface WebSocketInstanceOptions {
  readonly id: string
  /** The secret of the worker, or its SHA-256 in hexadecimal. Only the digest is kept. */
  readonly secret: string | { readonly sha256: string }
  readonly tools?: readonly ToolDescription[] | undefined
  /** Whether the worker runs in a browser, for messages. Default true. */
  readonly isBrowser?: boolean
  /** How long the worker may take to connect, in ms. Default 60000. */
  readonly connectTimeoutMs?: number
  /** How long a worker may go without a pong, in ms. Default 45000. */
  readonly livenessMs?: number
  /** The ping interval, in ms. Default 15000. */
  readonly pingEveryMs?: number
  /** How long a cancelled call waits for the worker to stop, in ms. Default 2000. */
  readonly cancelGraceMs?: number
  readonly clock?: Clock
}

/** A random secret of 256 bits. */
export const createSecret = (): string => randomBytes(32).toString('base64url')

interface Pending {
  readonly call: ToolCall
  readonly link: object
  readonly resolve: (result: ToolCallResult) => void
  readonly reject: (error: Error) => void
  isCancelled: boolean
}

/** Creates the instance of a registration. It is connected when a socket is attached. */
export function websocketInstance(options: WebSocketInstanceOptions): WebSocketInstance {
  const { id, connectTimeoutMs = 60_000, livenessMs = 45_000, pingEveryMs = 15_000 } = options
  const { clock = systemClock, cancelGraceMs = 2000 } = options
  const { secret } = options
  const digest = typeof secret === 'string' ? digestOf(secret) : Buffer.from(secret.sha256, 'hex')
  /** Ids of calls differ between server processes, because the worker may still run calls of an earlier one. */
  const life = randomBytes(6).toString('base64url')
  const pending = new Map<string, Pending>()
  let tools = options.tools ?? []
  let current: { readonly socket: WorkerSocket } | undefined
  let pings: LongTimer | undefined
  let emitEvent: Parameters<InstanceConnection['onEvent']>[0] = () => undefined
  let emitLoss: (reason: string) => void = () => undefined
  let endedBy: string | undefined
  let callCount = 0
  let earlier: EarlierCalls | undefined
  let lateAnswers = 0

  const goneError = (reason: string): InstanceError =>
    new InstanceError('INSTANCE_DISCONNECTED', id, `Instance ${id} is gone: ${reason}`)

  function failCalls(reason: string): void {
    for (const { reject } of [...pending.values()]) reject(goneError(reason))
  }

  function send(socket: WorkerSocket, message: ServerToWorkerMessage): void {
    try {
      socket.send(JSON.stringify(message))
    } catch {
      // The socket has closed, which its transport reports.
    }
  }

  /** Pings until another socket takes over or the worker is gone. */
  function keepPinging(socket: WorkerSocket): void {
    pings = setLongTimeout(
      clock,
      () => {
        keepPinging(socket)
        send(socket, { type: 'ping' })
      },
      pingEveryMs,
      { name: `ping of ${id}`, kind: 'poll' },
    )
  }

  /** Cancels calls of earlier connections. New calls wait until these have ended, or their grace period has passed. */
  function cancelEarlier(socket: WorkerSocket, callIds: readonly string[]): void {
    const before = earlier
    earlier =
      callIds.length === 0
        ? undefined
        : createEarlierCalls(
            callIds,
            createDelay(clock, cancelGraceMs, { name: `grace of the cancelled calls of ${id}` }),
          )
    // Waits for the earlier calls now include these.
    before?.end()
    for (const callId of callIds) send(socket, { type: 'tool_cancel', callId })
  }

  function detach(reason: string): void {
    clearLongTimeout(clock, pings)
    earlier?.end()
    current = undefined
    failCalls(reason)
  }

  function settle(link: object, message: WorkerMessage): void {
    if (message.type !== 'tool_result' && message.type !== 'tool_error' && message.type !== 'tool_progress') return
    if (message.type !== 'tool_progress' && current === link && earlier?.settle(message.callId) === true) {
      if (message.type === 'tool_result') lateAnswers += 1
      return
    }
    const waiting = pending.get(message.callId)
    if (waiting === undefined || waiting.link !== link) {
      // Late progress is not a late answer.
      if (message.type !== 'tool_progress') lateAnswers += 1
      return
    }
    switch (message.type) {
      case 'tool_result':
        waiting.resolve(message.result)
        break
      case 'tool_error':
        waiting.reject(new ToolCallError(message.code, message.message))
        break
      case 'tool_progress': {
        const { progress, total, message: text } = message
        if (waiting.isCancelled) break
        waiting.call.onProgress({
          progress,
          ...defined({ total, message: text }),
        })
      }
    }
  }

  return {
    id,
    kind: 'websocket',
    isBrowser: options.isBrowser,
    passesInstanceId: true,
    get lateAnswers() {
      return lateAnswers
    },
    get peer() {
      return current?.socket.peer
    },
    admits: (secret) => timingSafeEqual(digestOf(secret), digest),
    attach: (socket, offered, calls = []) => {
      if (endedBy !== undefined) return undefined
      const taken = current
      if (taken !== undefined) {
        // The calls of the old socket fail before any call to the new one.
        failCalls('its connection was taken over.')
        emitEvent('connection.takenOver')
        clearLongTimeout(clock, pings)
      }
      const link = { socket }
      current = link
      if (offered !== undefined) tools = offered
      send(socket, { type: 'welcome', instanceId: id })
      cancelEarlier(socket, calls)
      keepPinging(socket)
      if (taken === undefined) emitEvent('connection.opened')
      else taken.socket.close(WORKER_CLOSE.takenOver, 'Another connection took over.')
      return {
        receive: (message) => {
          settle(link, message)
          if (message.type === 'ping') send(socket, { type: 'pong' })
          if (message.type === 'pong' && current === link) emitEvent('connection.alive')
        },
        closed: () => {
          if (current !== link || endedBy !== undefined) return
          endedBy = 'its connection was closed.'
          detach(endedBy)
          emitLoss(endedBy)
        },
      }
    },
    // A worker may register without naming its tools.
    get toolNames() {
      return tools.length === 0 ? undefined : tools.map(({ name }) => name)
    },
    listTools: () => Promise.resolve(tools),
    callTool: (call) => {
      const link = current
      if (link === undefined) return Promise.reject(goneError(endedBy ?? 'it is not connected.'))
      if (call.signal.aborted) return Promise.reject(toError(call.signal.reason))
      const callId = `call_${life}_${(callCount += 1)}`
      let grace: Delay | undefined
      let cancel: () => void = () => undefined
      return new Promise<ToolCallResult>((resolve, reject) => {
        const waiting: Pending = { call, link, resolve, reject, isCancelled: false }
        pending.set(callId, waiting)
        cancel = () => {
          waiting.isCancelled = true
          // A worker answers when its tool has stopped. After the grace period the call ends without its answer.
          grace = createDelay(clock, cancelGraceMs, { name: `grace of a cancelled call of ${id}` })
          void grace.passed.then(() => reject(toError(call.signal.reason)))
          send(link.socket, { type: 'tool_cancel', callId })
        }
        call.signal.addEventListener('abort', cancel, { once: true })
        send(link.socket, {
          type: 'tool_call',
          callId,
          name: call.name,
          arguments: call.arguments,
          ...defined({ taskId: call.taskId, commandId: call.commandId }),
          ...call.trace,
        })
      }).finally(() => {
        call.signal.removeEventListener('abort', cancel)
        grace?.cancel()
        pending.delete(callId)
      })
    },
    onLost: (onLost) => {
      emitLoss = onLost
      if (endedBy !== undefined) onLost(endedBy)
    },
    connection: {
      timing: { connectTimeoutMs, livenessMs },
      onEvent: (listener) => {
        emitEvent = listener
        if (current !== undefined) listener('connection.opened')
      },
      freed: () => (earlier?.hasEnded === false ? earlier.ended : undefined),
      failCalls,
    },
    close: (why = 'disconnected') => {
      endedBy ??= why === 'silent' ? 'it showed no sign of life.' : 'it was disconnected.'
      const { socket } = current ?? {}
      detach(endedBy)
      socket?.close(WORKER_CLOSE[why], closeReasons[why])
      return Promise.resolve()
    },
  }
}

/** Calls that a worker has in flight from earlier connections. */
interface EarlierCalls {
  readonly hasEnded: boolean
  readonly ended: Promise<void>
  /** A worker has answered a call. False for an unknown call. */
  settle(callId: string): boolean
  /** Ends the wait for them. */
  end(): void
}

function createEarlierCalls(callIds: readonly string[], grace: Delay): EarlierCalls {
  const inFlight = new Set(callIds)
  let hasEnded = false
  let resolve: () => void = () => undefined
  const ended = new Promise<void>((onEnded) => (resolve = onEnded))
  const end = (): void => {
    hasEnded = true
    grace.cancel()
    resolve()
  }
  void grace.passed.then(end)
  return {
    ended,
    get hasEnded() {
      return hasEnded
    },
    settle: (callId) => {
      if (!inFlight.delete(callId)) return false
      if (inFlight.size === 0) end()
      return true
    },
    end,
  }
}

const closeReasons: Readonly<Record<InstanceEnd, string>> = {
  disconnected: 'The instance was disconnected.',
  silent: 'The worker showed no sign of life.',
  goingAway: 'The server goes away.',
}

export function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}
