/**
 * Sessions of clients of 2025 over streamable HTTP: each is a client of its own. It ends when the client says so, or when it
 * has been silent for long and nothing of it runs; then its tasks are cancelled, and what it was owed is owed to nobody.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node'
import { clearLongTimeout, setLongTimeout, type LongTimer } from '../clock.js'
import type { Caller } from './callers.js'
import { createMcpServer, type McpApp } from './mcp-server.js'

export interface HttpSessions {
  /** Serves a request that is no request of 2026-07-28. */
  serve(request: IncomingMessage, response: ServerResponse, body: unknown, caller: Caller): Promise<void>
  close(): Promise<void>
}

/** The most sessions that are open at once. */
const MAX_SESSIONS = 1000

interface Session {
  readonly transport: NodeStreamableHTTPServerTransport
  readonly owner: string
  /** Whose token it was opened with: nobody else may use it. */
  readonly openedBy: string
  inFlight: number
  idle: LongTimer | undefined
}

/**
 * @param idleMs how long a session may be silent, in ms
 * @param most how many may be open at once
 */
export function createHttpSessions(app: McpApp, idleMs: number, most = MAX_SESSIONS): HttpSessions {
  const { manager, clock, report } = app.backend
  const sessions = new Map<string, Session>()

  const end = (id: string): void => {
    const session = sessions.get(id)
    if (session === undefined) return
    sessions.delete(id)
    clearLongTimeout(clock, session.idle)
    for (const task of manager.getRunningTasks(session.owner)) manager.cancelTask(task.id)
    manager.releaseOwner(session.owner)
    void session.transport.close().catch((error: unknown) => report('warn', 'closing a session', error))
  }
  const endWhenIdle = (id: string, session: Session): void => {
    clearLongTimeout(clock, session.idle)
    if (session.inFlight > 0) return
    session.idle = setLongTimeout(
      clock,
      () => {
        if (manager.getRunningTasks(session.owner).length === 0) end(id)
        else endWhenIdle(id, session)
      },
      idleMs,
    )
  }
  const open = async (openedBy: string): Promise<Session> => {
    const id = randomUUID()
    const owner = `session-${id}`
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessioninitialized: () => void sessions.set(id, session),
      onsessionclosed: () => end(id),
    })
    const session: Session = { transport, owner, openedBy, inFlight: 0, idle: undefined }
    const server = createMcpServer(app, { owner, isAnonymous: false }, 'subscribe')
    const stop = server.onclose
    server.onclose = () => {
      stop?.()
      end(id)
    }
    server.onerror = (error) => report('warn', 'session', error)
    await server.connect(transport)
    return session
  }

  return {
    serve: async (request, response, body, { owner: openedBy }) => {
      const id = request.headers['mcp-session-id']
      const known = typeof id === 'string' ? sessions.get(id) : undefined
      if (id !== undefined && known?.openedBy !== openedBy) {
        answer(response, 404, 'There is no such session. Initialize a new one.')
        return
      }
      if (known === undefined && sessions.size >= most) {
        answer(response, 503, 'There are too many sessions.')
        return
      }
      const session = known ?? (await open(openedBy))
      session.inFlight += 1
      clearLongTimeout(clock, session.idle)
      response.once('close', () => {
        session.inFlight -= 1
        const sessionId = session.transport.sessionId
        if (sessionId !== undefined && sessions.has(sessionId)) endWhenIdle(sessionId, session)
      })
      await session.transport.handleRequest(request, response, body)
      // What did not begin a session needs none.
      if (known === undefined && session.transport.sessionId === undefined) await session.transport.close()
    },
    close: async () => {
      const open = [...sessions]
      for (const [id] of open) end(id)
      await Promise.all(open.map(([, { transport }]) => transport.close()))
    },
  }
}

/** An answer that the protocol has no part in. */
export function answer(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message } }))
}
