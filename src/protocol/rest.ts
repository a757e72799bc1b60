/** The requests and responses of the REST routes. The OpenAPI document and the validation are derived from these schemas. */
import { z } from 'zod'
import { cursorSchema, DEFAULT_LIST_LIMIT, MAX_LIST_LIMIT } from './client-messages.js'
import { taskSchema, taskStatusSchema, taskSummarySchema } from './command-tasks.js'
import { toolDescriptionSchema } from './tool-calls.js'

/** The body of every error. */
export const restErrorSchema = z.object({
  error: z.string().describe('The error, for people.'),
  code: z.string().describe('The error, for programs. Stable.'),
  details: z.unknown().optional(),
})

export type RestError = z.infer<typeof restErrorSchema>

/** The `:id` of a route. */
export const taskParamsSchema = z.object({ id: z.string().min(1).max(256) })

/** The parameters of the route of a result. */
export const resultParamsSchema = taskParamsSchema.extend({
  index: z
    .string()
    .regex(/^\d{1,4}$/, 'an index from 0')
    .describe('The index of the command, from 0.'),
})

/** The headers of `POST /tasks`. */
export const submitHeadersSchema = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, '1 to 255 visible characters of ASCII')
    .optional()
    .describe(
      'Identifies the submission (draft-ietf-httpapi-idempotency-key-header): repeated with the same key while the task is retained, it gets the ' +
        'same answer, and nothing is submitted.',
    ),
})

/** 201 of `POST /tasks`. */
export const taskCreatedSchema = z.object({
  taskId: z.string(),
  queuePosition: z.number().int().min(1).describe('From 1, among the queued and running tasks of the instance.'),
  wsEndpoint: z.string().describe('The URL of the client WebSocket.'),
})

/** The query of `GET /tasks`. */
export const taskListQuerySchema = z.object({
  instanceId: z.string().min(1).max(256).optional(),
  status: taskStatusSchema.optional(),
  limit: z.coerce.number().int().min(1).max(MAX_LIST_LIMIT).optional().describe(`Default ${DEFAULT_LIST_LIMIT}.`),
  cursor: cursorSchema.optional(),
})

/** 200 of `GET /tasks`: newest first. */
export const taskListSchema = z.object({ tasks: z.array(taskSummarySchema), nextCursor: cursorSchema.optional() })

/** 200 of `GET /tasks/:id`. */
export const taskDetailSchema = z.object({ task: taskSchema })

/** 200 of `POST /tasks/:id/cancel`. */
export const taskCancelledSchema = z.object({ success: z.literal(true), taskId: z.string() })

/** 409 of `POST /tasks/:id/cancel`: the task has ended. */
export const taskNotCancelledSchema = restErrorSchema.extend({ success: z.literal(false), taskId: z.string() })

/** One instance in `GET /instances`. */
export const instanceSummarySchema = z.object({
  /** The id of the instance. */
  id: z.string(),
  /** The kind of its connection. */
  kind: z.enum(['local', 'mcp', 'websocket']),
  /** Whether it accepts commands. */
  isConnected: z.boolean(),
  queued: z.number().int().min(0).describe('The number of its queued and running tasks.'),
  tools: z
    .array(toolDescriptionSchema)
    .optional()
    .describe('Its tools; absent while it is not connected, or if they cannot be listed.'),
})

export const instanceListSchema = z.object({ instances: z.array(instanceSummarySchema) })

/** `GET /health`. */
export const healthSchema = z.object({
  status: z.enum(['ok', 'draining']),
  version: z.string(),
})

/**
 * An instance in a list.
 * @useDeclaredType
 */
export type InstanceSummary = z.infer<typeof instanceSummarySchema>
