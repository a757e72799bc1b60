/** The server over stdio: one client, whose end is the end of everything. */
import type { Readable, Writable } from 'node:stream'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import { createBackend, type BackendOptions } from './backend.js'
import { createMcpApp, createMcpServer, type McpApp } from './mcp-server.js'

/** Whom a stdio server talks to, and what it serves. */
export interface StdioServerOptions extends BackendOptions {
  /** Default: `process.stdin`. */
  readonly input?: Readable
  /** Nothing but protocol is written to it. Default: `process.stdout`. */
  readonly output?: Writable
}

/** A server that talks to one client. */
export interface StdioServer {
  /** Resolves when the client is gone, or `close` was called, and nothing of its tasks is left. */
  readonly closed: Promise<void>
  /** Ends every task, and hangs up. */
  close(): Promise<void>
}

/** The owner of all tasks: there is one client. */
const OWNER = 'main'

/**
 * Serves MCP over stdio, to clients of both generations (2025 and 2026-07-28).
 * @throws InvalidInputError for a configuration that does not fit; nothing was started then
 */
export function startMcpStdioServer(options: StdioServerOptions = {}): StdioServer {
  return serveApp(createMcpApp(createBackend(options)), options)
}

function serveApp(app: McpApp, { input = process.stdin, output = process.stdout }: StdioServerOptions): StdioServer {
  const { report } = app.backend
  const transport = new StdioServerTransport(input, output)
  const handle = serveStdio(
    ({ era }) => createMcpServer(app, { owner: OWNER, isAnonymous: false }, era === 'modern' ? 'listen' : 'subscribe'),
    { transport, onerror: (error) => report('warn', 'connection', error) },
  )
  let closing: Promise<void> | undefined
  let markClosed: () => void = () => undefined
  const closed = new Promise<void>((resolve) => (markClosed = resolve))
  const close = (): Promise<void> =>
    (closing ??= (async () => {
      for (const stream of [input, output]) for (const event of ['end', 'close']) stream.off(event, onGone)
      await handle.close().catch((error: unknown) => report('warn', 'hanging up', error))
      await app.close()
      markClosed()
    })())
  const onGone = (): void => void close()
  // A client that is killed says nothing: the end of its pipes is all there is.
  for (const stream of [input, output]) for (const event of ['end', 'close']) stream.on(event, onGone)
  return { closed, close }
}
