/**
 * `node dist/src/cli/mcp.js`: `agent-tasks mcp` without the rest of the command line, for a host that starts it by its path.
 * Exit codes: 0 when the client has gone or a signal came, 2 for arguments, a configuration or a port that cannot be used.
 */
import { parseArgs } from 'node:util'
import { AgentTasksError } from '../errors.js'
import { EXIT } from './exit-codes.js'
import { serveMcp, type McpCommand } from './serve-mcp.js'

/** Reads the arguments of the command. */
function parseMcpArguments(args: readonly string[]): McpCommand {
  const { values } = parseArgs({
    args: [...args],
    options: {
      config: { type: 'string' },
      http: { type: 'boolean' },
      host: { type: 'string' },
      port: { type: 'string' },
    },
  })
  const { port, ...rest } = values
  if (port !== undefined && !/^\d{1,5}$/.test(port)) throw new TypeError(`--port: got ${port}, expected a port`)
  return { ...rest, ...(port !== undefined && { port: Number(port) }) }
}

async function main(): Promise<void> {
  let command: McpCommand
  try {
    command = parseMcpArguments(process.argv.slice(2))
  } catch (error) {
    console.error(`agent-tasks: ${(error as Error).message}`)
    console.error('Usage: mcp.js [--config FILE] [--http [--host ADDRESS] [--port PORT]]')
    process.exitCode = EXIT.usage
    return
  }
  try {
    await serveMcp(command)
  } catch (error) {
    console.error(error instanceof AgentTasksError ? `agent-tasks: ${error.message}` : error)
    process.exitCode = EXIT.usage
  }
}

await main()
