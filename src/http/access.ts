/**
 * Access control of an HTTP server: the `Host` and `Origin` checks, and bearer tokens (RFC 6750).
 *
 * A foreign web page is recognised by its `Origin`, a rebound DNS name by its `Host`; both are refused with 403. Local programs send no
 * `Origin`. When tokens are configured, a request must carry one of them.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { isLoopback } from '../protocol/server-config.js'

/** Why a request is refused. */
export interface Refusal {
  readonly status: 401 | 403 | 404 | 413 | 426 | 429 | 503
  readonly error: string
  readonly code: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface AccessOptions {
  /** The address the server listens on. */
  readonly host: string
  /** Accepted in `Host`, besides loopback names, IP addresses and `host`. */
  readonly allowedHosts: readonly string[]
  /** Origins of other sites whose pages may use the server. */
  readonly origins: readonly string[]
  /** Any one of these grants access; with none configured, no token is needed. */
  readonly tokens: readonly string[]
  /** Whether the server itself served a page of this origin. Default: it serves no pages. */
  readonly isOwnOrigin?: (origin: URL) => boolean
}

export interface Access {
  /** Checks `Host` and `Origin`. */
  checkSource(request: IncomingMessage): Refusal | undefined
  /** The allowed foreign origin to name in CORS headers, if the request comes from one. */
  foreignOrigin(request: IncomingMessage): string | undefined
  readonly needsToken: boolean
  /** Whether no token is needed, or the request carries a valid one. */
  isAuthorized(request: IncomingMessage): boolean
  /** Compares in constant time. */
  isToken(token: string): boolean
}

export function createAccess(options: AccessOptions): Access {
  const { isOwnOrigin = () => false } = options
  const digests = options.tokens.map(digest)
  const hosts = new Set([options.host, ...options.allowedHosts].map((name) => name.toLowerCase()))
  const origins = new Set(options.origins)
  const needsToken = digests.length > 0

  // DNS rebinding needs a name: an IP address in `Host` is safe.
  const isAllowedName = (name: string): boolean => isLoopback(name) || isIP(name) !== 0 || hosts.has(name.toLowerCase())

  const isToken = (token: string): boolean => {
    const given = digest(token)
    // No early exit: the time must not depend on which token matches.
    return digests.reduce((isMatch, known) => timingSafeEqual(known, given) || isMatch, false)
  }

  const isOwn = (origin: string): boolean => {
    const url = parseUrl(origin)
    return url !== undefined && isAllowedName(bareHostname(url)) && isOwnOrigin(url)
  }

  return {
    needsToken,
    isToken,
    checkSource: ({ headers: { host, origin } }) => {
      const url = host === undefined ? undefined : parseUrl(`http://${host}`)
      if (url === undefined || url.pathname !== '/' || url.username !== '' || !isAllowedName(bareHostname(url))) {
        return { status: 403, code: 'FOREIGN_HOST', error: 'This Host is not allowed.' }
      }
      if (origin === undefined || origins.has(origin) || isOwn(origin)) return undefined
      return { status: 403, code: 'FOREIGN_ORIGIN', error: 'This Origin is not allowed.' }
    },
    foreignOrigin: ({ headers: { origin } }) => (origin !== undefined && origins.has(origin) ? origin : undefined),
    isAuthorized: (request) => {
      if (!needsToken) return true
      const token = bearerTokenOf(request)
      return token !== undefined && isToken(token)
    },
  }
}

/** The answer to a request without a valid token. */
export const UNAUTHORIZED: Refusal = {
  status: 401,
  error: 'A token is required: Authorization: Bearer <token>',
  code: 'UNAUTHORIZED',
  headers: { 'www-authenticate': 'Bearer' },
}

/** The bearer token of a request, valid or not. */
export function bearerTokenOf({ headers: { authorization } }: IncomingMessage): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
}

/** The remote address. It is never read from a header: any client can write those. */
export function addressOf({ socket }: Pick<IncomingMessage, 'socket'>): string {
  return socket.remoteAddress?.replace(/^::ffff:/, '') ?? 'unknown'
}

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()

const bareHostname = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
