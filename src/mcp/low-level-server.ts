/**
 * The low-level `Server` of the SDK. The SDK recommends its high-level `McpServer`. That class does not fit here: it turns a missing client capability
 * (error -32021) into a result with `isError`, and cannot answer a call with a task.
 */
import { Server, type Implementation, type ServerContext, type ServerOptions } from '@modelcontextprotocol/server'
import { showsForms } from './question-forms.js'

// eslint-disable-next-line @typescript-eslint/no-deprecated -- see above
export type LowLevelServer = Server

export type HandlerRegistry = Pick<LowLevelServer, 'setRequestHandler'>

export function createLowLevelServer(info: Implementation, options: ServerOptions): LowLevelServer {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- see above
  return new Server(info, options)
}

/** Whether the client of a connection of 2025 shows forms to its user. */
export function canElicit(server: LowLevelServer): boolean {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- on connections of 2025 it is what the client has declared
  return showsForms(server.getClientCapabilities()?.elicitation)
}

/** The name of the client (`clientInfo`): each request of 2026-07-28 has it, and a connection of 2025 has it from `initialize`. */
export function clientNameOf(server: LowLevelServer, context?: ServerContext): string | undefined {
  const envelope = context?.mcpReq.envelope as Readonly<Record<string, unknown>> | undefined
  const { name } = Object(envelope?.['io.modelcontextprotocol/clientInfo']) as { readonly name?: unknown }
  if (typeof name === 'string') return name
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- see above
  return server.getClientVersion()?.name
}

/**
 * The URIs of a client's roots; an empty list if it declares no roots. MCP deprecates roots (2026-07-28), but clients of 2025 have no other way to name
 * their project.
 */
export async function listRoots(server: LowLevelServer, timeout: number): Promise<string[]> {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- see above
  if (server.getClientCapabilities()?.roots === undefined) return []
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- see above
  const { roots } = await server.listRoots(undefined, { timeout })
  return roots.map(({ uri }) => uri)
}
