/** `agent-tasks mcp`: background tasks for agents, over MCP. */
import type { Command } from 'commander'
import { readInteger } from './numbers.js'
import { serveMcp } from './serve-mcp.js'

interface McpOptions {
  readonly config?: string
  readonly http?: boolean
  readonly host?: string
  readonly port?: string
}

export function addMcpCommand(program: Command): void {
  program
    .command('mcp')
    .description('serve background tasks to an agent over MCP (stdio, or streamable HTTP)')
    .option('--config <file>', 'subagents and instances (default: agent-tasks.config.json, if it exists)')
    .option('--http', 'serve over streamable HTTP instead of stdio')
    .option('--host <address>', 'with --http: the address to listen on (default: http.host of the file, or 127.0.0.1)')
    .option('--port <port>', 'with --http: the port, 0 for a free one (default: http.port of the file, or 3500)')
    .addHelpText(
      'after',
      `
Over stdio it exits when the client disconnects, and ends all programs that it started. Messages go to stderr.

Examples:
  $ claude mcp add agent-tasks -- npx agent-tasks mcp --config /path/to/agent-tasks.config.json
  $ agent-tasks mcp --http --port 3500`,
    )
    .action(({ config, http, host, port }: McpOptions) =>
      serveMcp({
        ...{ config, http, host },
        ...(port !== undefined && { port: readInteger('--port', port, 0, 65_535) }),
      }),
    )
}
