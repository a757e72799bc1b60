/**
 * The low-level server of the SDK. The SDK advises against it, but its high-level one turns the -32021 of a tool into a
 * result with `isError`, and has no way to answer a call with a task.
 */
import { Server, type Implementation, type ServerOptions } from '@modelcontextprotocol/server'

// eslint-disable-next-line @typescript-eslint/no-deprecated -- as said above
export type LowLevelServer = Server

export function createLowLevelServer(info: Implementation, options: ServerOptions): LowLevelServer {
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- as said above
  return new Server(info, options)
}
