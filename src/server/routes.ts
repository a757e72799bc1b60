/** The REST routes for the OpenAPI document: parameters, bodies and all responses of each. */
import { createRoute } from '@hono/zod-openapi'
import { z } from 'zod'
import { taskSubmitSchema } from '../protocol/task-submission.js'
import { registerRequestSchema, registerResponseSchema } from '../protocol/instance-messages.js'
import {
  healthSchema,
  instanceListSchema,
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
} from '../protocol/rest.js'

const json = <Schema extends z.ZodType>(description: string, schema: Schema) => ({
  description,
  content: { 'application/json': { schema } },
})
const problem = (description: string) => json(description, restErrorSchema)
const body = <Schema extends z.ZodType>(schema: Schema) => ({
  body: { required: true, content: { 'application/json': { schema } } },
})
/** Responses of every route, sent before routing. */
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
  description: 'Queues commands for one instance: the one named, or the first that is connected.',
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
      'No instance is connected: `NO_INSTANCE`; or the server accepts no tasks: `SHUTTING_DOWN`, `TASKS_DISABLED`; or the task could not be ' +
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
    'A page continues with the tasks submitted before the last task of the page before it. No task is repeated; tasks submitted ' +
    'since the first page are not included, and tasks removed since then are missing.',
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
    'The whole result of a command, however large. Events and tasks have a `resultRef` with this path in place of a result over 256 KiB, ' +
    'and of those beyond 1 MiB in all.',
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
    'which ends the stream. With ' +
    '`Last-Event-ID` it continues after that event instead (0: from the first), unless that was an event of an earlier life of the server; ' +
    '204 when no event is left.',
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
