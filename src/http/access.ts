/**
 * Access control of an HTTP server: the `Host` and `Origin` checks, and bearer tokens (RFC 6750).
 *
 * A foreign web page is recognised by its `Origin`, a rebound DNS name by its `Host`; both are refused with 403. Local programs send no
 * `Origin`. Nor do the images and scripts of a page, which browsers mark with `Sec-Fetch-Site` instead (W3C Fetch Metadata).
 * When tokens are configured, a request must carry one of them.
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
  /**
   * The scheme and the ports at which the server serves pages. A page of another port of the same server counts as its own.
   * Default: it serves no pages.
   */
  readonly pages?: () => { readonly scheme: 'http' | 'https'; readonly ports: readonly number[] }
}

export interface Access {
  /** Checks `Host` and `Origin`. */
  checkSource(request: IncomingMessage): Refusal | undefined
  /** The allowed foreign origin to name in CORS headers, if the request comes from one. */
  foreignOrigin(request: Pick<IncomingMessage, 'headers'>): string | undefined
  readonly needsToken: boolean
  /** Whether no token is needed, or the request carries a valid one. */
  isAuthorized(request: IncomingMessage): boolean
  /** Compares in constant time. */
  isToken(token: string): boolean
}

export function createAccess(options: AccessOptions): Access {
  const { pages } = options
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

  /**
   * Whether the server itself served the page: its origin names the host that the request names. That host is allowed, but the page of any
   * other machine at the same port would have an address in its origin that is allowed as well.
   */
  const isOwn = (origin: string, host: string): boolean => {
    if (pages === undefined) return false
    const { scheme, ports } = pages()
    const [page, server] = [parseUrl(origin), parseUrl(`${scheme}://${host}`)]
    if (page?.protocol !== `${scheme}:` || page.hostname !== server?.hostname) return false
    return page.port === server.port || [page, server].every((url) => ports.includes(portOf(url)))
  }

  // What clients without a page of their own send.
  const isLocal = (origin: string): boolean => isLoopback(options.host) && origin === 'http://localhost'

  return {
    needsToken,
    isToken,
    checkSource: ({ headers }) => {
      const { host, origin } = headers
      const url = parseUrl(`http://${host}`)
      if (
        host === undefined ||
        url === undefined ||
        url.pathname !== '/' ||
        url.username !== '' ||
        !isAllowedName(bareHostname(url))
      ) {
        return { status: 403, code: 'FOREIGN_HOST', error: 'This Host is not allowed.' }
      }
      if (origin === undefined) return isPartOfForeignPage(headers) ? FOREIGN_ORIGIN : undefined
      return origins.has(origin) || isLocal(origin) || isOwn(origin, host) ? undefined : FOREIGN_ORIGIN
    },
    foreignOrigin: ({ headers: { origin } }) => (origin !== undefined && origins.has(origin) ? origin : undefined),
    isAuthorized: (request) => {
      if (!needsToken) return true
      const token = bearerTokenOf(request)
      return token !== undefined && isToken(token)
    },
  }
}

const FOREIGN_ORIGIN: Refusal = { status: 403, code: 'FOREIGN_ORIGIN', error: 'This Origin is not allowed.' }

/** The answer to a request without a valid token. */
export function unauthorized({ headers: { authorization } }: Pick<IncomingMessage, 'headers'>): Refusal {
  const refused = { status: 401, code: 'UNAUTHORIZED' } as const
  return authorization === undefined
    ? {
        ...refused,
        error: 'A token is required: Authorization: Bearer <token>',
        headers: { 'www-authenticate': 'Bearer' },
      }
    : {
        ...refused,
        error: bearerTokenOf({ headers: { authorization } }) === undefined ? NO_BEARER : 'The token is not valid.',
        headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
      }
}

const NO_BEARER = 'The Authorization header has no bearer token. Expected: Authorization: Bearer <token>'

/** The bearer token of a request, valid or not. */
export function bearerTokenOf({ headers: { authorization } }: Pick<IncomingMessage, 'headers'>): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
}

/** The remote address. It is never read from a header: any client can write those. */
export function addressOf({ socket }: Pick<IncomingMessage, 'socket'>): string {
  return socket.remoteAddress?.replace(/^::ffff:/, '') ?? 'unknown'
}

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Whether a browser loads this for a page of another origin: an image, say. A link that a user follows is no part of a page. */
function isPartOfForeignPage(headers: IncomingMessage['headers']): boolean {
  const site = headers['sec-fetch-site']
  return (site === 'cross-site' || site === 'same-site') && headers['sec-fetch-dest'] !== 'document'
}

const portOf = ({ protocol, port }: URL): number => (port !== '' ? Number(port) : protocol === 'https:' ? 443 : 80)

const bareHostname = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
