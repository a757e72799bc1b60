/** The server over streamable HTTP: requests of 2026-07-28 stand alone, clients of 2025 have sessions. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toNodeHandler, toWebRequest, type NodeIncomingMessageLike } from '@modelcontextprotocol/node'
import { createMcpHandler, isLegacyRequest, type AuthInfo } from '@modelcontextprotocol/server'
import { InvalidSettingError } from '../errors.js'
import { createBackend, type BackendOptions } from './backend.js'
import type { Caller } from './callers.js'
import { createHttpAccess, type HttpAccess } from './http-access.js'
import { answer, createHttpSessions } from './http-sessions.js'
import { createMcpApp, createMcpServer, type McpApp } from './mcp-server.js'
import { feedResources } from './resource-feed.js'
import { resourceChanges } from './resources.js'

/** Where an HTTP server listens, and what it serves. */
export interface HttpServerOptions extends BackendOptions {
  /** The address to listen at. Beats `http.host` of the configuration. */
  readonly host?: string
  /** The port, 0 for a free one. Beats `http.port` of the configuration. */
  readonly port?: number
}

/** A server that listens. */
export interface HttpServer {
  /** Where MCP is served, as in `http://127.0.0.1:3500/mcp`. */
  readonly url: string
  /** Ends every session and every task; resolves when nothing of them is left. */
  close(): Promise<void>
}

/** The largest request, in bytes. */
const MAX_BODY_BYTES = 4 * 1024 * 1024

/**
 * Serves MCP over streamable HTTP, to clients of both generations (2025 and 2026-07-28).
 * @throws InvalidInputError for a configuration that does not fit, InvalidSettingError for a port that is taken or a host
 *   that needs tokens; nothing is left open then
 */
export async function startMcpHttpServer(options: HttpServerOptions = {}): Promise<HttpServer> {
  const backend = createBackend(options)
  return listenWith(createMcpApp(backend), options)
}

/** Serves an app that is there already; it is closed with the server, and when the server cannot start. */
export async function listenWith(
  app: McpApp,
  { host, port }: Pick<HttpServerOptions, 'host' | 'port'>,
): Promise<HttpServer> {
  const { config } = app.backend
  const http = { ...config.http, ...(host !== undefined && { host }), ...(port !== undefined && { port }) }
  try {
    const access = createHttpAccess(http)
    const served = serveRequests(app, access, http.path, http.sessionIdleMs)
    const server = createServer((request, response) => void served.serve(request, response))
    const bound = await listen(server, http.host, http.port).catch(async (error: unknown) => {
      await served.close()
      throw error
    })
    const name = http.host.includes(':') ? `[${http.host}]` : http.host
    let closing: Promise<void> | undefined
    return {
      url: `http://${name}:${bound}${http.path}`,
      close: () =>
        (closing ??= (async () => {
          const stopped = new Promise<void>((resolve) => server.close(() => resolve()))
          await served.close()
          server.closeAllConnections()
          await stopped
          await app.close()
        })()),
    }
  } catch (error) {
    await app.close()
    throw error
  }
}

function serveRequests(app: McpApp, access: HttpAccess, path: string, sessionIdleMs: number) {
  const { backend } = app
  const { report, clock } = backend
  const onerror = (error: Error): void => report('warn', 'request', error)
  const sessions = createHttpSessions(app, sessionIdleMs)
  const modern = createMcpHandler(
    ({ authInfo }) => createMcpServer(app, (authInfo?.extra as { caller: Caller }).caller, 'none'),
    { legacy: 'reject', maxRequestBodySize: MAX_BODY_BYTES, onerror },
  )
  const serveModern = toNodeHandler(modern, { onerror, maxRequestBodySize: MAX_BODY_BYTES })
  // Whoever listens named the tasks, so they know their ids.
  const feed = feedResources(
    resourceChanges(backend),
    () => true,
    {
      onListChange: () => modern.notify.resourcesChanged(),
      onUpdate: (uri) => modern.notify.resourceUpdated(uri),
    },
    clock,
  )

  const route = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.setHeader('x-content-type-options', 'nosniff')
    const refusal = access.check(request)
    if (refusal !== undefined) {
      if (refusal.status === 401) response.setHeader('www-authenticate', 'Bearer')
      response.setHeader('connection', 'close')
      answer(response, refusal.status, refusal.message)
      return
    }
    if ((request.url ?? '').split('?', 1)[0] !== path) {
      answer(response, 404, `MCP is served at ${path}.`)
      return
    }
    const caller = access.callerOf(request)
    // Node's own types allow undefined where these have optional fields.
    const incoming = Object.assign(request, { auth: authInfoOf(caller) }) as NodeIncomingMessageLike
    const probe = await toWebRequest(incoming, undefined, { maxRequestBodySize: MAX_BODY_BYTES })
    const isLegacy = await isLegacyRequest(probe, undefined, { maxRequestBodySize: MAX_BODY_BYTES })
    const body = await parsedBodyOf(probe)
    if (isLegacy) await sessions.serve(request, response, body, caller)
    else await serveModern(incoming, response, body)
  }

  return {
    serve: async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      try {
        await route(request, response)
      } catch (error) {
        const isTooLarge = (error as { status?: unknown } | undefined)?.status === 413
        if (!isTooLarge) report('error', 'a request failed', error)
        if (response.headersSent) response.destroy()
        else answer(response, isTooLarge ? 413 : 500, isTooLarge ? 'The request is too large.' : 'Internal error.')
      }
    },
    close: async () => {
      feed.close()
      await sessions.close()
      await modern.close()
    },
  }
}

/** The caller, where the handler of the SDK passes on what is known of a request. */
function authInfoOf(caller: Caller): AuthInfo {
  return { token: '', clientId: caller.owner, scopes: [], extra: { caller } }
}

/** What is no JSON is left to the protocol, which says so. */
async function parsedBodyOf(request: Request): Promise<unknown> {
  if (request.method !== 'POST') return undefined
  const text = await request.text()
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const reasons: Readonly<Record<string, readonly [string, unknown, string]>> = {
        EADDRINUSE: ['http.port', port, 'a port that is free'],
        EACCES: ['http.port', port, 'a port that this user may open'],
        EADDRNOTAVAIL: ['http.host', host, 'an address of this machine'],
        ENOTFOUND: ['http.host', host, 'an address of this machine'],
      }
      const reason = reasons[error.code ?? '']
      reject(reason === undefined ? error : new InvalidSettingError(...reason))
    })
    server.listen(port, host, () => resolve((server.address() as AddressInfo).port))
  })
}
