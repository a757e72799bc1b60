/** The routes of single tools: `GET /api/tools` and `POST /api/tools/:name`. */
import type { ServerResponse } from 'node:http'
import type { OpenAPIHono } from '@hono/zod-openapi'
import { JSON_TYPE, toJson } from './http/json.js'
import { jsonStream } from '../data/json-pieces.js'
import { preview } from '../data/preview.js'
import type { InstanceList } from './backend/instance-list.js'
import { callToolRoute, toolsRoute, type RestEnv } from './routes.js'
import { toolsOf, type ToolCalls, type ToolError } from './tool-calls.js'

/** Errors of the routes below this path have another format, which existing clients of these routes expect. */
export const TOOLS_PATH = '/api/tools/'

export interface ToolRouteOptions {
  readonly instances: InstanceList
  readonly toolCalls: ToolCalls
  readonly traced: <T>(headers: Record<string, string>, run: () => T) => T
}

/** The status for the codes of this server. An error with any other code comes from the tool, and gets the status 400. */
const failureStatus: Readonly<Record<string, 404 | 409 | 429 | 502 | 503 | 504>> = {
  TOOL_NOT_FOUND: 404,
  INVALID_INSTANCE: 404,
  NOT_CONNECTED: 409,
  CANCELLED: 409,
  QUEUE_FULL: 429,
  RESULT_TOO_LARGE: 502,
  NO_INSTANCE: 503,
  NOT_STORED: 503,
  SHUTTING_DOWN: 503,
  TASKS_DISABLED: 503,
  INSTANCE_DISCONNECTED: 503,
  UNAVAILABLE: 503,
  COMMAND_TIMEOUT: 504,
  TOOL_CALL_TIMEOUT: 504,
}

export function addToolRoutes(app: OpenAPIHono<RestEnv>, { instances, toolCalls, traced }: ToolRouteOptions): void {
  app.openapi(
    toolsRoute,
    async (c) => c.body(toJson({ tools: toolsOf(await instances.read()) }), 200, JSON_TYPE) as never,
  )
  app.openapi(callToolRoute, async (c) => {
    const chosen = chooseInstance(c.req.valid('query').instanceId, c.req.valid('json'))
    if ('code' in chosen) return c.json({ success: false as const, error: chosen }, 400)
    const caller = watchCaller(c.env.outgoing)
    const answer = await toolCalls
      .call({
        ...chosen,
        name: c.req.valid('param').name,
        signal: caller.signal,
        within: (submit) => traced(c.req.header(), submit),
      })
      .finally(caller.stop)
    if (!answer.success) return c.json(answer, failureStatus[answer.error.code] ?? 400)
    // A stream and not `c.json`, so that the JSON of a large result is never in memory as a whole.
    return c.body(jsonStream(answer), 200, JSON_TYPE) as never
  })
}

type Arguments = Readonly<Record<string, unknown>>

/**
 * Chooses the instance. `instanceId` of the query names it, or else `instanceId` of the body. With the query, `instanceId` of the body is an
 * argument of the tool.
 */
function chooseInstance(
  instanceId: string | undefined,
  body: Arguments,
): { readonly instanceId: string | undefined; readonly args: Arguments } | ToolError {
  if (instanceId !== undefined) return { instanceId, args: body }
  const { instanceId: named, ...args } = body
  if (named === undefined || (typeof named === 'string' && named !== '')) return { instanceId: named, args }
  return { code: 'INVALID_REQUEST', message: `body.instanceId: got ${preview(named)}, expected the id of an instance.` }
}

/** Returns a signal that aborts when the client closes the connection before the answer. */
function watchCaller(response: ServerResponse): { readonly signal: AbortSignal; readonly stop: () => void } {
  const left = new AbortController()
  const leave = (): void => left.abort()
  if (response.destroyed) leave()
  response.once('close', leave)
  return { signal: left.signal, stop: () => response.off('close', leave) }
}
