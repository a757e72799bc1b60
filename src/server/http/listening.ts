/** Starts and stops an HTTP or HTTPS server, and returns its URL. */
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { InvalidSettingError } from '../../errors.js'
import { inTurn } from './in-turn.js'

/** How long a TLS handshake may take, in ms. */
const HANDSHAKE_MS = 10_000

/** @param serve called with each request. The requests of one connection are served one at a time */
export function createServer(tls: { cert: string; key: string } | undefined, serve: RequestListener): Server {
  const listener = inTurn(serve)
  if (tls === undefined) return createHttpServer(listener)
  try {
    return createHttpsServer({ ...tls, handshakeTimeout: HANDSHAKE_MS }, listener)
  } catch (cause) {
    const error = new InvalidSettingError(
      'TLS_CERT_PATH',
      '(a certificate and a key)',
      'a PEM certificate and its private key',
    )
    throw Object.assign(error, { cause })
  }
}

/** The names of the settings for the address and the port, for the errors of `listen`. */
export interface ListenSettings {
  readonly host: string
  readonly port: string
  /** Returns the error text for a port that is in use. It can say what uses the port and how to choose another one. */
  readonly whenTaken?: (port: number) => Promise<string>
}

/**
 * Starts to listen.
 * @returns the port in use. It differs from `port` when that is 0
 * @throws INVALID_SETTING when the address or the port cannot be used
 */
export function listen(server: Server, host: string, port: number, settings: ListenSettings): Promise<number> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => {
      const reasons: Readonly<Record<string, readonly [string, unknown, string]>> = {
        EADDRINUSE: [settings.port, port, 'a port that is free, or 0 to pick one'],
        EACCES: [settings.port, port, 'a port that this user may open'],
        EADDRNOTAVAIL: [settings.host, host, 'an address of this machine'],
        ENOTFOUND: [settings.host, host, 'an address of this machine'],
      }
      const reason = reasons[error.code ?? '']
      if (error.code === 'EADDRINUSE' && settings.whenTaken !== undefined) {
        const taken = (message: string): InvalidSettingError =>
          new InvalidSettingError(settings.port, port, 'a port that is free, or 0 to pick one', message)
        settings.whenTaken(port).then((message) => reject(taken(message)), reject)
        return
      }
      reject(reason === undefined ? error : new InvalidSettingError(...reason))
    }
    server.once('error', onError)
    server.listen(port, host, () => {
      server.off('error', onError)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

/** Stops accepting connections. Resolves when the open connections have ended. */
export function stopListening(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeIdleConnections()
  })
}

/** Returns the URL of a server. A wildcard address is replaced by the loopback address. */
export function urlOf(scheme: string, host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `${scheme}://${name.includes(':') ? `[${name}]` : name}:${port}`
}
