/**
 * Who may use the server: the same checks for requests and for upgrades.
 *
 * A web page elsewhere gives itself away by `Origin`, a rebound DNS name by `Host`; both get 403. A program of this machine sends no
 * `Origin`. Where tokens are configured, one of them must come along.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { isLoopback, type ServerConfig } from '../protocol/server-config.js'

/** Why a request is not let in. */
export interface Refusal {
  readonly status: 401 | 403 | 404 | 413 | 426 | 429 | 503
  readonly error: string
  readonly code: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Access {
  /** Checks `Host` and `Origin`. */
  checkSource(request: IncomingMessage): Refusal | undefined
  /** The origin to name in CORS headers; undefined when the request does not come from another origin's page. */
  foreignOrigin(request: IncomingMessage): string | undefined
  readonly needsToken: boolean
  /** Whether the request carries a right token, or none is needed. */
  isAuthorized(request: IncomingMessage): boolean
  /** Compares in a time that does not depend on where the difference is. */
  isToken(token: string): boolean
}

/** @param ownPorts the ports whose pages are the server's own; they are known when it listens */
export function createAccess(config: ServerConfig, ownPorts: () => readonly number[]): Access {
  const digests = config.auth.tokens.map(digest)
  const allowedHosts = new Set([config.host, ...config.allowedHosts].map((name) => name.toLowerCase()))
  const origins = new Set(config.cors.origins)
  const needsToken = digests.length > 0
  const scheme = config.tls.certPath === undefined ? 'http:' : 'https:'

  // A name is how a rebound DNS name would come; an address cannot be rebound.
  const isAllowedName = (name: string): boolean =>
    isLoopback(name) || isIP(name) !== 0 || allowedHosts.has(name.toLowerCase())

  const isToken = (token: string): boolean => {
    const given = digest(token)
    let isRight = false
    for (const known of digests) isRight = timingSafeEqual(known, given) || isRight
    return isRight
  }

  const isOwn = (origin: string): boolean => {
    const url = parseUrl(origin)
    if (url === undefined || url.protocol !== scheme) return false
    const port = url.port === '' ? (scheme === 'https:' ? 443 : 80) : Number(url.port)
    return ownPorts().includes(port) && isAllowedName(bare(url.hostname))
  }

  return {
    needsToken,
    isToken,
    checkSource: ({ headers }) => {
      const { host, origin } = headers
      const url = host === undefined ? undefined : parseUrl(`http://${host}`)
      if (url === undefined || url.pathname !== '/' || url.username !== '' || !isAllowedName(bare(url.hostname))) {
        return { status: 403, code: 'FOREIGN_HOST', error: 'This server is not called by that Host.' }
      }
      if (origin === undefined || origins.has(origin) || isOwn(origin)) return undefined
      return { status: 403, code: 'FOREIGN_ORIGIN', error: 'Pages of that Origin may not use this server.' }
    },
    foreignOrigin: ({ headers: { origin } }) => (origin !== undefined && origins.has(origin) ? origin : undefined),
    isAuthorized: ({ headers: { authorization } }) => {
      if (!needsToken) return true
      const [, token] = /^Bearer +(\S+) *$/i.exec(authorization ?? '') ?? []
      return token !== undefined && isToken(token)
    },
  }
}

/** The address of the other end. Never from a header: anyone can write those. */
export function addressOf({ socket }: Pick<IncomingMessage, 'socket'>): string {
  return socket.remoteAddress?.replace(/^::ffff:/, '') ?? 'unknown'
}

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()

const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, '')

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
