/** The REST routes as the OpenAPI document describes them: the parameters, the body and all responses of each route. */
import type { HttpBindings } from '@hono/node-server'
import { createRoute } from '@hono/zod-openapi'
import { z } from 'zod'
import { taskSubmitSchema } from '../protocol/task-submission.js'
import { registerRequestSchema, registerResponseSchema } from '../protocol/instance-messages.js'
import {
  healthSchema,
  serverInfoSchema,
  instanceListSchema,
  instancePausedSchema,
  restErrorSchema,
  resultParamsSchema,
  submitHeadersSchema,
  taskCancelledSchema,
  taskCreatedSchema,
  taskDetailSchema,
  taskListQuerySchema,
  taskListSchema,
  taskNotCancelledSchema,
  taskParamsSchema,
  toolArgumentsSchema,
  toolFailureSchema,
  toolListSchema,
  toolParamsSchema,
  toolQuerySchema,
  toolResultSchema,
} from '../protocol/rest.js'

/** The objects of Node that a handler can use. */
export type RestEnv = { Bindings: HttpBindings }

const json = <Schema extends z.ZodType>(description: string, schema: Schema) => ({
  description,
  content: { 'application/json': { schema } },
})
const problem = (description: string) => json(description, restErrorSchema)
const body = <Schema extends z.ZodType>(schema: Schema) => ({
  body: { required: true, content: { 'application/json': { schema } } },
})
/** The responses that http-entry.ts sends before routing. Every route has them. */
const refusals = {
  401: problem('No valid token: `UNAUTHORIZED`.'),
  403: problem('The `Host` or `Origin` is not allowed: `FOREIGN_HOST`, `FOREIGN_ORIGIN`.'),
  429: problem('Too many requests: `RATE_LIMITED`, with `Retry-After`.'),
} as const
const bodyRefusals = {
  413: problem('The body is too large: `BODY_TOO_LARGE`.'),
  415: problem('The body is not declared as JSON: `UNSUPPORTED_MEDIA_TYPE`.'),
} as const

export const submitRoute = createRoute({
  method: 'post',
  path: '/tasks',
  operationId: 'submitTask',
  summary: 'Submit a task',
  description: 'Queues commands for one instance: the one named, or the first connected one that has all their tools.',
  tags: ['tasks'],
  request: { ...body(taskSubmitSchema()), headers: submitHeadersSchema },
  responses: {
    ...refusals,
    ...bodyRefusals,
    201: json('The task was queued.', taskCreatedSchema),
    400: problem(
      'The body is not a valid task, or has no commands: `INVALID_TASK`, `NO_COMMANDS`, `MALFORMED_JSON`, `TOO_DEEP`; or the key is invalid: ' +
        '`INVALID_REQUEST`.',
    ),
    404: problem('Unknown instance: `INVALID_INSTANCE`.'),
    409: problem('The instance is not connected: `NOT_CONNECTED`.'),
    422: problem('The `Idempotency-Key` was used for another task: `IDEMPOTENCY_KEY_REUSED`.'),
    429: problem('The queue is full: `QUEUE_FULL`; or too many requests: `RATE_LIMITED`.'),
    503: problem(
      'No instance is connected, or none has all tools: `NO_INSTANCE`; or the server accepts no tasks: `SHUTTING_DOWN`, `TASKS_DISABLED`; or the task could not be ' +
        'stored: `NOT_STORED`.',
    ),
  },
})

export const listRoute = createRoute({
  method: 'get',
  path: '/tasks',
  operationId: 'listTasks',
  summary: 'List tasks, newest first',
  description:
    'Each page continues after the last task of the previous page, and no task appears twice. Tasks that were submitted or removed ' +
    'after the first page was read are not included.',
  tags: ['tasks'],
  request: { query: taskListQuerySchema },
  responses: {
    ...refusals,
    200: json('One page.', taskListSchema),
    400: problem('A parameter is invalid: `INVALID_REQUEST`; or the cursor is unknown: `INVALID_CURSOR`.'),
  },
})

export const taskRoute = createRoute({
  method: 'get',
  path: '/tasks/{id}',
  operationId: 'getTask',
  summary: 'Get a task',
  tags: ['tasks'],
  request: { params: taskParamsSchema },
  responses: {
    ...refusals,
    200: json('The task.', taskDetailSchema),
    404: problem('The task is unknown or was removed: `TASK_NOT_FOUND`.'),
  },
})

export const resultRoute = createRoute({
  method: 'get',
  path: '/tasks/{id}/commands/{index}/result',
  operationId: 'getResult',
  summary: 'Get the result of a command',
  description:
    'The whole result of a command, of any size. Events and tasks have a `resultRef` with this path in place of a result over 256 KiB, ' +
    'and in place of further results when those of a task have reached 1 MiB.',
  tags: ['tasks'],
  request: { params: resultParamsSchema },
  responses: {
    ...refusals,
    200: json('The result.', z.unknown()),
    400: problem('The index is not a number: `INVALID_REQUEST`.'),
    404: problem(
      'The task is unknown or was removed: `TASK_NOT_FOUND`; or the command has no result: `RESULT_NOT_FOUND`.',
    ),
  },
})

export const cancelRoute = createRoute({
  method: 'post',
  path: '/tasks/{id}/cancel',
  operationId: 'cancelTask',
  summary: 'Cancel a task',
  tags: ['tasks'],
  request: { params: taskParamsSchema },
  responses: {
    ...refusals,
    200: json('The task was cancelled.', taskCancelledSchema),
    404: problem('The task is unknown or was removed: `TASK_NOT_FOUND`.'),
    409: json('The task had already ended: `TASK_ENDED`.', taskNotCancelledSchema),
    503: problem('The task was cancelled, but this could not be stored yet: `NOT_STORED`.'),
  },
})

export const eventsRoute = createRoute({
  method: 'get',
  path: '/tasks/{id}/events',
  operationId: 'followTask',
  summary: 'Follow a task',
  description:
    'Server-Sent Events: a snapshot (`subscribe_ack`), each `task_progress` (`TaskProgress`), and `task_complete` (`TaskComplete`), ' +
    'which ends the stream. With `Last-Event-ID` the stream has no snapshot and continues after that event (0: from the first event), ' +
    'unless the server was restarted since then. The answer is 204 when no event is left.',
  tags: ['tasks'],
  request: {
    params: taskParamsSchema,
    headers: z.object({
      'last-event-id': z.string().optional().describe('The id of the last event received.'),
    }),
  },
  responses: {
    ...refusals,
    200: { description: 'The events.', content: { 'text/event-stream': { schema: z.string() } } },
    204: { description: 'The task has ended, and the client has all its events.' },
    404: problem('The task is unknown or was removed: `TASK_NOT_FOUND`.'),
    429: problem('Too many open streams: `TOO_MANY_CONNECTIONS`; or too many requests: `RATE_LIMITED`.'),
  },
})

export const instancesRoute = createRoute({
  method: 'get',
  path: '/instances',
  operationId: 'listInstances',
  summary: 'List instances and their tools',
  tags: ['instances'],
  responses: { ...refusals, 200: json('All instances.', instanceListSchema) },
})

const pauseRoute = (action: 'pause' | 'resume', summary: string, description: string) =>
  createRoute({
    method: 'post',
    path: `/instances/{id}/${action}`,
    operationId: `${action}Instance`,
    summary,
    description,
    tags: ['instances'],
    request: { params: taskParamsSchema },
    responses: {
      ...refusals,
      200: json('The instance is now in this state, or already was.', instancePausedSchema),
      404: problem('Unknown instance: `INVALID_INSTANCE`.'),
      501: problem('The instances of a cluster cannot be paused: `NOT_SUPPORTED`.'),
      503: problem('The change has been made, but could not be stored yet: `NOT_STORED`.'),
    },
  })

export const pauseRoutes = [
  pauseRoute(
    'pause',
    'Pause an instance',
    'The queued tasks of the instance do not start until it is resumed. The running task continues, and tasks can be submitted.',
  ),
  pauseRoute('resume', 'Resume an instance', 'The queued tasks of the instance start again, in their order.'),
] as const

export const toolsRoute = createRoute({
  method: 'get',
  path: '/api/tools',
  operationId: 'listTools',
  summary: 'List the tools of the connected instances',
  tags: ['tools'],
  responses: { ...refusals, 200: json('Each tool once, with the instances that have it.', toolListSchema) },
})

const failure = (description: string) => json(description, toolFailureSchema)

export const callToolRoute = createRoute({
  method: 'post',
  path: '/api/tools/{name}',
  operationId: 'callTool',
  summary: 'Call a tool, and wait for its result',
  description:
    'Submits a task with this one command, and answers when the task has ended. The task waits in the queue like any task of the instance. It is ' +
    'cancelled when the client closes the connection, and after `limits.toolCallMs`. An error of the tool has the code that the tool gave.',
  tags: ['tools'],
  request: {
    params: toolParamsSchema,
    query: toolQuerySchema,
    body: { content: { 'application/json': { schema: toolArgumentsSchema } } },
  },
  responses: {
    ...refusals,
    ...bodyRefusals,
    200: json('The result of the tool.', toolResultSchema),
    400: failure(
      'The tool failed: the code of the tool, or `EXECUTION_ERROR`; or the request is invalid: `INVALID_REQUEST`.',
    ),
    404: failure('No connected instance has the tool: `TOOL_NOT_FOUND`; or unknown instance: `INVALID_INSTANCE`.'),
    409: failure('The instance is not connected: `NOT_CONNECTED`; or the task was cancelled: `CANCELLED`.'),
    429: failure('The queue is full: `QUEUE_FULL`.'),
    502: failure('The result is too large to be kept: `RESULT_TOO_LARGE`.'),
    503: failure(
      'No instance is connected: `NO_INSTANCE`; or it was lost: `INSTANCE_DISCONNECTED`; or the server accepts no tasks: `SHUTTING_DOWN`, ' +
        '`TASKS_DISABLED`, `NOT_STORED`, `UNAVAILABLE`.',
    ),
    504: failure(
      'The tool took too long: `COMMAND_TIMEOUT`; or the call, including its wait in the queue, did: `TOOL_CALL_TIMEOUT`.',
    ),
  },
})

export const registerRoute = createRoute({
  method: 'post',
  path: '/register',
  operationId: 'registerWorker',
  summary: 'Register a remote worker',
  description:
    "Returns the URL of the worker's socket, and the secret for its `hello`. An unused registration expires.",
  tags: ['instances'],
  request: { body: { content: { 'application/json': { schema: registerRequestSchema } } } },
  responses: {
    ...refusals,
    ...bodyRefusals,
    201: json('The worker was registered.', registerResponseSchema),
    400: problem('The body is invalid: `INVALID_REQUEST`, `MALFORMED_JSON`, `TOO_DEEP`.'),
    409: problem('The id is in use: `INSTANCE_ID_IN_USE`.'),
    429: problem('Too many unused registrations: `TOO_MANY_REGISTRATIONS`; or too many requests: `RATE_LIMITED`.'),
    503: problem('The server is shutting down: `SHUTTING_DOWN`; or the worker could not be stored: `NOT_STORED`.'),
  },
})

export const healthRoute = createRoute({
  method: 'get',
  path: '/health',
  operationId: 'getHealth',
  summary: 'Check that the server is alive',
  tags: ['server'],
  security: [],
  responses: { 200: json('The server is alive.', healthSchema), 403: refusals[403], 429: refusals[429] },
})

export const infoRoute = createRoute({
  method: 'get',
  path: '/info',
  operationId: 'getInfo',
  summary: 'Get the addresses of everything',
  tags: ['server'],
  security: [],
  responses: { 200: json('The addresses.', serverInfoSchema), 403: refusals[403], 429: refusals[429] },
})

export const metricsRoute = createRoute({
  method: 'get',
  path: '/metrics',
  operationId: 'getMetrics',
  summary: 'Get metrics',
  tags: ['server'],
  responses: {
    ...refusals,
    200: { description: 'The text format of Prometheus.', content: { 'text/plain': { schema: z.string() } } },
  },
})
