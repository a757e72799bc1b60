/** Checks every HTTP request before routing: `Host` and `Origin`, the rate, and the token. It also answers CORS preflights. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { addressOf, unauthorized, type Access, type Refusal } from './http/access.js'
import { answerPreflight, setCorsHeaders, type CorsOptions } from './http/cors.js'
import { sendJson } from './http/json.js'
import type { RateLimiter } from './rates.js'

/** Called with each request that is refused before it is routed. */
export type OnRefused = (refusal: Refusal, request: IncomingMessage) => void

export interface HttpEntryOptions {
  readonly access: Access
  readonly requests: RateLimiter
  readonly onRefused: OnRefused
  /** Serves a request that passed the checks. */
  readonly serve: (request: IncomingMessage, response: ServerResponse) => void
}

/** Paths that need no token: a supervisor polls `/health`, clients find the addresses, and a user enters the token in the page `/docs`. */
const OPEN_PATHS = new Set(['/', '/health', '/info', '/openapi.json', '/docs'])

const CORS: CorsOptions = { methods: ['GET', 'POST', 'OPTIONS'], exposedHeaders: ['retry-after', 'www-authenticate'] }

export function createHttpEntry({ access, requests, onRefused, serve }: HttpEntryOptions) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    response.setHeader('x-content-type-options', 'nosniff')
    setCorsHeaders(access, request, response, CORS)
    // The source is checked before the rate. Otherwise a foreign page could use up the requests that local programs may make.
    const refusal = access.checkSource(request) ?? rateRefusal(requests, request)
    if (refusal !== undefined) {
      refuse(request, response, refusal, onRefused)
    } else if (answerPreflight(access, request, response, CORS)) {
      return
    } else if (!OPEN_PATHS.has(pathOf(request)) && !access.isAuthorized(request)) {
      refuse(request, response, unauthorized(request), onRefused)
    } else {
      serve(request, response)
    }
  }
}

/** Refuses a request when its address has sent too many in the last minute. */
export function rateRefusal(requests: RateLimiter, request: IncomingMessage): Refusal | undefined {
  const waitMs = requests.take(addressOf(request))
  if (waitMs === 0) return undefined
  const headers = { 'retry-after': String(Math.ceil(waitMs / 1000)) }
  return {
    status: 429,
    error: 'Too many requests from this address (limits.requestsPerMinute)',
    code: 'RATE_LIMITED',
    headers,
  }
}

function refuse(request: IncomingMessage, response: ServerResponse, refusal: Refusal, onRefused: OnRefused): void {
  const { status, error, code, headers } = refusal
  onRefused(refusal, request)
  // Drops the part of the body that has arrived. Otherwise the connection is reset before the client has read the answer. The rest of the body is
  // not read.
  request.resume()
  sendJson(response, status, { error, code }, { connection: 'close', ...headers })
}

/** The path of a request, without its query. */
export const pathOf = ({ url = '' }: IncomingMessage): string => url.split('?', 1)[0] ?? ''
