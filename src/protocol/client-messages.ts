/**
 * The messages of the client socket. Each frame is one JSON object, and each message has one schema.
 *
 * The server sends `welcome` first. If the server requires a token and the upgrade request had none, the first message of the client must be
 * `authenticate`. A request may have a `requestId`, which the answer repeats. Messages that the server pushes have no `requestId`.
 */
import { z } from 'zod'
import {
  instancePauseSchema,
  submitErrorCodes,
  taskCompleteSchema,
  taskProgressSchema,
  taskSchema,
  taskStatusFilterSchema,
  taskSummarySchema,
  type TaskCompleteMessage,
} from './command-tasks.js'
import { receivedTaskSchema } from './task-submission.js'

const id = z.string().min(1).max(256)
const requestId = z
  .union([z.string().max(256), z.number()], 'a string or a number')
  .optional()
  .describe('Chosen by the client; the answer repeats it.')
const code = z.string().describe('Stable and machine-readable.')

/** The maximum `limit` of a list. */
export const MAX_LIST_LIMIT = 1000
/** The default `limit` of a list. */
export const DEFAULT_LIST_LIMIT = 100

/** The position in a list at which the next page starts. */
export const cursorSchema = z
  .string()
  .regex(/^[\w-]{1,128}$/, 'the nextCursor of an earlier answer')
  .describe(
    'The `nextCursor` of the previous page. Its content has no meaning for clients. It is valid until the server ends.',
  )

// Requests

/** The first message of a client whose upgrade request had no token. */
export const authenticateSchema = z.object({
  type: z.literal('authenticate'),
  requestId,
  token: z.string().min(1).max(4096),
})

/** Queues a task. The connection is subscribed to the task before its first event. */
const taskSubmitRequestSchema = receivedTaskSchema().extend({ type: z.literal('task_submit'), requestId })

/** Lists tasks, newest first. */
const taskListRequestSchema = z.object({
  type: z.literal('task_list'),
  requestId,
  instanceId: id.optional(),
  status: taskStatusFilterSchema.optional(),
  limit: z.number().int().min(1).max(MAX_LIST_LIMIT).optional(),
  cursor: cursorSchema.optional(),
})

/** Requests one task. */
const taskStatusRequestSchema = z.object({ type: z.literal('task_status'), requestId, taskId: id })

/** Cancels a task. */
const taskCancelRequestSchema = z.object({ type: z.literal('task_cancel'), requestId, taskId: id })

/** Subscribes to one task. */
const subscribeTaskSchema = z.object({ type: z.literal('subscribe_task'), requestId, taskId: id })

/** Subscribes to all tasks of an instance. The instance need not be connected yet. */
const subscribeInstanceSchema = z.object({ type: z.literal('subscribe_instance'), requestId, instanceId: id })

const unsubscribeTaskSchema = z.object({ type: z.literal('unsubscribe_task'), requestId, taskId: id })
const unsubscribeInstanceSchema = z.object({
  type: z.literal('unsubscribe_instance'),
  requestId,
  instanceId: id,
})

/** All messages of a client. */
export const clientMessageSchema = z.discriminatedUnion('type', [
  authenticateSchema,
  taskSubmitRequestSchema,
  taskListRequestSchema,
  taskStatusRequestSchema,
  taskCancelRequestSchema,
  subscribeTaskSchema,
  subscribeInstanceSchema,
  unsubscribeTaskSchema,
  unsubscribeInstanceSchema,
])

/** A parsed message of a client. */
export type ClientMessage = z.output<typeof clientMessageSchema>
/** A message as a client may write it: fields with a default may be absent. */
export type ClientMessageInput = z.input<typeof clientMessageSchema>
export type RequestId = z.infer<typeof requestId>

// Answers

/** The first message of the server. */
const welcomeSchema = z.object({
  type: z.literal('welcome'),
  sessionId: z.string(),
  serverVersion: z.string(),
  message: z.string(),
  authenticationRequired: z.boolean().describe('Whether the client must send `authenticate` next.'),
})

const authenticateResponseSchema = z.object({
  type: z.literal('authenticate_response'),
  requestId,
  success: z.boolean(),
  error: z.string().optional(),
  code: code.optional(),
})

/** The codes with which the server refuses a task: those of the task manager, and those of the server itself. */
const refusalCodes = [...submitErrorCodes, 'SHUTTING_DOWN', 'TASKS_DISABLED', 'TOO_MANY_SUBSCRIPTIONS'] as const
export const refusalCodeSchema = z.enum(refusalCodes)
export type RefusalCode = z.infer<typeof refusalCodeSchema>

const taskSubmitResponseSchema = z.object({
  type: z.literal('task_submit_response'),
  requestId,
  success: z.boolean(),
  status: z.enum(['accepted', 'rejected']),
  taskId: z.string().optional(),
  queuePosition: z
    .number()
    .int()
    .min(1)
    .optional()
    .describe('The place of the task among the queued and running tasks of the instance, from 1.'),
  error: z.string().optional(),
  code: refusalCodeSchema.optional(),
})

const taskListResponseSchema = z.object({
  type: z.literal('task_list_response'),
  requestId,
  tasks: z.array(taskSummarySchema),
  nextCursor: cursorSchema.optional(),
})

const taskStatusResponseSchema = z.object({
  type: z.literal('task_status_response'),
  requestId,
  task: taskSchema.nullable(),
  error: z.string().optional(),
})

const taskCancelResponseSchema = z.object({
  type: z.literal('task_cancel_response'),
  requestId,
  taskId: z.string(),
  success: z.boolean(),
  error: z.string().optional(),
  code: code.optional(),
})

/**
 * The answer to a subscription.
 *
 * For `subscribe_task` it has a snapshot of the task. Later events follow it, and `task_complete` if the task has already ended. `task` is null
 * when the server does not have the task; then there is no subscription. For `subscribe_instance` it has only the id of the instance.
 */
export const subscribeAckSchema = z.object({
  type: z.literal('subscribe_ack'),
  requestId,
  taskId: z.string().optional(),
  task: taskSchema.nullable().optional(),
  instanceId: z.string().optional(),
  error: z.string().optional(),
  code: code.optional(),
})

const unsubscribeAckSchema = z.object({
  type: z.literal('unsubscribe_ack'),
  requestId,
  taskId: z.string().optional(),
  instanceId: z.string().optional(),
})

/** The answer to an invalid message. The connection stays open. */
const errorMessageSchema = z.object({
  type: z.literal('error'),
  requestId,
  message: z.string().describe('One sentence with the field, the received value, and the expected one.'),
  error: z.string().describe('The kind of error in a few words.'),
  code,
})

/** All messages of the server: answers to requests, and the pushed `task_progress`, `task_complete` and `instance_pause`. */
export const serverMessageSchema = z.discriminatedUnion('type', [
  welcomeSchema,
  authenticateResponseSchema,
  taskSubmitResponseSchema,
  taskListResponseSchema,
  taskStatusResponseSchema,
  taskCancelResponseSchema,
  subscribeAckSchema,
  unsubscribeAckSchema,
  errorMessageSchema,
  taskProgressSchema,
  taskCompleteSchema,
  instancePauseSchema,
])

/** A message of the server, discriminated by `type`. */
export type ServerMessage =
  Exclude<z.infer<typeof serverMessageSchema>, { type: 'task_complete' }> | TaskCompleteMessage
export type SubscribeAckMessage = z.infer<typeof subscribeAckSchema>

/** The codes of `error` messages. REST uses the same codes. */
export const errorCodes = [
  /** The message is not JSON. */
  'MALFORMED_JSON',
  /** The message is nested deeper than `limits.nesting`. */
  'TOO_DEEP',
  /** The server does not know the `type` of the message. */
  'UNKNOWN_MESSAGE_TYPE',
  /** A field of the message is missing or invalid. */
  'INVALID_MESSAGE',
  /** A field of the submitted task is missing or invalid. */
  'INVALID_TASK',
  /** The token is missing or invalid. */
  'UNAUTHORIZED',
  /** The client sent more requests or frames in one minute than `limits` of the server allow. */
  'RATE_LIMITED',
  /** The connection has reached `limits.subscriptionsPerClient`. */
  'TOO_MANY_SUBSCRIPTIONS',
  /** The cursor of a list does not come from this server. */
  'INVALID_CURSOR',
  /** The server has no task with this id. */
  'TASK_NOT_FOUND',
  /** The task has ended and cannot be cancelled. */
  'TASK_ENDED',
  /** The server failed. Its log has the reason. */
  'INTERNAL_ERROR',
] as const

/** WebSocket close codes of a client's socket. */
export const CLIENT_CLOSE = {
  /** The server shuts down. */
  goingAway: 1001,
  /** The client sent no valid token in time. */
  refused: 1008,
  /** A frame exceeded the size limit. */
  tooBig: 1009,
  /** The client has too much unread data. It should reconnect and subscribe again. */
  tryAgainLater: 1013,
} as const
