/** The MCP server over stdio. It has one client, and closes when the client disconnects. */
import type { Readable, Writable } from 'node:stream'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { checkOptions, objectWith } from '../protocol/option-checks.js'
import { createBackend, serverOptionTypes, type Backend, type McpServerOptions } from './backend.js'
import { STDIO_OWNER } from './callers.js'
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
  /** @internal The managers that the page shows. */
  readonly shown: Pick<Backend, 'manager' | 'taskManager'>
  /**
   * Disconnects, stops every task and every program, and resolves when they have ended. Without a store, running tasks are cancelled. With a store, the
   * next server of the session reports them as failed, or runs them again if their subagent has `retry`.
   */
  close(): Promise<void>
  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * Serves MCP over stdio, for clients of protocol versions 2025 and 2026-07-28.
 * @returns the server, which already reads messages
 * @throws InvalidInputError for an invalid configuration, or an unknown or wrong option
 * @throws StoreError when the store cannot be opened
 * @throws InvalidSettingError for a setting that needs a store, when there is none
 */
export function startMcpStdioServer(options: McpStdioServerOptions = {}): McpStdioServer {
  checkOptions(options, {
    ...serverOptionTypes,
    input: objectWith('a stream', 'on', 'read'),
    output: objectWith('a stream', 'on', 'write'),
  })
  const { input = process.stdin, output = process.stdout } = options
  const app = createMcpApp(createBackend(options))
  const { log, manager } = app.backend
  // The store may have tasks from a server over HTTP, with other owners. This client gets them.
  const owners = new Set(manager.getAllTasks().map(({ owner }) => owner))
  for (const owner of owners) manager.releaseOwner(owner, { to: STDIO_OWNER })
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
      await handle.close().catch((error: unknown) => log('warn', 'disconnecting', error))
      await app.close()
      markClosed()
    })())
  const onGone = (): void => void close()
  // If the client is killed, the server notices it only by the end of its streams.
  for (const stream of [input, output]) for (const event of ['end', 'close']) stream.on(event, onGone)
  return { closed, shown: app.backend, close, [Symbol.asyncDispose]: close }
}
