/** HTTP servers that listen, and stop. */
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { InvalidSettingError } from '../errors.js'

export function createServer(tls: { cert: string; key: string } | undefined, listener: RequestListener): Server {
  if (tls === undefined) return createHttpServer(listener)
  try {
    return createHttpsServer(tls, listener)
  } catch (cause) {
    const error = new InvalidSettingError(
      'TLS_CERT_PATH',
      '(a certificate and a key)',
      'a PEM certificate and the key that belongs to it',
    )
    throw Object.assign(error, { cause })
  }
}

/**
 * @param setting whose value the port is
 * @returns the port it listens at
 * @throws InvalidSettingError when the port is taken or may not be used
 */
export function listen(server: Server, host: string, port: number, setting: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => {
      const reasons: Readonly<Record<string, readonly [string, unknown, string]>> = {
        EADDRINUSE: [setting, port, 'a port that is free'],
        EACCES: [setting, port, 'a port that this user may open'],
        EADDRNOTAVAIL: ['HOST', host, 'an address of this machine'],
        ENOTFOUND: ['HOST', host, 'an address of this machine'],
      }
      const reason = reasons[error.code ?? '']
      reject(reason === undefined ? error : new InvalidSettingError(...reason))
    }
    server.once('error', onError)
    server.listen(port, host, () => {
      server.off('error', onError)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

/** Takes no more connections; resolves when those that are there have ended. */
export function stopListening(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeIdleConnections()
  })
}

/** A URL of a server; one that listens everywhere is named by its loopback address. */
export function urlOf(scheme: string, host: string, port: number): string {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `${scheme}://${name.includes(':') ? `[${name}]` : name}:${port}`
}
