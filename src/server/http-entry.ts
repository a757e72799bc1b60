/** The door of the HTTP port: every request is checked here, before a route sees it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { addressOf, type Access, type Refusal } from './access.js'
import { toJson } from './json.js'
import type { Metrics } from './metrics.js'
import type { RateLimiter } from './rates.js'

export interface HttpEntryOptions {
  readonly access: Access
  readonly requests: RateLimiter
  readonly metrics: Metrics
  /** Serves a request that was let in. */
  readonly serve: (request: IncomingMessage, response: ServerResponse) => void
}

/** What a page needs before it has a token, and what a supervisor asks. */
const OPEN_PATHS = new Set(['/health', '/openapi.json', '/docs'])

const ALLOWED_HEADERS = 'authorization, content-type, last-event-id'
const ALLOWED_METHODS = 'GET, POST, OPTIONS'

export function createHttpEntry({ access, requests, metrics, serve }: HttpEntryOptions) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    response.setHeader('x-content-type-options', 'nosniff')
    const origin = access.foreignOrigin(request)
    if (origin !== undefined) {
      response.setHeader('access-control-allow-origin', origin)
      response.setHeader('vary', 'origin')
    }
    const refusal = rateRefusal(requests, request) ?? access.checkSource(request)
    if (refusal !== undefined) {
      refuse(response, refusal, metrics)
    } else if (request.method === 'OPTIONS' && origin !== undefined) {
      allowPreflight(request, response)
    } else if (!OPEN_PATHS.has(pathOf(request)) && !access.isAuthorized(request)) {
      refuse(response, UNAUTHORIZED, metrics)
    } else {
      serve(request, response)
    }
  }
}

/** Too many requests from one address, by its socket. */
export function rateRefusal(requests: RateLimiter, request: IncomingMessage): Refusal | undefined {
  const waitMs = requests.take(addressOf(request))
  if (waitMs === 0) return undefined
  const headers = { 'retry-after': String(Math.ceil(waitMs / 1000)) }
  return { status: 429, error: 'Too many requests from this address', code: 'RATE_LIMITED', headers }
}

const UNAUTHORIZED: Refusal = {
  status: 401,
  error: 'A token is needed: Authorization: Bearer <token>',
  code: 'UNAUTHORIZED',
  headers: { 'www-authenticate': 'Bearer' },
}

function refuse(response: ServerResponse, { status, error, code, headers }: Refusal, metrics: Metrics): void {
  metrics.refused(code)
  // The body of a refused request is not read, so the connection cannot be used again.
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close', ...headers })
  response.end(toJson({ error, code }))
}

function allowPreflight(request: IncomingMessage, response: ServerResponse): void {
  const asksForPrivate = request.headers['access-control-request-private-network'] === 'true'
  response.writeHead(204, {
    'access-control-allow-methods': ALLOWED_METHODS,
    'access-control-allow-headers': ALLOWED_HEADERS,
    'access-control-max-age': '600',
    ...(asksForPrivate && { 'access-control-allow-private-network': 'true' }),
  })
  response.end()
}

const pathOf = ({ url = '' }: IncomingMessage): string => url.split('?', 1)[0] ?? ''
