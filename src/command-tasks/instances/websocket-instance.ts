/**
 * The server's side of a remote worker, without the transport. The state machine of the instance (`machines/instance.ts`) decides when the worker is
 * connected and when its calls fail. This file sends the events to that machine.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { clearLongTimeout, setLongTimeout, systemClock, type Clock, type LongTimer } from '../../system/clock.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { InstanceError, ToolCallError } from '../../errors.js'
import { WORKER_CLOSE, type ServerToWorkerMessage, type WorkerMessage } from '../../protocol/instance-messages.js'
import { toError } from './calls-in-flight.js'
import { createDelay, type Delay } from './delay.js'
import type { Instance, InstanceConnection, InstanceEnd, InstancePeer, ToolCall, ToolDescription } from './instance.js'
import type { ToolCallResult } from '../../protocol/tool-result.js'

export interface WorkerSocket {
  readonly peer?: InstancePeer | undefined
  send(text: string): void
  close(code: number, reason: string): void
}

/** Receives the events of a worker's socket, after the worker has sent `hello`. */
export interface WorkerLink {
  receive(message: Exclude<WorkerMessage, { type: 'hello' }>): void
  /** Handles the end of the socket. Has no effect if a newer socket of the worker has replaced it. */
  closed(): void
}

export interface WebSocketInstance extends Instance {
  readonly passesInstanceId: true
  /** The number of dropped answers. An answer is also dropped if it arrives over another socket than the call was sent over. */
  readonly lateAnswers: number
  /** Whether the secret is right. The comparison takes the same time for every secret. */
  admits(secret: string): boolean
  /**
   * Attaches a socket, which replaces the current one. Returns undefined when the instance has ended.
   * @param tools the tools of the worker, if it sends them again
   * @param calls the ids of calls over earlier connections that the worker is still running; they are cancelled
   */
  attach(socket: WorkerSocket, tools?: readonly ToolDescription[], calls?: readonly string[]): WorkerLink | undefined
}

export interface WebSocketInstanceOptions {
  readonly id: string
  /** The secret of the worker, or its SHA-256 digest in hexadecimal. Only the digest is kept. */
  readonly secret: string | { readonly sha256: string }
  readonly tools?: readonly ToolDescription[] | undefined
  /** Whether the worker runs in a browser. Error messages use it. Default true. */
  readonly isBrowser?: boolean
  /** How long the worker may take to connect, in ms. Default 60000. */
  readonly connectTimeoutMs?: number
  /** How long the worker may leave pings unanswered, in ms. After that it is lost. Default 45000. */
  readonly livenessMs?: number
  /** The interval between pings, in ms. Default 15000. */
  readonly pingEveryMs?: number
  /** How long a cancelled call waits until the worker has stopped its tool, in ms. Default 2000. */
  readonly cancelGraceMs?: number
  readonly clock?: Clock
}

/** Creates a random secret of 256 bits. */
export const createSecret = (): string => randomBytes(32).toString('base64url')

interface Pending {
  readonly call: ToolCall
  readonly link: object
  readonly resolve: (result: ToolCallResult) => void
  readonly reject: (error: Error) => void
  isCancelled: boolean
}

/** Creates the instance of a registered worker. The instance is connected when a socket is attached. */
export function websocketInstance(options: WebSocketInstanceOptions): WebSocketInstance {
  const { id, connectTimeoutMs = 60_000, livenessMs = 45_000, pingEveryMs = 15_000 } = options
  const { clock = systemClock, cancelGraceMs = 2000 } = options
  const { secret } = options
  const digest = typeof secret === 'string' ? digestOf(secret) : Buffer.from(secret.sha256, 'hex')
  /** A part of every call id that is different in each server process. The worker may still be running calls of an earlier process. */
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
      // The socket has closed. Its transport reports that.
    }
  }

  /** Sends pings until another socket replaces this one, or the worker is gone. */
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

  /** Cancels calls that the worker is still running for earlier connections. New calls wait until these have ended, or the grace period has passed. */
  function cancelEarlier(socket: WorkerSocket, callIds: readonly string[]): void {
    const before = earlier
    earlier =
      callIds.length === 0
        ? undefined
        : createEarlierCalls(
            callIds,
            createDelay(clock, cancelGraceMs, { name: `grace of the cancelled calls of ${id}` }),
          )
    // Ends the previous wait. A waiting command then calls `freed` again, and waits for the calls in `callIds`.
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
      // Progress reports that arrive late are not counted.
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
          ...omitUndefined({ total, message: text }),
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
        // Calls over the old socket fail before any call is sent over the new one.
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
    // An empty list means that the worker has not named its tools.
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
          // The worker answers when its tool has stopped. If it does not answer within the grace period, the call ends without an answer.
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
          ...omitUndefined({ taskId: call.taskId, commandId: call.commandId }),
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

/** The calls that a worker is still running for earlier connections. */
interface EarlierCalls {
  readonly hasEnded: boolean
  readonly ended: Promise<void>
  /** Notes the answer to a call. Returns false if the call is not one of these. */
  settle(callId: string): boolean
  /** Stops waiting for these calls. */
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
