/**
 * The MCP server over stdio. It has one client, and closes when the client disconnects. Its work begins with the first request that needs it: clients
 * also start servers only to check them, and end them at once.
 */
import type { Readable, Writable } from 'node:stream'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { checkOptions, objectWith } from '../protocol/option-checks.js'
import { prepareBackend, serverOptionTypes, type Backend, type McpServerOptions } from './backend.js'
import { STDIO_OWNER } from './callers.js'
import { ClientIdentity } from './client-identity.js'
import { AnsweringStdioTransport } from './exchange.js'
import { createMcpApp } from './mcp-app.js'
import { createMcpServer } from './mcp-server.js'

/** Options of `startMcpStdioServer`. */
export interface McpStdioServerOptions extends McpServerOptions {
  /** The stream to read messages from. Default: `process.stdin`. */
  readonly input?: Readable
  /** The stream for messages, which must not be used for other output. Default: `process.stdout`. */
  readonly output?: Writable
}

/** An MCP server over stdio, which has one client. */
export interface McpStdioServer {
  /** Resolves when the client has disconnected or `close` was called, and every task and program has ended. */
  readonly closed: Promise<void>
  /** @internal Begins the work of the server, and returns the managers that the page shows. */
  shown(): Promise<Pick<Backend, 'manager' | 'taskManager'>>
  /**
   * Disconnects, and resolves when every run has ended, except programs that survive the server. Without a store, all tasks are cancelled. With a store,
   * tasks that wait and programs that survive go on with the next server of the session, which runs the others again or reports them.
   */
  close(): Promise<void>
  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Serves MCP over stdio, for clients of protocol versions 2025 and 2026-07-28.
 * @returns the server, which already reads messages
 * @throws INVALID_INPUT for an invalid configuration, or an unknown or wrong option
 * @throws StoreError when the store cannot be used
 * @throws INVALID_SETTING for a setting that needs a store, when there is none
 */
export function startMcpStdioServer(options: McpStdioServerOptions = {}): McpStdioServer {
  checkOptions(options, {
    ...serverOptionTypes,
    input: objectWith('a stream', 'on', 'read'),
    output: objectWith('a stream', 'on', 'write'),
  })
  const { input = process.stdin, output = process.stdout } = options
  const identity = new ClientIdentity()
  const app = createMcpApp(
    prepareBackend(options, () => identity.key),
    undefined,
    identity,
  )
  const { log } = app.backend
  app.whenBegun(() => {
    const { manager } = app.backend
    // The store may have tasks of other conversations of this client, and from a server over HTTP. This conversation gets them.
    const owners = new Set(manager.getAllTasks().map(({ owner }) => owner))
    for (const owner of owners) manager.releaseOwner(owner, { to: STDIO_OWNER })
    return () => undefined
  })
  const transport = new AnsweringStdioTransport(input, output)
  const handle = serveStdio(
    ({ era }) => {
      const caller = { owner: STDIO_OWNER, isAnonymous: false, isLocal: true }
      return createMcpServer(app, caller, era === 'modern' ? 'listen' : 'subscribe', transport.exchangeOf)
    },
    { transport, onerror: (error) => log('warn', 'connection', error) },
  )
  let closing: Promise<void> | undefined
  let markClosed: () => void = () => undefined
  const closed = new Promise<void>((resolve) => (markClosed = resolve))
  const close = (): Promise<void> =>
    (closing ??= (async () => {
      for (const stream of [input, output]) for (const event of ['end', 'close']) stream.off(event, onGone)
      // The tasks are left first, because the end of the connection cancels what the client waits for.
      const left = app.close()
      await handle.close().catch((error: unknown) => log('warn', 'disconnecting', error))
      await left
      markClosed()
    })())
  const onGone = (): void => void close()
  // If the client is killed, the server notices it only by the end of its streams.
  for (const stream of [input, output]) for (const event of ['end', 'close']) stream.on(event, onGone)
  const shown = async (): Promise<Backend> => {
    await app.begin()
    return app.backend
  }
  return { closed, shown, close, [Symbol.asyncDispose]: close }
}
