/** Checks every HTTP request before routing: rate, `Host` and `Origin`, token. Answers CORS preflights. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { addressOf, UNAUTHORIZED, type Access, type Refusal } from '../http/access.js'
import { sendJson } from '../http/json.js'
import type { Metrics } from './metrics.js'
import type { RateLimiter } from './rates.js'

export interface HttpEntryOptions {
  readonly access: Access
  readonly requests: RateLimiter
  readonly metrics: Metrics
  /** Serves a request that passed the checks. */
  readonly serve: (request: IncomingMessage, response: ServerResponse) => void
}

/** Served without a token: what a supervisor polls, and the page where a user enters the token. */
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

/** Refuses a request when its address has sent too many. */
export function rateRefusal(requests: RateLimiter, request: IncomingMessage): Refusal | undefined {
  const waitMs = requests.take(addressOf(request))
  if (waitMs === 0) return undefined
  const headers = { 'retry-after': String(Math.ceil(waitMs / 1000)) }
  return { status: 429, error: 'Too many requests from this address', code: 'RATE_LIMITED', headers }
}

function refuse(response: ServerResponse, { status, error, code, headers }: Refusal, metrics: Metrics): void {
  metrics.refused(code)
  // The body is not read, so the connection cannot be reused.
  sendJson(response, status, { error, code }, { connection: 'close', ...headers })
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
