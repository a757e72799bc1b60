/** Derives the URLs of a server's REST routes and of its client socket from the one URL that the caller gives. */
import { InvalidInputError } from '../errors.js'
import { ConnectionError } from './client-errors.js'

/** URLs without a trailing slash. */
export interface Endpoints {
  /** The base of the REST routes. */
  readonly http: string
  /** The client socket. */
  readonly socket: string
}

const SOCKET_PATH = '/ws'

/**
 * @param url the HTTP URL of a server, whose socket is at `/ws`, or the URL of its client socket
 * @throws INVALID_INPUT for anything but an http, https, ws or wss URL
 */
export function parseEndpoints(url: string): Endpoints {
  const parsed = parseUrl(url)
  const { protocol, host } = parsed
  const path = parsed.pathname.replace(/\/+$/, '')
  const isSecure = protocol === 'https:' || protocol === 'wss:'
  const base = path.endsWith(SOCKET_PATH) ? path.slice(0, -SOCKET_PATH.length) : path
  const isSocket = protocol === 'ws:' || protocol === 'wss:'
  return {
    http: `${isSecure ? 'https' : 'http'}://${host}${base}`,
    socket: `${isSecure ? 'wss' : 'ws'}://${host}${isSocket ? path : base + SOCKET_PATH}`,
  }
}

/**
 * Checks the URL of the worker socket that the server named, because the worker sends its token there.
 *
 * A server that listens on all addresses does not know its public address, and names a loopback address. The host of `http` replaces it.
 * @param http the base of the server's REST routes
 * @param given the URL that the server named
 * @throws AgentTasksError `BAD_ANSWER` for a URL of another host, and for one without TLS when `http` has TLS
 */
export function workerSocketOf(http: string, given: string): string {
  const [server, socket] = [new URL(http), URL.canParse(given) ? new URL(given) : undefined]
  const protocols = server.protocol === 'https:' ? ['wss:'] : ['ws:', 'wss:']
  if (socket !== undefined && protocols.includes(socket.protocol)) {
    if (socket.hostname === server.hostname) return given
    if (isLoopback(socket.hostname)) {
      socket.hostname = server.hostname
      return socket.href
    }
  }
  throw new ConnectionError(
    'BAD_ANSWER',
    `The server named ${JSON.stringify(given.slice(0, 200))} as the URL for workers. ` +
      `Expected a URL with ${protocols.join(' or ')} and the host ${server.hostname}, because a worker sends its token to no other host, and not without TLS to an https server. ` +
      `Connect with the host that the server names, or change the server's host or certificate (in a cluster: publicUrl).`,
  )
}

export const isLoopback = (hostname: string): boolean => /^(?:localhost|\[::1\]|127(?:\.\d+){3})$/.test(hostname)

function parseUrl(url: string): URL {
  if (URL.canParse(url)) {
    const parsed = new URL(url)
    if (/^(https?|wss?):$/.test(parsed.protocol)) return parsed
  }
  throw new InvalidInputError('url', url, 'an http, https, ws or wss URL')
}
