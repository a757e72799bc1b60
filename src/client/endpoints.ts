/** The URLs of a server's REST routes and its client socket, from the one URL that the caller gives. */
import { InvalidInputError } from '../errors.js'

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
 * @throws InvalidInputError for anything but an http, https, ws or wss URL
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
