/**
 * Who may call the server over HTTP. A web page elsewhere gives itself away by `Origin`, a rebound DNS name by `Host`; both
 * get 403. Where tokens are configured, one of them must come along.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { InvalidSettingError } from '../errors.js'
import type { AgentConfig } from '../protocol/agent-config.js'
import { isLoopback } from '../protocol/server-config.js'
import { ANONYMOUS, callerOfToken, type Caller } from './callers.js'

/** Why a request is not let in. */
export interface HttpRefusal {
  readonly status: 401 | 403
  readonly message: string
}

export interface HttpAccess {
  check(request: IncomingMessage): HttpRefusal | undefined
  /** Who a request that was let in comes from, as far as it says. */
  callerOf(request: IncomingMessage): Caller
}

/** @throws InvalidSettingError when others than this machine could call, and no token is asked for */
export function createHttpAccess({ host, tokens, allowedHosts, allowedOrigins }: AgentConfig['http']): HttpAccess {
  if (!isLoopback(host) && tokens.length === 0) {
    throw new InvalidSettingError('http.host', host, 'a loopback address, or http.tokens with at least one token')
  }
  const digests = tokens.map(digest)
  const hosts = new Set([host, ...allowedHosts].map((name) => name.toLowerCase()))
  const origins = new Set(allowedOrigins)
  // A name is how a rebound DNS name would come; an address cannot be rebound.
  const isAllowedHost = (name: string): boolean => isLoopback(name) || isIP(name) !== 0 || hosts.has(name.toLowerCase())
  const isToken = (token: string): boolean => {
    const given = digest(token)
    return digests.reduce((isRight, known) => timingSafeEqual(known, given) || isRight, false)
  }

  return {
    check: (request) => {
      const { host: called, origin } = request.headers
      const name = called === undefined ? undefined : hostnameOf(called)
      if (name === undefined || !isAllowedHost(name)) {
        return { status: 403, message: 'This server is not called by that Host.' }
      }
      // It serves no pages, so no page is its own.
      if (origin !== undefined && !origins.has(origin)) {
        return { status: 403, message: 'Pages of that Origin may not use this server.' }
      }
      const token = tokenOf(request)
      if (tokens.length === 0 || (token !== undefined && isToken(token))) return undefined
      return { status: 401, message: 'A token is needed: Authorization: Bearer <token>' }
    },
    callerOf: (request) => {
      const token = tokenOf(request)
      return token === undefined ? ANONYMOUS : callerOfToken(token)
    },
  }
}

function tokenOf({ headers: { authorization } }: IncomingMessage): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
}

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()

function hostnameOf(host: string): string | undefined {
  try {
    const { hostname, pathname, username } = new URL(`http://${host}`)
    return pathname === '/' && username === '' ? hostname.replace(/^\[|\]$/g, '') : undefined
  } catch {
    return undefined
  }
}
