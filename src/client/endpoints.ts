/** Where a server's REST routes and its client socket are, by the one URL that a caller gives. */
import { InvalidInputError } from '../errors.js'

/** Without a slash at the end. */
export interface Endpoints {
  /** Base of the REST routes. */
  readonly http: string
  /** The client socket. */
  readonly socket: string
}

const SOCKET_PATH = '/ws'

/**
 * Reads the URL of a server: of its HTTP port (its socket is at `/ws`), or of its client socket.
 * @throws InvalidInputError when it is no http, https, ws or wss URL
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

function parseUrl(url: string): URL {
  if (URL.canParse(url)) {
    const parsed = new URL(url)
    if (/^(https?|wss?):$/.test(parsed.protocol)) return parsed
  }
  throw new InvalidInputError('url', url, 'an http, https, ws or wss URL')
}
