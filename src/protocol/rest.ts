/** The requests and responses of the REST routes. The OpenAPI document and the validation are derived from these schemas. */
import { z } from 'zod'
import { cursorSchema, DEFAULT_LIST_LIMIT, MAX_LIST_LIMIT } from './client-messages.js'
import { taskSchema, taskStatusFilterSchema, taskSummarySchema } from './command-tasks.js'
import { strictObject } from './strict-object.js'
import { toolDescriptionSchema } from './tool-calls.js'

/** The body of every error response. */
export const restErrorSchema = z.object({
  error: z.string().describe('The error in words.'),
  code: z.string().describe('Identifies the kind of error. It is the same in all versions.'),
  details: z.unknown().optional(),
})

export type RestError = z.infer<typeof restErrorSchema>

/** The path parameter `:id` of the routes of a task. */
export const taskParamsSchema = z.object({ id: z.string().min(1).max(256) })

/** The path parameters of the route of a result. */
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
    .regex(/^[\x21-\x7e]{1,255}$/, '1 to 255 visible ASCII characters')
    .optional()
    .describe(
      'Identifies the submission (draft-ietf-httpapi-idempotency-key-header). While the server has the task, a request with the same key gets the ' +
        'same answer, and submits nothing.',
    ),
})

/** The response 201 of `POST /tasks`. */
export const taskCreatedSchema = z.object({
  taskId: z.string(),
  queuePosition: z
    .number()
    .int()
    .min(1)
    .describe('The place of the task among the queued and running tasks of the instance, from 1.'),
  wsEndpoint: z.string().describe('The URL of the client WebSocket.'),
})

/** The query of `GET /tasks`. */
export const taskListQuerySchema = strictObject({
  instanceId: z.string().min(1).max(256).optional(),
  status: taskStatusFilterSchema.optional().describe('Default `all`.'),
  limit: z.coerce.number().int().min(1).max(MAX_LIST_LIMIT).optional().describe(`Default ${DEFAULT_LIST_LIMIT}.`),
  cursor: cursorSchema.optional(),
})

/** The response 200 of `GET /tasks`, newest first. */
export const taskListSchema = z.object({
  tasks: z.array(taskSummarySchema),
  nextCursor: cursorSchema.optional(),
  wsEndpoint: z.string().describe('The URL of the client WebSocket.'),
})

/** The response 200 of `GET /tasks/:id`. */
export const taskDetailSchema = z.object({ task: taskSchema })

/** The response 200 of `POST /tasks/:id/cancel`. */
export const taskCancelledSchema = z.object({ success: z.literal(true), taskId: z.string() })

/** The response 409 of `POST /tasks/:id/cancel`: the task has already ended. */
export const taskNotCancelledSchema = restErrorSchema.extend({ success: z.literal(false), taskId: z.string() })

/** One instance in `GET /instances`. */
export const instanceSummarySchema = z.object({
  /** The id of the instance. */
  id: z.string(),
  kind: z.string().describe('How the instance is reached: `local`, `mcp`, `websocket`, or the word of another kind.'),
  /** Whether the instance accepts commands. */
  isConnected: z.boolean(),
  queued: z.number().int().min(0).describe('The number of queued and running tasks of the instance.'),
  connectedAt: z.number().optional().describe('When the instance last connected, in ms since the epoch.'),
  lastActivity: z
    .number()
    .optional()
    .describe('When the instance last connected, answered a ping or ended a call, in ms since the epoch.'),
  pausedSince: z
    .number()
    .optional()
    .describe(
      'When the instance was paused, in ms since the epoch. Its queued tasks do not start. Absent when it is not paused.',
    ),
  port: z.number().int().optional().describe('The port of the server that a remote worker is connected to.'),
  userAgent: z.string().optional().describe('The `User-Agent` of a remote worker.'),
  tools: z
    .array(toolDescriptionSchema)
    .optional()
    .describe('The tools of the instance. Absent while it is not connected, or when it cannot list them.'),
})

/** The response 200 of `POST /instances/:id/pause` and `/resume`. */
export const instancePausedSchema = z.object({ instanceId: z.string(), isPaused: z.boolean() })

export const instanceListSchema = z.object({ instances: z.array(instanceSummarySchema) })

const onOff = z.enum(['enabled', 'disabled'])

/** The response of `GET /health`. Older servers send only `status` and `version`. */
export const healthSchema = z.object({
  status: z.enum(['ok', 'draining']),
  version: z.string(),
  connectedInstances: z
    .number()
    .int()
    .optional()
    .describe('The number of instances that are connected to this server.'),
  taskClients: z.number().int().optional().describe('The number of open client WebSockets.'),
  sseClients: z.number().int().optional().describe('The number of open event streams.'),
  auth: onOff.optional().describe('Whether a token is required.'),
  tls: onOff.optional(),
  rateLimit: onOff.optional(),
  rateLimitMax: z.number().int().optional().describe('The maximum number of requests of one address per minute.'),
})

/** The response of `GET /info` and `GET /`: the addresses of all interfaces. */
export const serverInfoSchema = z.object({
  name: z.literal('agent-tasks'),
  version: z.string(),
  endpoints: z.object({
    tasks: z.string(),
    instances: z.string(),
    register: z.string(),
    health: z.string(),
    metrics: z.string(),
    openapi: z.string(),
    docs: z.string().describe('A page to try the routes.'),
    page: z.string().optional().describe('The page that shows the tasks, if there is one.'),
    rest_api: z.object({ list_tools: z.string(), execute_tool: z.string() }),
  }),
  websocket: z.object({
    protocol: z.enum(['ws', 'wss']),
    host: z.string(),
    port: z.number().int(),
    url: z.string().describe('The URL of the client WebSocket.'),
  }),
  auth: z.object({ required: z.boolean(), method: z.enum(['Bearer token', 'none']) }),
})

export type ServerInfo = z.infer<typeof serverInfoSchema>

/** The path parameter `:name` of the routes of a tool. */
export const toolParamsSchema = z.object({ name: z.string().min(1).max(256) })

/** The query of `POST /api/tools/:name`. */
export const toolQuerySchema = strictObject({
  instanceId: z
    .string()
    .min(1)
    .max(256)
    .optional()
    .describe(
      'The instance that runs the tool. If it is absent, `instanceId` of the body names the instance and is not passed to the tool.',
    ),
})

/** The body of `POST /api/tools/:name`. */
export const toolArgumentsSchema = z
  .record(z.string(), z.unknown())
  .describe(
    'The arguments of the tool, and optionally `instanceId`. Default: the first connected instance that has the tool.',
  )

/** The response 200 of `GET /api/tools`. Each name occurs once. */
export const toolListSchema = z.object({
  tools: z.array(
    toolDescriptionSchema.extend({
      instances: z.array(z.string()).describe('The connected instances that have the tool.'),
    }),
  ),
})

/** The response 200 of `POST /api/tools/:name`. */
export const toolResultSchema = z.object({
  success: z.literal(true),
  result: z
    .unknown()
    .describe(
      'The result: the JSON value of its text, or the text if it is not JSON. Content of another type is in the format of MCP.',
    ),
  taskId: z.string().describe('The task of the call.'),
})

/** The error response of `POST /api/tools/:name`. */
export const toolFailureSchema = z.object({
  success: z.literal(false),
  error: z.object({ code: z.string(), message: z.string() }),
  taskId: z.string().optional().describe('The task of the call, if one was submitted.'),
})

/**
 * An instance in a list.
 * @useDeclaredType
 */
export type InstanceSummary = z.infer<typeof instanceSummarySchema>
