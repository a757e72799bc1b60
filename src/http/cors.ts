/** CORS headers for the pages of allowed foreign origins, and the answer to their preflights (Fetch Standard, "CORS protocol"). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from './access.js'

export interface CorsOptions {
  readonly methods: readonly string[]
  /** The headers of answers that pages may read, besides those that every page may. */
  readonly exposedHeaders: readonly string[]
}

/** Used without `Access-Control-Request-Headers`. Otherwise the requested headers are allowed unchanged, because the origin is trusted. */
const ALLOWED_HEADERS = 'authorization, content-type, last-event-id'
const PREFLIGHT_SECONDS = 600

/** Adds the headers that let a page of an allowed origin read the answer. Call it before anything is answered. */
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
 * Answers a preflight. Call it before a token is required: a preflight carries none.
 * @returns false for any other request
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
