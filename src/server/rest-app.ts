/** The handlers of the REST routes. http-entry.ts has already checked the access. */
import { createHash } from 'node:crypto'
import { OpenAPIHono } from '@hono/zod-openapi'
import type { MiddlewareHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { AgentTasksError, InstanceError } from '../errors.js'
import { addressOf } from './http/access.js'
import { JSON_TYPE, readBody, toJson } from './http/json.js'
import { parseJson } from '../data/parse-json.js'
import { jsonStream } from '../data/json-pieces.js'
import type { Log } from './http/log.js'
import type { RefusalCode } from '../protocol/client-messages.js'
import type { RegisterRequest, RegisterResponse } from '../protocol/instance-messages.js'
import { withoutByteOrderMark } from '../data/byte-order-mark.js'
import { preview } from '../data/preview.js'
import { traceOf, type Telemetry } from '../protocol/telemetry.js'
import type { RestError, ServerInfo } from '../protocol/rest.js'
import type { ServerConfig } from '../protocol/server-config.js'
import { StoreError } from '../store/store-errors.js'
import { resultBytes } from '../command-tasks/task-bytes.js'
import { docsPage, docsPolicy } from './docs-page.js'
import type { WriteEvent } from './event-lines.js'
import { openEventStream } from './event-stream.js'
import { whenThere, type Eventually } from './backend/eventually.js'
import type { Hub } from './backend/hub.js'
import { withInlineResults } from './backend/inline-results.js'
import { requestFields } from './logged-events.js'
import type { Metrics } from './metrics.js'
import type { InstanceList } from './backend/instance-list.js'
import { describeInvalid } from './invalid-request.js'
import { describeApi } from './openapi.js'
import * as routes from './routes.js'
import type { RestEnv } from './routes.js'
import { describeServer, startPage, startPolicy } from './start-page.js'
import { TASK_NOT_FOUND, whenAccepted, type TaskService } from './backend/task-service.js'
import type { ToolCalls } from './tool-calls.js'
import { addToolRoutes, TOOLS_PATH } from './tool-routes.js'
import { packageVersion } from '../system/version.js'

export interface RestOptions {
  readonly config: ServerConfig
  readonly service: TaskService
  readonly instances: InstanceList
  readonly hub: Hub
  readonly metrics: Metrics
  readonly log: Log
  readonly writeEvent: WriteEvent
  readonly telemetry?: Telemetry | undefined
  readonly isDraining: () => boolean
  readonly wsUrl: () => string
  /** The URL of the REST API. */
  readonly baseUrl: () => string
  /** The URL of the page that shows the tasks, if there is one. */
  readonly pageUrl: () => string | undefined
  readonly toolCalls: ToolCalls
  readonly countConnected: () => number
  /**
   * Registers a worker. Throws `INSTANCE_ID_IN_USE` when the id is in use, and `TOO_MANY_REGISTRATIONS` when too many registrations are
   * unused.
   */
  readonly register: (request: RegisterRequest, isBrowser: boolean) => Eventually<RegisterResponse>
  /** Counts an open connection of an address. Returns a function that ends it, or undefined when the address has too many. */
  readonly enter: (address: string) => (() => void) | undefined
  /** Adds a stream to the heartbeat, and to those that the server ends when it closes. Returns a function that removes the stream. */
  readonly keep: (open: { beat(): void; end(): void }) => () => void
}

const submitStatus: Readonly<Record<RefusalCode, 400 | 404 | 409 | 422 | 429 | 503>> = {
  NO_COMMANDS: 400,
  INVALID_TASK: 400,
  INVALID_INSTANCE: 404,
  NOT_CONNECTED: 409,
  QUEUE_FULL: 429,
  TOO_MANY_SUBSCRIPTIONS: 429,
  IDEMPOTENCY_KEY_REUSED: 422,
  NO_INSTANCE: 503,
  NOT_STORED: 503,
  SHUTTING_DOWN: 503,
  TASKS_DISABLED: 503,
}

const notFound = (taskId: string): RestError => ({ error: TASK_NOT_FOUND, code: 'TASK_NOT_FOUND', details: { taskId } })

export function createRestApp(options: RestOptions): OpenAPIHono<RestEnv> {
  const { config, service, hub, metrics } = options
  const app = new OpenAPIHono<RestEnv>({
    defaultHook: async (result, c) => {
      if (result.success) return undefined
      const { field, expected, problem } = await describeInvalid(result, c.req)
      if (c.req.path.startsWith(TOOLS_PATH)) {
        return c.json({ success: false, error: { code: 'INVALID_REQUEST', message: problem } }, 400)
      }
      const code = result.target === 'json' && c.req.path === '/tasks' ? 'INVALID_TASK' : 'INVALID_REQUEST'
      return c.json({ error: problem, code, details: { field, expected } } satisfies RestError, 400)
    },
  })
  app.notFound((c) => {
    const { method, path } = c.req
    const allowed = methodsOf(app, path)
    if (allowed.length === 0) return c.json({ error: `Not found: ${method} ${preview(path)}`, code: 'NOT_FOUND' }, 404)
    c.header('allow', allowed.join(', '))
    const error = `${method} is not possible for ${preview(path)}: use ${allowed.join(' or ')}`
    return c.json({ error, code: 'METHOD_NOT_ALLOWED' }, 405)
  })
  app.onError((error, c) => c.json(...describeError(error, options.log)))
  app.use(async (c, next) => {
    await next()
    const { status } = c.res
    if (status >= 400) options.writeEvent('debug', 'refused request', { ...requestFields(c.env.incoming), status })
  })
  app.use(limitBody(config))

  const traced = <T>(headers: Record<string, string>, run: () => T): T =>
    options.telemetry === undefined ? run() : options.telemetry.within(traceOf(headers), run)

  app.openapi(routes.submitRoute, (c) => {
    const key = c.req.valid('header')['idempotency-key']
    const idempotencyKey = key === undefined ? undefined : `${callerOf(c.req.header('authorization'))}:${key}`
    const submit = () => service.submit(c.req.valid('json'), idempotencyKey)
    return whenThere(whenThere(traced(c.req.header(), submit), whenAccepted), (submitted) =>
      'error' in submitted
        ? c.json(submitted, submitStatus[submitted.code])
        : c.json({ ...submitted, wsEndpoint: options.wsUrl() }, 201),
    )
  })
  app.openapi(routes.listRoute, async (c) => {
    const listed = await service.list(c.req.valid('query'))
    return 'error' in listed ? c.json(listed, 400) : c.json({ ...listed, wsEndpoint: options.wsUrl() }, 200)
  })
  app.openapi(routes.taskRoute, async (c) => {
    const { id } = c.req.valid('param')
    const task = await service.get(id)
    if (task === undefined) return c.json(notFound(id), 404)
    // `toJson` and not `c.json`, because the result of a tool may be a value that JSON cannot represent.
    return c.body(toJson({ task: withInlineResults(task) }), 200, JSON_TYPE) as never
  })
  app.openapi(routes.resultRoute, async (c) => {
    const { id, index } = c.req.valid('param')
    const task = await service.get(id)
    if (task === undefined) return c.json(notFound(id), 404)
    const result = task.commands[Number(index)]?.result
    if (result === undefined) return c.json({ error: `Command ${index} has no result`, code: 'RESULT_NOT_FOUND' }, 404)
    // A stream and not `c.json`, so that the JSON of a large result is never in memory as a whole.
    return c.body(jsonStream(result), 200, { ...JSON_TYPE, 'content-length': String(resultBytes(result)) }) as never
  })
  app.openapi(routes.cancelRoute, async (c) => {
    const taskId = c.req.valid('param').id
    const cancelled = await service.cancel(taskId)
    if (cancelled.success) return c.json({ success: true as const, taskId }, 200)
    const { error, code } = cancelled
    if (code === 'TASK_NOT_FOUND') return c.json(notFound(taskId), 404)
    if (code === 'NOT_STORED') return c.json({ error, code }, 503)
    return c.json({ success: false as const, taskId, error, code }, 409)
  })
  app.openapi(routes.eventsRoute, (c) => {
    const { id } = c.req.valid('param')
    return whenThere(service.follow(id, c.req.valid('header')['last-event-id']), (followed) => {
      if (followed === undefined) return c.json(notFound(id), 404)
      // After the status 204 an EventSource does not reconnect.
      if (followed.missed?.length === 0 && followed.task.completedAt !== undefined) return c.body(null, 204)
      // HEAD returns the headers without a stream, because nobody would read the stream.
      if (c.req.method === 'HEAD') return c.body(null, 200, EVENT_STREAM_HEADERS)
      const leave = options.enter(addressOf(c.env.incoming))
      if (leave === undefined) return c.json(TOO_MANY_CONNECTIONS, 429)
      const onEnd = [leave, metrics.connected('event_stream')]
      const stream = openEventStream({
        followed,
        hub,
        limits: config.limits,
        metrics,
        cut: () => c.env.outgoing.destroy(),
        onEnd: () => onEnd.forEach((end) => end()),
      })
      if (stream.isOpen) onEnd.push(options.keep(stream))
      return c.body(stream.body, 200, EVENT_STREAM_HEADERS)
    })
  })
  app.openapi(
    routes.instancesRoute,
    async (c) => c.body(toJson({ instances: await options.instances.read() }), 200, JSON_TYPE) as never,
  )
  for (const route of routes.pauseRoutes) {
    app.openapi(route, async (c) => {
      const instanceId = c.req.valid('param').id
      const isPaused = route.operationId === 'pauseInstance'
      const { setPaused } = options.instances
      if (setPaused === undefined) {
        return c.json({ error: 'The instances of a cluster cannot be paused', code: 'NOT_SUPPORTED' }, 501)
      }
      try {
        await setPaused(instanceId, isPaused)
        return c.json({ instanceId, isPaused }, 200)
      } catch (error) {
        if (error instanceof InstanceError) return c.json({ error: error.message, code: 'INVALID_INSTANCE' }, 404)
        if (!(error instanceof StoreError)) throw error
        return c.json(
          {
            error:
              'The change is in effect, but could not be stored yet. A restart of the server before it is stored undoes it.',
            code: 'NOT_STORED',
          },
          503,
        )
      }
    })
  }
  app.openapi(routes.registerRoute, async (c) => {
    if (options.isDraining()) return c.json({ error: 'The server is shutting down', code: 'SHUTTING_DOWN' }, 503)
    const known = c.req.valid('json')
    try {
      // Browsers send an `Origin` with every POST request, so its presence shows that the worker runs in a browser.
      return c.json(await options.register(known, c.req.header('origin') !== undefined), 201)
    } catch (error) {
      if (!(error instanceof AgentTasksError)) throw error
      const { code, message } = error
      if (code === 'INSTANCE_ID_IN_USE') return c.json({ error: message, code }, 409)
      if (code === 'TOO_MANY_REGISTRATIONS') return c.json({ error: message, code }, 429)
      if (!(error instanceof StoreError)) throw error
      options.log('error', 'A worker could not be stored', error)
      return c.json({ error: 'The worker could not be stored. Try again later.', code: 'NOT_STORED' }, 503)
    }
  })
  addToolRoutes(app, { ...options, traced })
  app.openapi(routes.healthRoute, (c) =>
    c.json(
      {
        status: options.isDraining() ? ('draining' as const) : ('ok' as const),
        version: packageVersion,
        connectedInstances: options.countConnected(),
        taskClients: metrics.countConnected('client'),
        sseClients: metrics.countConnected('event_stream'),
        auth: onOff(config.auth.tokens.length > 0),
        tls: onOff(config.tls.certPath !== undefined),
        rateLimit: 'enabled' as const,
        rateLimitMax: config.limits.requestsPerMinute,
      },
      200,
    ),
  )
  const info = (): ServerInfo => describeServer(options)
  app.openapi(routes.infoRoute, (c) => c.json(info(), 200))
  app.openapi(
    routes.metricsRoute,
    (c) => c.body(metrics.render(), 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }) as never,
  )

  let document: string | undefined
  app.get('/openapi.json', (c) => c.body((document ??= toJson(describeApi(app))), 200, JSON_TYPE))
  app.get('/', (c) =>
    c.req.header('accept')?.includes('text/html') === true
      ? c.html(startPage(info()), 200, { 'content-security-policy': startPolicy, vary: 'accept' })
      : c.json(info(), 200, { vary: 'accept' }),
  )
  app.get('/docs', (c) => c.html(docsPage, 200, { 'content-security-policy': docsPolicy }))
  return app
}

/** The methods for which the app has a route with this path. */
function methodsOf({ routes: known }: OpenAPIHono<RestEnv>, path: string): string[] {
  const segments = path.split('/')
  const methods = known.flatMap((route) => {
    const parts = route.path.split('/')
    const fits =
      parts.length === segments.length && parts.every((part, at) => /^[:{]/.test(part) || part === segments[at])
    return fits && route.method !== 'ALL' ? [route.method, ...(route.method === 'GET' ? ['HEAD'] : [])] : []
  })
  return [...new Set(methods)].sort()
}

const onOff = (isOn: boolean): 'enabled' | 'disabled' => (isOn ? 'enabled' : 'disabled')

const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
}
export const TOO_MANY_CONNECTIONS: RestError = {
  error: 'Too many open connections from this address (limits.connectionsPerClient)',
  code: 'TOO_MANY_CONNECTIONS',
}

/** Reads the body of a request, up to the limits. The routes then find it as text and as JSON. */
function limitBody({ limits: { bodyBytes, nesting } }: ServerConfig): MiddlewareHandler<RestEnv> {
  return async (c, next) => {
    if (c.req.method !== 'POST') return next()
    const text = await readBody(c.env.incoming, bodyBytes)
    if (text === undefined) {
      if (!c.env.incoming.complete) c.header('connection', 'close')
      const error = `The body is larger than ${bodyBytes} bytes`
      return c.json({ error, code: 'BODY_TOO_LARGE', details: { maxBytes: bodyBytes } } satisfies RestError, 413)
    }
    c.req.bodyCache.text = Promise.resolve(withoutByteOrderMark(text)) as never
    if (text !== '') {
      const parsed = parseJson(text, nesting)
      // A body of another content type is refused later, by the route.
      if ('value' in parsed) c.req.bodyCache.json = Promise.resolve(parsed.value)
      else if (isJson(c.req.header('content-type'))) {
        return c.json({ error: parsed.message, code: parsed.code } satisfies RestError, 400)
      }
    }
    return next()
  }
}

/** The name under which idempotency keys are kept, because two callers may use the same key. A caller is identified by its token. */
const callerOf = (authorization: string | undefined): string =>
  createHash('sha256')
    .update(authorization ?? '')
    .digest('base64url')

const isJson = (contentType: string | undefined): boolean => contentType === undefined || /json/i.test(contentType)

function describeError(error: unknown, log: Log): [RestError, ContentfulStatusCode] {
  if (error instanceof HTTPException) {
    const codes: Readonly<Record<number, string>> = { 400: 'MALFORMED_JSON', 415: 'UNSUPPORTED_MEDIA_TYPE' }
    const message = error.status === 415 ? 'The body must be JSON, with content-type application/json' : error.message
    return [{ error: message, code: codes[error.status] ?? 'INVALID_REQUEST' }, error.status]
  }
  if (error instanceof AgentTasksError && error.code === 'UNAVAILABLE') {
    return [{ error: error.message, code: error.code }, 503]
  }
  log('error', 'A request failed', error)
  return [{ error: 'Internal error', code: 'INTERNAL_ERROR' }, 500]
}
