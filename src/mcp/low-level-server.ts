/**
 * The low-level `Server` of the SDK. The SDK recommends its high-level `McpServer`, but that turns a tool's error -32021 into a result with
 * `isError`, and cannot answer a call with a task.
 */
import { Server, type Implementation, type ServerOptions } from '@modelcontextprotocol/server'

// eslint-disable-next-line @typescript-eslint/no-deprecated -- see above
export type LowLevelServer = Server

export function createLowLevelServer(info: Implementation, options: ServerOptions): LowLevelServer {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- see above
  return new Server(info, options)
}

/** The URIs of a client's roots, none if it does not declare any. MCP deprecates roots (2026-07-28), but no client of 2025 says in another way where its project is. */
export async function listRoots(server: LowLevelServer, timeout: number): Promise<string[]> {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- see above
  if (server.getClientCapabilities()?.roots === undefined) return []
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- see above
  const { roots } = await server.listRoots(undefined, { timeout })
  return roots.map(({ uri }) => uri)
}
