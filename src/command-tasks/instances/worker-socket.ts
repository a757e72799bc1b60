/** Connects remote workers: a worker sends `POST /register`, and then `hello` over a WebSocket. The transport passes all frames to this file. */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { systemClock, type Clock } from '../../system/clock.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { preview } from '../../data/preview.js'
import { parseJson } from '../../data/parse-json.js'
import { describeIssue, parseInput } from '../../protocol/parse.js'
import {
  registerRequestSchema,
  workerMessageSchema,
  WORKER_CLOSE,
  type RegisterRequest,
  type RegisterResponse,
  type ServerToWorkerMessage,
  type WorkerMessage,
} from '../../protocol/instance-messages.js'
import type { StoredInstance } from '../../store/store.js'
import { createDelay } from './delay.js'
import type { Instance } from './instance.js'
import type { InstanceManager } from './instance-manager.js'
import {
  createSecret,
  websocketInstance,
  type WebSocketInstance,
  type WebSocketInstanceOptions,
  type WorkerLink,
  type WorkerSocket,
} from './websocket-instance.js'

export interface RegistrationOptions extends Omit<WebSocketInstanceOptions, 'id' | 'secret' | 'tools'> {
  /** The URL of the WebSocket that the worker connects to. */
  readonly websocketUrl: string
}

/**
 * Registers a worker. The worker is connected after it has sent `hello`.
 * @throws INVALID_INPUT for an invalid body
 * @throws AgentTasksError when the id is in use
 */
export function registerWorker(
  instances: InstanceManager,
  body: unknown,
  { websocketUrl, ...options }: RegistrationOptions,
): RegisterResponse {
  const { instanceId = `worker_${randomUUID()}`, tools } = parseInput(registerRequestSchema, body ?? {}, 'body')
  const secret = createSecret()
  instances.connect(websocketInstance({ ...options, id: instanceId, secret, tools }))
  return { instanceId, secret, websocketUrl }
}

/** Finds the registration of a restarted worker by its id and secret. Returns undefined if the server does not have it. */
export function findRegistration(
  instances: InstanceManager,
  { instanceId, secret }: RegisterRequest,
  { websocketUrl }: Pick<RegistrationOptions, 'websocketUrl'>,
): RegisterResponse | undefined {
  if (instanceId === undefined || secret === undefined) return undefined
  const instance = instances.get(instanceId)?.instance
  return isWorker(instance) && instance.admits(secret) ? { instanceId, secret, websocketUrl } : undefined
}

/** Registers a worker of an earlier process again, so that it can reconnect with its secret. */
export function restoreWorker(
  instances: InstanceManager,
  { id, secretSha256, registration }: StoredInstance,
  options: Omit<WebSocketInstanceOptions, 'id' | 'secret' | 'tools' | 'isBrowser'>,
): void {
  const { tools, isBrowser } = storedRegistrationSchema.parse(registration)
  const own = { tools, ...omitUndefined({ isBrowser }) }
  instances.connect(websocketInstance({ ...options, ...own, id, secret: { sha256: secretSha256 } }))
}

/** The stored part of a registration. If it is invalid, it is ignored, because the worker sends its tools again. */
const storedRegistrationSchema = registerRequestSchema
  .pick({ tools: true })
  .extend({ isBrowser: z.boolean().optional() })
  .strip()
  .catch({})

/** Receives the events of a worker's socket from the transport. */
export interface WorkerConnection {
  /** Handles a text frame. If it returns a promise, the transport must await it before the next frame. Never throws or rejects. */
  receive(text: string): Promise<void> | void
  /** Handles the end of the socket, no matter which side has closed it. */
  closed(): void
}

/** Workers that several servers share. A worker may register at one server and connect to another. */
export interface SharedWorkers {
  /** Called with each `hello`, before the instance is looked up in this process. Rejects when the look-up is impossible now. */
  find(instanceId: string, secret: string): Promise<void>
  /**
   * Called when a worker has connected. Resolves when the other servers know this, or after a time limit. The worker receives `welcome` after that.
   * Never rejects.
   */
  announced(instanceId: string): Promise<void>
}

export interface WorkerConnectionOptions {
  readonly clock?: Clock
  /** How long a socket may take to send `hello`, in ms. After that it is closed. Default 10000. */
  readonly helloTimeoutMs?: number
  /** The workers that several servers share. Default: workers connect only to the server where they have registered. */
  readonly shared?: SharedWorkers | undefined
}

/** Waits for `hello` on a socket, and then attaches the socket to its worker. A malformed frame is answered with `error`, and the socket stays open. */
export function acceptWorker(
  instances: InstanceManager,
  socket: WorkerSocket,
  options: WorkerConnectionOptions = {},
): WorkerConnection {
  const { clock = systemClock, helloTimeoutMs = 10_000 } = options
  const helloTimeout = createDelay(clock, helloTimeoutMs)
  let link: WorkerLink | undefined
  let isClosed = false

  const isOpen = (): boolean => !isClosed
  const send = (message: ServerToWorkerMessage): void => socket.send(JSON.stringify(message))
  const sendError = (code: string, error: string): void => send({ type: 'error', message: error, error, code })
  const refuse = (error: string): void => {
    isClosed = true
    sendError('UNAUTHORIZED', error)
    socket.close(WORKER_CLOSE.refused, error)
  }
  void helloTimeout.passed.then(() => {
    if (link === undefined && !isClosed) refuse(`No hello arrived within ${helloTimeoutMs} ms.`)
  })

  function greet(hello: Hello): Promise<void> | void {
    if (link !== undefined) {
      sendError('PROTOCOL_ERROR', 'hello: this connection has already sent one.')
      return
    }
    const { shared } = options
    if (shared === undefined) admit(hello, socket)
    else return greetShared(hello, shared)
  }

  async function greetShared(hello: Hello, shared: SharedWorkers): Promise<void> {
    try {
      await shared.find(hello.instanceId, hello.secret)
    } catch {
      if (isOpen()) tryAgain()
      return
    }
    if (!isOpen()) return
    const held = holdFrames(socket)
    admit(hello, held)
    if (link !== undefined) await shared.announced(hello.instanceId)
    if (isOpen()) held.release()
  }

  /** Closes the socket in a way that makes the worker reconnect with the same registration. */
  function tryAgain(): void {
    isClosed = true
    helloTimeout.cancel()
    socket.close(WORKER_CLOSE.goingAway, 'The server cannot look up this instance now. Connect again later.')
  }

  function admit({ instanceId, secret, tools, calls }: Hello, to: WorkerSocket): void {
    const instance = instances.get(instanceId)?.instance
    // An unknown id takes the same time and gets the same error as a wrong secret. Otherwise an attacker could find out which ids exist.
    const isAdmitted = (isWorker(instance) ? instance : unknownWorker).admits(secret)
    if (isAdmitted && isWorker(instance)) link = instance.attach(to, tools, calls)
    if (link === undefined) refuse('Unknown instance or wrong secret. Register again.')
    else helloTimeout.cancel()
  }

  return {
    receive: (text) => {
      if (isClosed) return
      const parsed = parseFrame(text)
      if ('problem' in parsed) sendError(parsed.code, parsed.problem)
      else if (parsed.message.type === 'hello') return greet(parsed.message)
      else if (link !== undefined) link.receive(parsed.message)
      else if (parsed.message.type === 'ping') send({ type: 'pong' })
      else sendError('PROTOCOL_ERROR', `${parsed.message.type}: expected hello as the first message of a connection.`)
    },
    closed: () => {
      isClosed = true
      helloTimeout.cancel()
      link?.closed()
    },
  }
}

/** Holds frames back until `release`, which sends them in order. */
function holdFrames(socket: WorkerSocket): WorkerSocket & { readonly release: () => void } {
  const held: string[] = []
  let isHeld = true
  return {
    peer: socket.peer,
    send: (text) => {
      if (isHeld) held.push(text)
      else socket.send(text)
    },
    close: (code, reason) => {
      held.length = 0
      socket.close(code, reason)
    },
    release: () => {
      isHeld = false
      for (const text of held.splice(0)) socket.send(text)
    },
  }
}

type Hello = Extract<WorkerMessage, { type: 'hello' }>

/** The maximum nesting of a frame, in levels. Results that are kept have at most 100 levels. */
const MAX_NESTING = 200

function parseFrame(text: string): { message: WorkerMessage } | { code: string; problem: string } {
  const parsed = parseJson(text, MAX_NESTING)
  if ('error' in parsed) {
    return parsed.code === 'TOO_DEEP'
      ? { code: parsed.code, problem: parsed.message }
      : { code: 'INVALID_JSON', problem: `frame: got ${preview(text)}, expected JSON.` }
  }
  const { value } = parsed
  const result = workerMessageSchema.safeParse(value)
  if (result.success) return { message: result.data }
  const { field, received, expected } = describeIssue(result.error, value, 'message')
  return { code: 'INVALID_MESSAGE', problem: `${field}: got ${preview(received)}, expected ${expected}.` }
}

const unknownWorker: Pick<WebSocketInstance, 'admits'> = websocketInstance({ id: 'unknown', secret: createSecret() })

function isWorker(instance: Instance | undefined): instance is WebSocketInstance {
  return instance !== undefined && 'attach' in instance
}
