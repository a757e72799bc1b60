#!/usr/bin/env node
/**
 * `agent-tasks-mcp`: reads the arguments and serves MCP. Exit codes: 0 when the client has gone or a signal came,
 * 1 for a configuration that cannot be used or a port that is taken, 2 for arguments that are not understood.
 */
import { parseArgs } from 'node:util'
import { AgentTasksError } from '../errors.js'
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
    console.error('Usage: agent-tasks-mcp [--config FILE] [--http [--host ADDRESS] [--port PORT]]')
    process.exitCode = 2
    return
  }
  try {
    await serveMcp(command)
  } catch (error) {
    console.error(error instanceof AgentTasksError ? `agent-tasks: ${error.message}` : error)
    process.exitCode = 1
  }
}

await main()
