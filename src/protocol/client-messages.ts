/**
 * What a client and the server say to each other over the client socket (seed 004): one JSON object a frame, one schema for each message.
 *
 * The server greets with `welcome`. Where tokens are asked for and the upgrade carried none, the first message must be `authenticate`.
 * A request may carry `requestId`; its answer repeats it. Pushed messages carry none.
 */
import { z } from 'zod'
import {
  submitErrorCodes,
  taskCompleteSchema,
  taskProgressSchema,
  taskSchema,
  taskStatusSchema,
  taskSummarySchema,
  type TaskCompleteMessage,
} from './command-tasks.js'
import { taskSubmitSchema } from './task-submission.js'

const id = z.string().min(1).max(256)
const requestId = z
  .union([z.string().max(256), z.number()], 'a string or a number')
  .optional()
  .describe('Chosen by the client; the answer repeats it.')
const code = z.string().describe('Stable and machine-readable.')

/** The most tasks a list answers at once. */
export const MAX_LIST_LIMIT = 1000
/** How many tasks a list answers when it is not told. */
export const DEFAULT_LIST_LIMIT = 100

/** Where the next page of a list begins. */
export const cursorSchema = z
  .string()
  .regex(/^[\w-]{1,128}$/, 'a nextCursor of an earlier answer')
  .describe('`nextCursor` of the page before. Opaque; it is good until the server that gave it ends.')

// Requests

/** The first message of a client that could not send a header. */
export const authenticateSchema = z.object({
  type: z.literal('authenticate'),
  requestId,
  token: z.string().min(1).max(4096),
})

/** Queues a task, and subscribes to it before its first event. */
export const taskSubmitRequestSchema = taskSubmitSchema().extend({ type: z.literal('task_submit'), requestId })

/** Lists tasks, newest first. */
export const taskListRequestSchema = z.object({
  type: z.literal('task_list'),
  requestId,
  instanceId: id.optional(),
  status: taskStatusSchema.optional(),
  limit: z.number().int().min(1).max(MAX_LIST_LIMIT).optional(),
  cursor: cursorSchema.optional(),
})

/** Asks for one task, whole. */
export const taskStatusRequestSchema = z.object({ type: z.literal('task_status'), requestId, taskId: id })

/** Ends a task that has not ended. */
export const taskCancelRequestSchema = z.object({ type: z.literal('task_cancel'), requestId, taskId: id })

/** Asks to be told of one task. */
export const subscribeTaskSchema = z.object({ type: z.literal('subscribe_task'), requestId, taskId: id })

/** Asks to be told of every task of an instance, also of one that is not there yet. */
export const subscribeInstanceSchema = z.object({ type: z.literal('subscribe_instance'), requestId, instanceId: id })

export const unsubscribeTaskSchema = z.object({ type: z.literal('unsubscribe_task'), requestId, taskId: id })
export const unsubscribeInstanceSchema = z.object({
  type: z.literal('unsubscribe_instance'),
  requestId,
  instanceId: id,
})

/** Everything a client may say. */
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

/** A checked message of a client. */
export type ClientMessage = z.output<typeof clientMessageSchema>
/** A message as a client may write it: what has a default may be left out. */
export type ClientMessageInput = z.input<typeof clientMessageSchema>
export type RequestId = z.infer<typeof requestId>

// Answers

/** The first message of the server. */
export const welcomeSchema = z.object({
  type: z.literal('welcome'),
  sessionId: z.string(),
  serverVersion: z.string(),
  message: z.string(),
  authenticationRequired: z.boolean().describe('Whether `authenticate` must come next.'),
})

export const authenticateResponseSchema = z.object({
  type: z.literal('authenticate_response'),
  requestId,
  success: z.boolean(),
  error: z.string().optional(),
  code: code.optional(),
})

/** Why a submit was refused over the wire; `SHUTTING_DOWN` while the server drains, `TASKS_DISABLED` when it takes none. */
export const refusalCodes = [...submitErrorCodes, 'SHUTTING_DOWN', 'TASKS_DISABLED', 'TOO_MANY_SUBSCRIPTIONS'] as const
export const refusalCodeSchema = z.enum(refusalCodes)
export type RefusalCode = z.infer<typeof refusalCodeSchema>

export const taskSubmitResponseSchema = z.object({
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
    .describe('From 1, among the tasks of the lane that have not ended.'),
  error: z.string().optional(),
  code: refusalCodeSchema.optional(),
})

export const taskListResponseSchema = z.object({
  type: z.literal('task_list_response'),
  requestId,
  tasks: z.array(taskSummarySchema),
  nextCursor: cursorSchema.optional(),
})

export const taskStatusResponseSchema = z.object({
  type: z.literal('task_status_response'),
  requestId,
  task: taskSchema.nullable(),
  error: z.string().optional(),
})

export const taskCancelResponseSchema = z.object({
  type: z.literal('task_cancel_response'),
  requestId,
  taskId: z.string(),
  success: z.boolean(),
  error: z.string().optional(),
  code: code.optional(),
})

/**
 * To `subscribe_task`: a snapshot, after which come the events that follow it, or the `task_complete` of a task that is over.
 * `task` is null when the server does not know the task (any more); nothing was subscribed then.
 * To `subscribe_instance`: the id alone.
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

export const unsubscribeAckSchema = z.object({
  type: z.literal('unsubscribe_ack'),
  requestId,
  taskId: z.string().optional(),
  instanceId: z.string().optional(),
})

/** Says what is wrong with a message; the connection stays open. */
export const errorMessageSchema = z.object({
  type: z.literal('error'),
  requestId,
  message: z.string().describe('One sentence: which field, what came, what was expected.'),
  error: z.string().describe('The kind of error in a few words.'),
  code,
})

/** Everything the server says: answers, and the pushed `task_progress` and `task_complete`. */
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
])

/** Anything the server says, told apart by `type`. */
export type ServerMessage =
  Exclude<z.infer<typeof serverMessageSchema>, { type: 'task_complete' }> | TaskCompleteMessage
export type SubscribeAckMessage = z.infer<typeof subscribeAckSchema>

/** Codes of `error` messages, and of REST errors where they say the same. */
export const errorCodes = [
  'MALFORMED_JSON',
  'TOO_DEEP',
  'UNKNOWN_MESSAGE_TYPE',
  'INVALID_MESSAGE',
  'INVALID_TASK',
  'UNAUTHORIZED',
  'RATE_LIMITED',
  'TOO_MANY_SUBSCRIPTIONS',
  'INVALID_CURSOR',
  'TASK_NOT_FOUND',
  'TASK_ENDED',
  'INTERNAL_ERROR',
] as const

/** Why the server closes a client's socket: codes of WebSocket. */
export const CLIENT_CLOSE = {
  /** The server goes away. */
  goingAway: 1001,
  /** No right token, or none in time. */
  refused: 1008,
  /** A frame was larger than allowed. */
  tooBig: 1009,
  /** It reads so slowly that what waits for it is too much. Connect again and subscribe again. */
  tryAgainLater: 1013,
} as const
