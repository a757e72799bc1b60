/**
 * Sessions over streamable HTTP (MCP 2025-11-25, "Session Management"), one for each client. A session ends when the client deletes it, or when it was idle for a time, without a request and without a running task. Then its tasks are cancelled, and its undelivered results are dropped.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node'
import { clearLongTimeout, setLongTimeout, type LongTimer } from '../system/clock.js'
import { sendJson } from '../server/http/json.js'
import { sessionOwner, type Caller } from './callers.js'
import { createLeftSessions, type LeftSessions } from './left-sessions.js'
import { createLentTasks } from './lent-tasks.js'
import { httpExchangeOf } from './http-request.js'
import type { McpApp } from './mcp-app.js'
import { createMcpServer } from './mcp-server.js'

export interface HttpSessions {
  /** Serves a request of a client that uses sessions, which are part of the protocol versions of 2025. */
  serve(request: IncomingMessage, response: ServerResponse, body: unknown, caller: Caller): Promise<void>
  /** The owner of the named session; undefined unless this client has opened it. */
  ownerOf(request: IncomingMessage, caller: Caller): string | undefined
  /** The sessions that an earlier process left in the store. */
  readonly left: LeftSessions
  close(): Promise<void>
}

/** The maximum number of open sessions. */
const MAX_SESSIONS = 1000

/** The maximum number of open sessions of one token. When there are more, the session that has been idle the longest ends. */
const MAX_SESSIONS_PER_TOKEN = 100

/** A session is idle after this long without a request and without an open stream, in ms. */
const IDLE_MS = 300_000

interface Session {
  readonly transport: NodeStreamableHTTPServerTransport
  readonly owner: string
  /** The client that opened the session. Requests with another token are refused. */
  readonly openedBy: string
  inFlight: number
  /** When its last request ended, in ms since the epoch. */
  usedAt: number
  idle: LongTimer | undefined
}

interface SessionLimits {
  readonly max: number
  readonly perToken: number
}

/** @param idleMs how long a session stays open without requests, in ms */
export function createHttpSessions(
  app: McpApp,
  idleMs: number,
  { max, perToken }: SessionLimits = { max: MAX_SESSIONS, perToken: MAX_SESSIONS_PER_TOKEN },
): HttpSessions {
  const { manager, clock, log, session: store } = app.backend
  const sessions = new Map<string, Session>()
  const opening: string[] = []

  let isClosing = false

  const endOwner = (owner: string): void => {
    manager.cancelAll({ owner })
    manager.releaseOwner(owner)
    app.work.confirmations.forget(owner)
  }
  const end = (id: string): void => {
    const session = sessions.get(id)
    if (session === undefined) return
    sessions.delete(id)
    clearLongTimeout(clock, session.idle)
    lent.returnAll(session.owner)
    lent.forget(session.owner)
    // While a server with a store closes, the tasks are kept for the next process.
    if (!isClosing || store === undefined) endOwner(session.owner)
    void session.transport.close().catch((error: unknown) => log('warn', 'closing a session', error))
  }
  const endWhenIdle = (id: string, session: Session): void => {
    clearLongTimeout(clock, session.idle)
    if (session.inFlight > 0) return
    session.idle = setLongTimeout(
      clock,
      () => {
        if (manager.getActiveTasks(session.owner).length === 0) end(id)
        else endWhenIdle(id, session)
      },
      idleMs,
    )
  }
  const left = createLeftSessions(app.backend, endOwner, idleMs)
  const lent = createLentTasks(manager)
  /** The idle sessions of a client with a token. The one that has been idle the longest comes first. */
  const idleOf = ({ owner, isAnonymous }: Caller): (readonly [string, Session])[] =>
    isAnonymous
      ? []
      : [...sessions]
          .filter(([, { openedBy, inFlight, usedAt }]) => {
            return openedBy === owner && inFlight === 0 && clock.now() - usedAt >= IDLE_MS
          })
          .sort(([, a], [, b]) => a.usedAt - b.usedAt)
  const takeOver = (client: Caller, heir: Session): void => {
    const idle = idleOf(client)
    for (const [, { owner }] of idle) lent.lend(owner, heir.owner)
    const own = Array.from(sessions.values()).filter(({ openedBy }) => openedBy === client.owner).length
    const excess = Math.max(own - perToken, sessions.size - max)
    for (const [id, session] of idle.slice(0, Math.max(0, excess))) {
      // What it has lent stays with the new session.
      lent.forget(session.owner)
      end(id)
    }
  }
  const open = async (client: Caller): Promise<Session> => {
    const id = randomUUID()
    const owner = sessionOwner(id, client)
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessioninitialized: () => {
        sessions.set(id, session)
        left.handOver(client, owner)
        takeOver(client, session)
      },
      onsessionclosed: () => end(id),
    })
    const session: Session = {
      transport,
      owner,
      openedBy: client.owner,
      inFlight: 0,
      usedAt: clock.now(),
      idle: undefined,
    }
    const onNamed = (taskIds: readonly string[]): void => left.handOverNamed(client, taskIds, owner)
    const server = createMcpServer(app, { owner, isAnonymous: false, onNamed }, 'subscribe', httpExchangeOf)
    const stop = server.onclose
    server.onclose = () => {
      stop?.()
      end(id)
    }
    server.onerror = (error) => log('warn', 'session', error)
    await server.connect(transport)
    return session
  }

  /** Clients without a token are indistinguishable, so only the total limit applies to them. */
  const refuseSession = (client: Caller): string | undefined => {
    const { owner: openedBy, isAnonymous } = client
    // Idle sessions of the client make room.
    const idle = idleOf(client).length
    if (sessions.size + opening.length - idle >= max) return `There are too many sessions (${max}). Try again later.`
    if (isAnonymous) return undefined
    const owners = [...Array.from(sessions.values(), (session) => session.openedBy), ...opening]
    const own = owners.filter((owner) => owner === openedBy).length
    return own - idle < perToken
      ? undefined
      : `This token has too many sessions (${perToken}). Delete one that is not used.`
  }

  const namedIn = ({ headers: { 'mcp-session-id': id } }: IncomingMessage): Session | undefined =>
    typeof id === 'string' ? sessions.get(id) : undefined

  return {
    left,
    ownerOf: (request, { owner }) => {
      const named = namedIn(request)
      return named?.openedBy === owner ? named.owner : undefined
    },
    serve: async (request, response, body, client) => {
      const { owner: openedBy } = client
      const id = request.headers['mcp-session-id']
      const named = namedIn(request)
      const known = named?.openedBy === openedBy ? named : undefined
      // After a restart of the server, some clients initialize again and still send the id of the earlier session.
      if (id !== undefined && known === undefined && methodOf(body) !== 'initialize') {
        sendError(response, 404, 'Session not found. Initialize a new one.', { id: idOf(body) })
        return
      }
      if (known === undefined) {
        const refusal = refuseSession(client)
        if (refusal !== undefined) {
          sendError(response, 503, refusal, { id: idOf(body) })
          return
        }
        opening.push(openedBy)
      }
      const session = known ?? (await open(client))
      session.inFlight += 1
      if (known !== undefined) lent.giveBack(session.owner)
      clearLongTimeout(clock, session.idle)
      response.once('close', () => {
        session.inFlight -= 1
        session.usedAt = clock.now()
        const sessionId = session.transport.sessionId
        if (sessionId !== undefined && sessions.has(sessionId)) endWhenIdle(sessionId, session)
      })
      try {
        await session.transport.handleRequest(request, response, body)
      } finally {
        if (known === undefined) opening.splice(opening.indexOf(openedBy), 1)
      }
      // The request was not an initialize: no session was created.
      if (known === undefined && session.transport.sessionId === undefined) await session.transport.close()
    },
    close: async () => {
      isClosing = true
      left.close()
      const open = [...sessions]
      for (const [id] of open) end(id)
      await Promise.all(open.map(([, { transport }]) => transport.close()))
    },
  }
}

/**
 * Answers with a JSON-RPC error.
 * @param options.id the id of the request; default: null, because the request was not read
 */
export function sendError(
  response: ServerResponse,
  status: number,
  message: string,
  { id = null, headers }: { readonly id?: RequestId | null; readonly headers?: Readonly<Record<string, string>> } = {},
): void {
  sendJson(response, status, { jsonrpc: '2.0', id, error: { code: -32000, message } }, headers)
}

type RequestId = string | number

export function methodOf(body: unknown): unknown {
  return (Object(body) as { readonly method?: unknown }).method
}

/** The id of a request; null for a notification, and for what is no message. */
export function idOf(body: unknown): RequestId | null {
  const { id } = Object(body) as { readonly id?: unknown }
  return typeof id === 'string' || typeof id === 'number' ? id : null
}
