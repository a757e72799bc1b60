/** Makes the transport to an MCP server, and describes failures of the server in words. */
import { SdkError, SdkErrorCode, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client'
import type { Clock } from '../../system/clock.js'
import { describeFailure } from '../../protocol/outcomes.js'
import { preview } from '../../data/preview.js'
import { createChildTransport, type ChildProgram } from './child-transport.js'
import { createDelay } from './delay.js'

/** Where an MCP server is: a program that speaks MCP over stdio, a streamable HTTP endpoint, or a transport of the official SDK. */
export type MCPServerLocation =
  | ChildProgram
  | {
      readonly url: string | URL
      /** HTTP headers that are sent with every request. */
      readonly headers?: Readonly<Record<string, string>> | undefined
    }
  | { readonly transport: Transport }

export interface MCPServerAccess {
  readonly transport: Transport
  /** The name of the server in messages. It contains no headers, environment variables or secrets of a URL. */
  readonly name: string
  /** Whether only a ping shows that the server has ended. */
  readonly mustBeAsked: boolean
  /** Explains why the server cannot be used. Includes the last stderr output of a program. */
  explain(error: unknown): string
  /** Ends the HTTP session, if there is one. Never rejects. */
  leave(): Promise<void>
}

export function accessMCPServer(location: MCPServerLocation, clock: Clock, graceMs: number): MCPServerAccess {
  if ('command' in location) return accessProgram(location, clock, graceMs)
  if ('url' in location) return accessEndpoint(new URL(location.url), location.headers ?? {}, clock, graceMs)
  return {
    transport: location.transport,
    name: 'MCP server',
    mustBeAsked: false,
    explain: describeConnectionError,
    leave: () => Promise.resolve(),
  }
}

function accessProgram(program: ChildProgram, clock: Clock, graceMs: number): MCPServerAccess {
  const transport = createChildTransport(program, clock, graceMs)
  return {
    transport,
    name: `MCP server ${preview([program.command, ...(program.args ?? [])].join(' '))}`,
    mustBeAsked: false,
    explain: (error) => {
      const tail = transport.stderrTail.trim()
      const what =
        describeSpawnError(error) ??
        (transport.end === undefined ? describeConnectionError(error) : `it ${transport.end}`)
      return `${what}.${tail === '' ? '' : ` The end of its stderr:\n${tail}`}`
    },
    leave: () => Promise.resolve(),
  }
}

function accessEndpoint(
  url: URL,
  headers: Readonly<Record<string, string>>,
  clock: Clock,
  graceMs: number,
): MCPServerAccess {
  const shown = `${url.origin}${url.pathname}`
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } })
  return {
    transport,
    name: `MCP server at ${shown}`,
    mustBeAsked: true,
    explain: (error) => `${describeConnectionError(error).replaceAll(url.href, shown)}.`,
    leave: async () => {
      const grace = createDelay(clock, graceMs)
      await Promise.race([transport.terminateSession().catch(() => undefined), grace.passed])
      grace.cancel()
    },
  }
}

function describeSpawnError(error: unknown): string | undefined {
  const { code, syscall } = Object(error) as NodeJS.ErrnoException
  if (syscall?.startsWith('spawn') !== true) return undefined
  if (code === 'ENOENT') return 'the command, or its working directory, was not found (ENOENT)'
  return code === 'EACCES' ? 'the command may not be executed (EACCES)' : describeFailure(error)
}

function describeConnectionError(error: unknown): string {
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout) {
    const { timeout } = Object(error.data) as { readonly timeout?: unknown }
    return typeof timeout === 'number' ? `it did not answer within ${timeout} ms` : 'it did not answer in time'
  }
  // When `fetch` fails, the actual reason is in `cause`.
  const { cause } = Object(error) as { readonly cause?: unknown }
  const why = cause instanceof Error && cause.message !== '' ? ` (${cause.message})` : ''
  return `${describeFailure(error).replace(/\.$/, '')}${why}`
}
