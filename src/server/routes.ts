/** The REST routes as the OpenAPI document tells of them: what each takes, and everything it can answer. */
import { createRoute } from '@hono/zod-openapi'
import { z } from 'zod'
import { taskSubmitSchema } from '../protocol/task-submission.js'
import { registerRequestSchema, registerResponseSchema } from '../protocol/instance-messages.js'
import {
  healthSchema,
  instanceListSchema,
  restErrorSchema,
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
/** What any route may answer before it is reached. */
const refusals = {
  401: problem('No right token: `UNAUTHORIZED`.'),
  403: problem('The `Host` or `Origin` may not use this server: `FOREIGN_HOST`, `FOREIGN_ORIGIN`.'),
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
  description: 'Queues commands for one instance: the one it names, or the first that is connected.',
  tags: ['tasks'],
  request: body(taskSubmitSchema()),
  responses: {
    ...refusals,
    ...bodyRefusals,
    201: json('It was queued.', taskCreatedSchema),
    400: problem(
      'The body is not a task, or has no commands: `INVALID_TASK`, `NO_COMMANDS`, `MALFORMED_JSON`, `TOO_DEEP`.',
    ),
    404: problem('There is no such instance: `INVALID_INSTANCE`.'),
    409: problem('The instance is not connected: `NOT_CONNECTED`.'),
    429: problem('The queue is full: `QUEUE_FULL`; or too many requests: `RATE_LIMITED`.'),
    503: problem(
      'No instance is connected: `NO_INSTANCE`; or the server takes no tasks: `SHUTTING_DOWN`, `TASKS_DISABLED`.',
    ),
  },
})

export const listRoute = createRoute({
  method: 'get',
  path: '/tasks',
  operationId: 'listTasks',
  summary: 'List tasks, newest first',
  description:
    'A page goes on with what was submitted before the last task of the page before it, so that no task comes twice. What was ' +
    'submitted since is not in it, and a task that the server has forgotten since is missing.',
  tags: ['tasks'],
  request: { query: taskListQuerySchema },
  responses: {
    ...refusals,
    200: json('One page.', taskListSchema),
    400: problem(
      'A parameter is not allowed: `INVALID_REQUEST`; or the cursor is not of this server: `INVALID_CURSOR`.',
    ),
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
    200: json('The task, whole.', taskDetailSchema),
    404: problem('There is no such task (any more): `TASK_NOT_FOUND`.'),
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
    200: json('It has ended as cancelled.', taskCancelledSchema),
    404: problem('There is no such task (any more): `TASK_NOT_FOUND`.'),
    409: json('It had ended before: `TASK_ENDED`.', taskNotCancelledSchema),
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
    '`Last-Event-ID` it goes on after that event instead (0: from the first); 204 when nothing is left to tell.',
  tags: ['tasks'],
  request: {
    params: taskParamsSchema,
    headers: z.object({
      'last-event-id': z.string().optional().describe('The id of the last event that was received.'),
    }),
  },
  responses: {
    ...refusals,
    200: { description: 'The events.', content: { 'text/event-stream': { schema: z.string() } } },
    204: { description: 'Everything was told before.' },
    404: problem('There is no such task (any more): `TASK_NOT_FOUND`.'),
    429: problem('Too many open streams: `TOO_MANY_CONNECTIONS`; or too many requests: `RATE_LIMITED`.'),
  },
})

export const instancesRoute = createRoute({
  method: 'get',
  path: '/instances',
  operationId: 'listInstances',
  summary: 'List instances and what they can do',
  tags: ['instances'],
  responses: { ...refusals, 200: json('All that are known.', instanceListSchema) },
})

export const registerRoute = createRoute({
  method: 'post',
  path: '/register',
  operationId: 'registerWorker',
  summary: 'Register a remote worker',
  description:
    'Answers where the worker opens its socket, and the secret for its `hello`. A registration that is not used expires.',
  tags: ['instances'],
  request: { body: { content: { 'application/json': { schema: registerRequestSchema } } } },
  responses: {
    ...refusals,
    ...bodyRefusals,
    201: json('It was registered.', registerResponseSchema),
    400: problem('The body is not allowed: `INVALID_REQUEST`, `MALFORMED_JSON`, `TOO_DEEP`.'),
    409: problem('The id is in use: `INSTANCE_ID_IN_USE`.'),
    429: problem(
      'Too many registrations wait for their workers: `TOO_MANY_REGISTRATIONS`; or too many requests: `RATE_LIMITED`.',
    ),
    503: problem('The server is shutting down: `SHUTTING_DOWN`.'),
  },
})

export const healthRoute = createRoute({
  method: 'get',
  path: '/health',
  operationId: 'getHealth',
  summary: 'Whether the server is alive',
  tags: ['server'],
  security: [],
  responses: { 200: json('It is.', healthSchema), 403: refusals[403], 429: refusals[429] },
})

export const metricsRoute = createRoute({
  method: 'get',
  path: '/metrics',
  operationId: 'getMetrics',
  summary: 'What the server counts',
  tags: ['server'],
  responses: {
    ...refusals,
    200: { description: 'The text format of Prometheus.', content: { 'text/plain': { schema: z.string() } } },
  },
})
