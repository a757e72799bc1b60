/** Connects remote workers: `POST /register`, then `hello` on a socket. The transport passes the frames on to this file. */
import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { systemClock, type Clock } from '../clock.js'
import { defined } from '../defined.js'
import { preview } from '../text/preview.js'
import { parseJson } from '../json/parse-json.js'
import { describeIssue, parseInput } from '../protocol/parse.js'
import {
  registerRequestSchema,
  workerMessageSchema,
  WORKER_CLOSE,
  type RegisterResponse,
  type ServerToWorkerMessage,
  type WorkerMessage,
} from '../protocol/instance-messages.js'
import type { StoredInstance } from '../store/store.js'
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
  /** The URL that the worker connects to. */
  readonly websocketUrl: string
}

/**
 * Registers a worker. It is connected when it says `hello`.
 * @throws InvalidInputError for an invalid body; InstanceError for an id that is in use
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

/** A worker that an earlier process has registered may connect again, with its secret. */
export function restoreWorker(
  instances: InstanceManager,
  { id, secretSha256, registration }: StoredInstance,
  options: Omit<WebSocketInstanceOptions, 'id' | 'secret' | 'tools' | 'isBrowser'>,
): void {
  const { tools, isBrowser } = storedRegistrationSchema.parse(registration)
  const own = { tools, ...defined({ isBrowser }) }
  instances.connect(websocketInstance({ ...options, ...own, id, secret: { sha256: secretSha256 } }))
}

/** A worker says its tools again. */
const storedRegistrationSchema = registerRequestSchema
  .pick({ tools: true })
  .extend({ isBrowser: z.boolean().optional() })
  .catch({})

/** The connection of a worker, as its transport reports it. */
export interface WorkerConnection {
  /** Handles a text frame; the next one must wait for the promise, if there is one. Never throws or rejects. */
  receive(text: string): Promise<void> | void
  /** The socket has closed, from either side. */
  closed(): void
}

/** Workers that other servers also know: one may register at one of them, and connect to another. */
export interface SharedWorkers {
  /** Called with each `hello`, before its instance is looked up. Rejects when it cannot be looked up now. */
  find(instanceId: string, secret: string): Promise<void>
  /** Called when it has connected. Resolves when the others know it, or when that takes long; it is welcomed then. Never rejects. */
  announced(instanceId: string): Promise<void>
}

export interface WorkerConnectionOptions {
  readonly clock?: Clock
  /** How long a socket may take to send `hello`, in ms. Default 10000. */
  readonly helloTimeoutMs?: number
  /** Default: no other server knows them. */
  readonly shared?: SharedWorkers | undefined
}

/** Waits for `hello` on a socket and then attaches it to its worker. A malformed frame is answered with `error`; the socket stays open. */
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
    if (link === undefined && !isClosed) refuse('No hello arrived in time.')
  })

  function greet(hello: Hello): Promise<void> | void {
    if (link !== undefined) {
      sendError('PROTOCOL_ERROR', 'This connection has already said hello.')
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

  /** The worker comes back with the same registration. */
  function tryAgain(): void {
    isClosed = true
    helloTimeout.cancel()
    socket.close(WORKER_CLOSE.goingAway, 'The instance cannot be looked up now.')
  }

  function admit({ instanceId, secret, tools, calls }: Hello, to: WorkerSocket): void {
    const instance = instances.get(instanceId)?.instance
    // An unknown id takes as long and is answered with the same error as a wrong secret.
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
      else sendError('PROTOCOL_ERROR', `${parsed.message.type}: expected hello first.`)
    },
    closed: () => {
      isClosed = true
      helloTimeout.cancel()
      link?.closed()
    },
  }
}

/** Sends nothing before it is released; then all, in its order. */
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

/** How deep a frame may be nested, in levels: deeper than anything that is kept of a result. */
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
