/** The MCP server over streamable HTTP. Each request of protocol version 2026-07-28 stands alone; clients of 2025 have sessions. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { toNodeHandler, toWebRequest, type NodeIncomingMessageLike } from '@modelcontextprotocol/node'
import { createMcpHandler, isLegacyRequest, type McpServerFactory } from '@modelcontextprotocol/server'
import { omitUndefined } from '../data/omit-undefined.js'
import { InvalidSettingError } from '../errors.js'
import { createAccess, unauthorized, type Access } from '../server/http/access.js'
import { trackConnections } from '../server/http/connections.js'
import { answerPreflight, setCorsHeaders, type CorsOptions } from '../server/http/cors.js'
import { readBody, sendJson } from '../server/http/json.js'
import { parseJson } from '../data/parse-json.js'
import { createServer, listen, stopListening, urlOf } from '../server/http/listening.js'
import type { AgentConfig } from '../protocol/agent-config.js'
import { aName, checkOptions, integerFrom } from '../protocol/option-checks.js'
import { isLoopback } from '../protocol/server-config.js'
import { createBackend, serverOptionTypes, type Backend, type McpServerOptions } from './backend.js'
import { callerOf } from './callers.js'
import { EVENTS_PATH, postClientEvent } from './events.js'
import { httpExchange } from './exchange.js'
import { authInfoOf, httpExchangeOf, requestOf } from './http-request.js'
import { createHttpSessions, idOf, methodOf, sendError } from './http-sessions.js'
import { createMcpApp, type McpApp } from './mcp-app.js'
import { createMcpServer } from './mcp-server.js'
import { feedResources } from './resources.js'

/** Options of `startMcpHttpServer`. */
export interface McpHttpServerOptions extends McpServerOptions {
  /** The address to listen on. Overrides `http.host` of the configuration. */
  readonly host?: string
  /** The port to listen on; 0 picks a free one. Overrides `http.port` of the configuration. */
  readonly port?: number
}

/** A listening MCP server. */
export interface McpHttpServer {
  /** The MCP endpoint, such as `http://127.0.0.1:3500/mcp`. */
  readonly url: string
  /** @internal The managers that the page shows. */
  shown(): Promise<Pick<Backend, 'manager' | 'taskManager'>>
  /**
   * Ends every session, stops every task and every program, and resolves when they have ended. Without a store, running tasks are cancelled. With a
   * store, the next server of the session reports them.
   */
  close(): Promise<void>
  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** The largest request body, in bytes. */
const MAX_BODY_BYTES = 4 * 1024 * 1024
/** The maximum number of open network connections of one client address. */
const MAX_CONNECTIONS = 2000
const CORS: CorsOptions = {
  methods: ['GET', 'POST', 'DELETE', 'OPTIONS'],
  exposedHeaders: ['mcp-session-id', 'mcp-protocol-version', 'www-authenticate'],
}
/**
 * The maximum size of a `subscriptions/listen` request, in characters. The limit is low, because the server keeps the request while the client listens.
 */
const MAX_LISTEN_CHARS = 65_536
/** The maximum depth of nested objects and arrays in a request body. */
const MAX_NESTING = 100

/**
 * Serves MCP over streamable HTTP, for clients of protocol versions 2025 and 2026-07-28.
 * @returns the server, once it listens
 * @throws INVALID_INPUT for an invalid configuration, or an unknown or wrong option
 * @throws StoreError when the store cannot be opened
 * @throws INVALID_SETTING when the port is in use
 * @throws INVALID_SETTING when the address is not a loopback address and no token is configured
 * @throws INVALID_SETTING for a setting that needs a store, when there is none
 */
export async function startMcpHttpServer(options: McpHttpServerOptions = {}): Promise<McpHttpServer> {
  checkOptions(options, { ...serverOptionTypes, host: aName, port: integerFrom(0) })
  const app = createMcpApp(createBackend(options))
  // Until the tasks of an earlier process are taken over, the server could not report them.
  await app.backend.manager.recovered
  return listenWith(app, options)
}

/** Serves an existing app. The app is closed with the server, and also when the server cannot start. */
export async function listenWith(
  app: McpApp,
  { host, port }: Pick<McpHttpServerOptions, 'host' | 'port'>,
): Promise<McpHttpServer> {
  const { config } = app.backend
  const http = { ...config.http, ...omitUndefined({ host, port }) }
  try {
    const handler = createRequestHandler(app, createHttpAccess(http), http)
    const server = createServer(undefined, (request, response) => void handler.serve(request, response))
    const network = trackConnections([server], MAX_CONNECTIONS)
    const settings = { host: 'http.host', port: 'http.port' }
    const bound = await listen(server, http.host, http.port, settings).catch(async (error: unknown) => {
      await handler.close()
      throw error
    })
    let closing: Promise<void> | undefined
    const close = (): Promise<void> =>
      (closing ??= (async () => {
        const stopped = stopListening(server)
        // The tasks are left first, because the end of a connection cancels what its client waits for.
        const left = app.close()
        await handler.close()
        network.destroyAll()
        await stopped
        await left
      })())
    const url = urlOf('http', http.host, bound) + http.path
    return { url, shown: () => Promise.resolve(app.backend), close, [Symbol.asyncDispose]: close }
  } catch (error) {
    await app.close()
    throw error
  }
}

/** @throws INVALID_SETTING when other machines could connect without a token */
function createHttpAccess({ host, tokens, allowedHosts, allowedOrigins }: AgentConfig['http']): Access {
  if (!isLoopback(host) && tokens.length === 0) {
    throw new InvalidSettingError('http.host', host, 'a loopback address, or http.tokens with at least one token')
  }
  return createAccess({ host, tokens, allowedHosts, origins: allowedOrigins })
}

function createRequestHandler(app: McpApp, access: Access, { path, sessionIdleMs }: AgentConfig['http']) {
  const { backend } = app
  const { log, clock } = backend
  const onerror = (error: Error): void => log('warn', 'request', error)
  const sessions = createHttpSessions(app, sessionIdleMs)
  const create: McpServerFactory = ({ authInfo }) => {
    const { caller } = requestOf(authInfo)
    const onNamed = (taskIds: readonly string[]): void => sessions.left.handOverNamed(caller, taskIds, caller.owner)
    sessions.left.handOver(caller, caller.owner)
    return createMcpServer(app, { ...caller, onNamed }, 'none', httpExchangeOf)
  }
  const modern = createMcpHandler(create, { legacy: 'reject', onerror })
  // A call may take longer than clients wait for response headers (`fetch`: 300 s). An event stream sends its headers at once.
  const calls = createMcpHandler(create, { legacy: 'reject', onerror, responseMode: 'sse' })
  const [serveModern, serveCall] = [toNodeHandler(modern, { onerror }), toNodeHandler(calls, { onerror })]
  // A client that listens gets notifications for the URIs that it names. A client that knows the id of a task may see the task, so there is no further check.
  const stopFeed = feedResources(
    app.work.changes.of(),
    {
      onListChange: () => modern.notify.resourcesChanged(),
      onUpdate: (uri) => modern.notify.resourceUpdated(uri),
    },
    clock,
  )

  const route = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.setHeader('x-content-type-options', 'nosniff')
    setCorsHeaders(access, request, response, CORS)
    const foreign = access.checkSource(request)
    if (foreign === undefined && answerPreflight(access, request, response, CORS)) return
    const [at = ''] = (request.url ?? '').split('?', 1)
    // Clients look here for an authorization server. There is none, and an answer of 401 would make them look further.
    if (foreign === undefined && at.startsWith('/.well-known/')) {
      sendError(response, 404, `There is nothing at ${at}.`)
      return
    }
    const refusal = foreign ?? (access.isAuthorized(request) ? undefined : unauthorized(request))
    if (refusal !== undefined) {
      sendError(response, refusal.status, refusal.error, { headers: { connection: 'close', ...refusal.headers } })
      return
    }
    if (at === EVENTS_PATH && at !== path) {
      await postEventOf(request, response)
      return
    }
    if (at !== path) {
      sendError(response, 404, `MCP is served at ${path}.`)
      return
    }
    const text = request.method === 'POST' ? await readBody(request, MAX_BODY_BYTES) : ''
    if (text === undefined) {
      sendError(
        response,
        413,
        `The request body is larger than ${MAX_BODY_BYTES} bytes.`,
        request.complete ? {} : { headers: { connection: 'close' } },
      )
      return
    }
    const body = request.method === 'POST' ? bodyOf(text) : undefined
    if (methodOf(body) === 'subscriptions/listen' && text.length > MAX_LISTEN_CHARS) {
      const message = `A subscriptions/listen request can have at most ${MAX_LISTEN_CHARS} characters.`
      sendError(response, 413, message, { id: idOf(body) })
      return
    }
    const caller = callerOf(request)
    // The cast is needed, because Node's types have `undefined` where these types have optional fields.
    const incoming = Object.assign(request, {
      auth: authInfoOf({ caller, exchange: httpExchange(response) }),
    }) as NodeIncomingMessageLike
    const isLegacy = await isLegacyRequest(await toWebRequest(incoming, body), body)
    if (isLegacy) await sessions.serve(request, response, body, caller)
    else await (methodOf(body) === 'tools/call' ? serveCall : serveModern)(incoming, response, body)
  }

  const postEventOf = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const text = request.method === 'POST' ? await readBody(request, MAX_BODY_BYTES) : undefined
    if (text === undefined) {
      const [status, error] =
        request.method === 'POST'
          ? [413, `The request body is larger than ${MAX_BODY_BYTES} bytes.`]
          : [405, 'Use POST.']
      request.resume()
      sendJson(response, status, { error }, request.complete || status !== 413 ? {} : { connection: 'close' })
      return
    }
    const caller = callerOf(request)
    const parsed = parseJson(text, MAX_NESTING)
    const answer =
      'value' in parsed
        ? await postClientEvent(backend.manager, caller, sessions.ownerOf(request, caller), parsed.value)
        : { status: 400, body: { error: parsed.message, code: parsed.code } }
    sendJson(response, answer.status, answer.body)
  }

  return {
    serve: async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      try {
        await route(request, response)
      } catch (error) {
        log('error', 'a request failed', error)
        if (response.headersSent) response.destroy()
        else sendError(response, 500, 'Internal error.')
      }
    },
    close: async () => {
      stopFeed()
      await sessions.close()
      await Promise.all([modern.close(), calls.close()])
    },
  }
}

/** Parses a body. A body that is not JSON is passed on as text, and the SDK answers it with a JSON-RPC error. */
function bodyOf(text: string): unknown {
  const parsed = parseJson(text, MAX_NESTING)
  return 'value' in parsed ? parsed.value : text
}
