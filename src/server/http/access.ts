/**
 * Access control of an HTTP server: it checks `Host` and `Origin`, and bearer tokens (RFC 6750).
 *
 * Two kinds of requests are refused with 403. A foreign web page has a foreign `Origin`. A page whose DNS name was rebound to this machine has a foreign
 * `Host`. Local programs send no `Origin`. Requests for images and scripts of a page have none either, but browsers mark them with `Sec-Fetch-Site`
 * (W3C Fetch Metadata). If tokens are configured, a request must have one of them.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { isLoopback } from '../../protocol/server-config.js'

export interface Refusal {
  readonly status: 401 | 403 | 404 | 413 | 426 | 429 | 503
  readonly error: string
  readonly code: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface AccessOptions {
  readonly host: string
  /** Host names that are accepted in `Host`. Loopback names, IP addresses and `host` are always accepted. */
  readonly allowedHosts: readonly string[]
  /** Origins of other sites whose pages may use the server. */
  readonly origins: readonly string[]
  /** A request needs one of these tokens. If the list is empty, no token is needed. */
  readonly tokens: readonly string[]
  /** The scheme and the ports at which the server serves pages. All of these pages may use the server. Default: the server serves no pages. */
  readonly pages?: () => { readonly scheme: 'http' | 'https'; readonly ports: readonly number[] }
}

export interface Access {
  /** Checks `Host` and `Origin`. Returns undefined when the request is allowed. */
  checkSource(request: IncomingMessage): Refusal | undefined
  /** Returns the origin to name in CORS headers: that of the request, if it is an allowed foreign one. */
  foreignOrigin(request: Pick<IncomingMessage, 'headers'>): string | undefined
  readonly needsToken: boolean
  /** Whether the request has a valid token, or no token is needed. */
  isAuthorized(request: IncomingMessage): boolean
  /** Whether a token is valid. The comparison takes the same time for every token. */
  isToken(token: string): boolean
}

export function createAccess(options: AccessOptions): Access {
  const { pages } = options
  const digests = options.tokens.map(digest)
  const hosts = new Set([options.host, ...options.allowedHosts].map((name) => name.toLowerCase()))
  const origins = new Set(options.origins)
  const needsToken = digests.length > 0

  // DNS rebinding needs a name, so an IP address in `Host` is safe.
  const isAllowedName = (name: string): boolean => isLoopback(name) || isIP(name) !== 0 || hosts.has(name.toLowerCase())

  const isToken = (token: string): boolean => {
    const given = digest(token)
    // Compares with every token, because an early exit would show by its time which token matches.
    return digests.reduce((isMatch, known) => timingSafeEqual(known, given) || isMatch, false)
  }

  /**
   * Whether the server itself served the page: the origin of the page names the same host as the request. The host must be equal, because a page of
   * another machine at the same port also has an IP address in its origin, and IP addresses are allowed.
   */
  const isOwn = (origin: string, host: string): boolean => {
    if (pages === undefined) return false
    const { scheme, ports } = pages()
    const [page, server] = [parseUrl(origin), parseUrl(`${scheme}://${host}`)]
    if (page?.protocol !== `${scheme}:` || page.hostname !== server?.hostname) return false
    return page.port === server.port || [page, server].every((url) => ports.includes(portOf(url)))
  }

  // The origins that clients without a page of their own send.
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
        return {
          status: 403,
          code: 'FOREIGN_HOST',
          error: 'The host name in the header Host is not allowed. The setting allowedHosts can allow it.',
        }
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

const FOREIGN_ORIGIN: Refusal = {
  status: 403,
  code: 'FOREIGN_ORIGIN',
  error: 'Web pages of this origin may not use this server.',
}

/** Returns the answer to a request without a valid token. */
export function unauthorized({ headers: { authorization } }: Pick<IncomingMessage, 'headers'>): Refusal {
  const refused = { status: 401, code: 'UNAUTHORIZED' } as const
  return authorization === undefined
    ? {
        ...refused,
        error: 'A token is required. Send the header Authorization: Bearer <token>',
        headers: { 'www-authenticate': 'Bearer' },
      }
    : {
        ...refused,
        error: bearerTokenOf({ headers: { authorization } }) === undefined ? NO_BEARER : 'The token is not valid.',
        headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
      }
}

const NO_BEARER = 'The Authorization header has no bearer token. Expected: Authorization: Bearer <token>'

/** Returns the bearer token of a request, whether it is valid or not. */
export function bearerTokenOf({ headers: { authorization } }: Pick<IncomingMessage, 'headers'>): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
}

/** Returns the remote address. It is not read from a header, because any client can write those. */
export function addressOf({ socket }: Pick<IncomingMessage, 'socket'>): string {
  return socket.remoteAddress?.replace(/^::ffff:/, '') ?? 'unknown'
}

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Whether a page of another origin loads this, for example as an image. A link that a user follows does not count. */
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
