/** How a remote worker gets in: `POST /register`, then `hello` on a socket. Whatever carries the frames hands them over here. */
import { randomUUID } from 'node:crypto'
import { systemClock, type Clock } from '../clock.js'
import { preview } from '../preview.js'
import { describeIssue, parseInput } from '../protocol/parse.js'
import {
  registerRequestSchema,
  workerMessageSchema,
  WORKER_CLOSE,
  type RegisterResponse,
  type ServerToWorkerMessage,
  type WorkerMessage,
} from '../protocol/instance-messages.js'
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
  /** Where the worker is to connect. */
  readonly websocketUrl: string
}

/**
 * Registers a worker: it is known from now on, and connected when it says `hello`.
 * @throws InvalidInputError for a body that does not fit, InstanceError for an id that is in use
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

/** What carries a worker's frames reports them here. */
export interface WorkerConnection {
  /** A text frame. Never throws. */
  receive(text: string): void
  /** The socket has closed, whoever closed it. */
  closed(): void
}

export interface WorkerConnectionOptions {
  readonly clock?: Clock
  /** How long a socket may take to say `hello`, in ms. Default 10000. */
  readonly helloTimeoutMs?: number
}

/** Lets a socket say who it is, and then be that worker's. What is malformed is answered with `error`, and the socket stays open. */
export function acceptWorker(
  instances: InstanceManager,
  socket: WorkerSocket,
  options: WorkerConnectionOptions = {},
): WorkerConnection {
  const { clock = systemClock, helloTimeoutMs = 10_000 } = options
  const patience = createDelay(clock, helloTimeoutMs)
  let link: WorkerLink | undefined
  let isClosed = false

  const tell = (message: ServerToWorkerMessage): void => socket.send(JSON.stringify(message))
  const complain = (code: string, error: string): void => tell({ type: 'error', message: error, error, code })
  const refuse = (error: string): void => {
    isClosed = true
    complain('UNAUTHORIZED', error)
    socket.close(WORKER_CLOSE.refused, error)
  }
  void patience.passed.then(() => {
    if (link === undefined && !isClosed) refuse('No hello came in time.')
  })

  function greet({ instanceId, secret, tools }: Extract<WorkerMessage, { type: 'hello' }>): void {
    if (link !== undefined) {
      complain('PROTOCOL_ERROR', 'This connection has said hello already.')
      return
    }
    const instance = instances.get(instanceId)?.instance
    // An id that is unknown takes as long, and sounds the same, as a wrong secret.
    const isRight = (isWorker(instance) ? instance : nobody).admits(secret)
    if (isRight && isWorker(instance)) link = instance.attach(socket, tools)
    if (link === undefined) refuse('Unknown instance or wrong secret. Register again.')
    else patience.cancel()
  }

  return {
    receive: (text) => {
      if (isClosed) return
      const parsed = parseFrame(text)
      if ('problem' in parsed) complain(parsed.code, parsed.problem)
      else if (parsed.message.type === 'hello') greet(parsed.message)
      else if (link !== undefined) link.receive(parsed.message)
      else if (parsed.message.type === 'ping') tell({ type: 'pong' })
      else complain('PROTOCOL_ERROR', `${parsed.message.type}: expected hello first.`)
    },
    closed: () => {
      isClosed = true
      patience.cancel()
      link?.closed()
    },
  }
}

function parseFrame(text: string): { message: WorkerMessage } | { code: string; problem: string } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { code: 'INVALID_JSON', problem: `frame: got ${preview(text)}, expected JSON.` }
  }
  const result = workerMessageSchema.safeParse(value)
  if (result.success) return { message: result.data }
  const { field, received, expected } = describeIssue(result.error, value, 'message')
  return { code: 'INVALID_MESSAGE', problem: `${field}: got ${preview(received)}, expected ${expected}.` }
}

const nobody: Pick<WebSocketInstance, 'admits'> = websocketInstance({ id: 'nobody', secret: createSecret() })

function isWorker(instance: Instance | undefined): instance is WebSocketInstance {
  return instance !== undefined && 'attach' in instance
}
