/** CORS headers for pages of allowed foreign origins, and the answers to their preflights (Fetch Standard, "CORS protocol"). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from './access.js'

export interface CorsOptions {
  readonly methods: readonly string[]
  /** Headers of answers that pages may read, in addition to those that every page may read. */
  readonly exposedHeaders: readonly string[]
}

/**
 * The allowed headers when a preflight has no `Access-Control-Request-Headers`. Otherwise all requested headers are allowed, because the origin is
 * trusted.
 */
const ALLOWED_HEADERS = 'authorization, content-type, last-event-id'
const PREFLIGHT_SECONDS = 600

/** Adds the headers with which a page of an allowed origin can read the answer. Call this before the answer is sent. */
export function setCorsHeaders(
  access: Access,
  request: IncomingMessage,
  response: ServerResponse,
  { exposedHeaders }: CorsOptions,
): void {
  const origin = access.foreignOrigin(request)
  if (origin === undefined) return
  response.setHeader('access-control-allow-origin', origin)
  response.setHeader('access-control-expose-headers', exposedHeaders.join(', '))
  response.setHeader('vary', 'origin')
}

/**
 * Answers a preflight. Call this before a token is required, because a preflight has no token.
 * @returns false when the request is not a preflight
 */
export function answerPreflight(
  access: Access,
  { method, headers }: IncomingMessage,
  response: ServerResponse,
  { methods }: CorsOptions,
): boolean {
  if (method !== 'OPTIONS' || access.foreignOrigin({ headers }) === undefined) return false
  const asksForPrivate = headers['access-control-request-private-network'] === 'true'
  response.writeHead(204, {
    'access-control-allow-methods': methods.join(', '),
    'access-control-allow-headers': headers['access-control-request-headers'] ?? ALLOWED_HEADERS,
    'access-control-max-age': String(PREFLIGHT_SECONDS),
    ...(asksForPrivate && { 'access-control-allow-private-network': 'true' }),
  })
  response.end()
  return true
}
