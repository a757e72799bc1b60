/**
 * The messages between a remote worker and the server: `POST /register`, and then the frames of the worker's socket, one JSON object each.
 *
 * The worker opens the socket at `websocketUrl` and sends `hello`. The server answers `welcome`, and sends calls from then on. The worker ends
 * each call with one `tool_result` or `tool_error`, when the tool has stopped. This holds for a cancelled call, too.
 */
import { z } from 'zod'
import { jsonBytes } from '../data/json-size.js'
import { strictObject } from './strict-object.js'
import { callProgressSchema, toolCallResultSchema, toolDescriptionSchema } from './tool-calls.js'

const id = z.string().min(1).max(256)
const callId = z.string().min(1).max(64)
const secret = z.string().min(1).max(1024)
/** The maximum size of the tool descriptions of a worker, in bytes of JSON. `GET /instances` sends them to every client. */
const MAX_TOOLS_BYTES = 256 * 1024
/** The maximum number of running calls of earlier connections that a worker lists in its `hello`. */
export const MAX_NAMED_CALLS = 100
const tools = z
  .array(toolDescriptionSchema)
  .max(1000)
  .refine(
    (described) => jsonBytes(described, MAX_TOOLS_BYTES) <= MAX_TOOLS_BYTES,
    `at most ${MAX_TOOLS_BYTES} bytes of JSON`,
  )

/** The body of `POST /register`. */
export const registerRequestSchema = strictObject({
  instanceId: id
    .regex(/^[\w.:-]+$/, 'letters, digits, dots, colons, dashes and underscores')
    .optional()
    .describe('The id of the instance. An id that is in use is refused. Default: the server generates one.'),
  tools: tools.optional().describe('The tools of the worker. They can also be sent with `hello`.'),
  secret: secret
    .optional()
    .describe(
      'The secret of an earlier registration of `instanceId`. If it fits a registration that the server still has, the answer repeats that registration. ' +
        'Otherwise this is a new registration: the answer has a new secret, and an id that is in use is refused.',
    ),
})

/** The answer of `POST /register`. The worker proves its identity with the secret. */
export const registerResponseSchema = z.object({
  instanceId: id,
  secret: z.string(),
  websocketUrl: z.string(),
})

export type RegisterRequest = z.input<typeof registerRequestSchema>
export type RegisterResponse = z.infer<typeof registerResponseSchema>

const helloSchema = z.object({
  type: z.literal('hello'),
  instanceId: id,
  secret,
  tools: tools.optional(),
  calls: z
    .array(callId)
    .max(MAX_NAMED_CALLS)
    .optional()
    .describe(
      'The ids of calls of earlier connections that are still running. The server cancels them, and starts no call before they have ended.',
    ),
})

const toolResultSchema = z.object({ type: z.literal('tool_result'), callId, result: toolCallResultSchema })

const toolErrorSchema = z.object({
  type: z.literal('tool_error'),
  callId,
  code: z
    .union([z.string().min(1).max(256), z.number().int()])
    .describe('The error code of the tool: a text, or a number as in JSON-RPC.'),
  message: z.string(),
})

const toolProgressSchema = callProgressSchema.extend({ type: z.literal('tool_progress'), callId })

const pingSchema = z.object({ type: z.literal('ping') })
const pongSchema = z.object({ type: z.literal('pong') })

/** All messages from a worker to the server. */
export const workerMessageSchema = z.discriminatedUnion('type', [
  helloSchema,
  toolResultSchema,
  toolErrorSchema,
  toolProgressSchema,
  pingSchema,
  pongSchema,
])

export type WorkerMessage = z.infer<typeof workerMessageSchema>

const workerWelcomeSchema = z.object({ type: z.literal('welcome'), instanceId: id })

const toolCallSchema = z.object({
  type: z.literal('tool_call'),
  callId,
  name: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  taskId: z.string().optional(),
  commandId: z.string().optional(),
  traceparent: z
    .string()
    .optional()
    .describe('The span of the call (W3C Trace Context), from a server with telemetry.'),
  tracestate: z.string().optional(),
})

const toolCancelSchema = z.object({ type: z.literal('tool_cancel'), callId, reason: z.string().optional() })

const workerErrorSchema = z.object({
  type: z.literal('error'),
  message: z.string(),
  error: z.string(),
  code: z.string(),
})

/** All messages from the server to a worker. */
export const serverToWorkerSchema = z.discriminatedUnion('type', [
  workerWelcomeSchema,
  toolCallSchema,
  toolCancelSchema,
  pingSchema,
  pongSchema,
  workerErrorSchema,
])

export type ServerToWorkerMessage = z.infer<typeof serverToWorkerSchema>

/** WebSocket close codes of a worker's socket. */
export const WORKER_CLOSE = {
  /** The worker sent no valid `hello` in time. */
  refused: 4401,
  /** Another socket sent a valid `hello` for this instance. The worker must not reconnect. */
  takenOver: 4409,
  /** The server shuts down. The worker should reconnect. */
  goingAway: 1001,
  /** The worker sent no `pong` in time, so its instance was disconnected. The worker should register again and reconnect. */
  silent: 4408,
  /** The instance was disconnected on purpose. The worker must not reconnect. */
  disconnected: 4410,
} as const
