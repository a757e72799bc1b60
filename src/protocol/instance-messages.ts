/**
 * What a remote worker and the server say to each other: `POST /register`, then the frames of the worker's socket. One JSON object a
 * frame.
 *
 * The worker opens the socket at `websocketUrl` and says `hello`; `welcome` means that calls may come. A call ends with one `tool_result`
 * or `tool_error`, also after `tool_cancel`: the worker answers when the tool has really stopped.
 */
import { z } from 'zod'
import { callProgressSchema, toolCallResultSchema, toolDescriptionSchema } from './tool-calls.js'

const id = z.string().min(1).max(256)
const callId = z.string().min(1).max(64)
const tools = z.array(toolDescriptionSchema).max(1000)

/** The body of `POST /register`. */
export const registerRequestSchema = z.object({
  instanceId: id
    .regex(/^[\w.:-]+$/, 'letters, digits, dots, colons, dashes and underscores')
    .optional()
    .describe('The id the worker wants; refused while it is in use. Without one the server makes one.'),
  tools: tools.optional().describe('What the worker can do; may also come with hello.'),
})

/** Its answer. Whoever knows the secret is the worker; it is told once. */
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
  secret: z.string().min(1).max(1024),
  tools: tools.optional(),
})

const toolResultSchema = z.object({ type: z.literal('tool_result'), callId, result: toolCallResultSchema })

const toolErrorSchema = z.object({
  type: z.literal('tool_error'),
  callId,
  code: z
    .union([z.string().min(1).max(256), z.number().int()])
    .describe('The tool’s own code; JSON-RPC numbers are fine.'),
  message: z.string(),
})

const toolProgressSchema = callProgressSchema.extend({ type: z.literal('tool_progress'), callId })

const pingSchema = z.object({ type: z.literal('ping') })
const pongSchema = z.object({ type: z.literal('pong') })

/** What a worker says. */
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
})

const toolCancelSchema = z.object({ type: z.literal('tool_cancel'), callId, reason: z.string().optional() })

const workerErrorSchema = z.object({
  type: z.literal('error'),
  message: z.string(),
  error: z.string(),
  code: z.string(),
})

/** What the server says to a worker. */
export const serverToWorkerSchema = z.discriminatedUnion('type', [
  workerWelcomeSchema,
  toolCallSchema,
  toolCancelSchema,
  pingSchema,
  pongSchema,
  workerErrorSchema,
])

export type ServerToWorkerMessage = z.infer<typeof serverToWorkerSchema>

/** Why the server closes a worker's socket: application codes of WebSocket. */
export const WORKER_CLOSE = {
  /** No right `hello` in time, or a wrong one. */
  refused: 4401,
  /** Another socket said a right `hello` for this instance. The worker that hears it stays away. */
  takenOver: 4409,
  /** The server goes away. The worker connects again. */
  goingAway: 1001,
  /** No pong for too long: the instance was lost. The worker connects again; it must register again, too. */
  silent: 4408,
  /** The instance was disconnected on purpose. The worker stays away. */
  disconnected: 4410,
} as const
