/** `agent-tasks mcp`: background tasks for agents, over MCP. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { writeStarterConfig } from '../mcp/starter-config.js'
import { CONFIG_FILE_NAME } from '../protocol/agent-config.js'
import { readInteger } from './numbers.js'
import { serveMcp } from './serve-mcp.js'
import { readPagePort } from './served-page.js'
import { createTerminal, type ProgramIO } from './terminal.js'

interface McpOptions {
  readonly config?: string
  readonly init?: boolean
  readonly http?: boolean
  readonly host?: string
  readonly port?: string
  readonly store?: string
  readonly session?: string
  readonly connection?: string
  readonly cluster?: string | boolean
  readonly page?: string | boolean
}

export function addMcpCommand(program: Command, io: ProgramIO): void {
  program
    .command('mcp')
    .description('serve background tasks to an agent over MCP (stdio, or streamable HTTP)')
    .option('--config <file>', 'subagents and instances (default: agent-tasks.config.json, if it exists)')
    .option('--init', 'write an example of the configuration, unless the file exists, and exit')
    .option('--http', 'serve over streamable HTTP instead of stdio')
    .option('--host <address>', 'with --http: the address to listen on (default: http.host of the file, or 127.0.0.1)')
    .option('--port <port>', 'with --http: the port, 0 for a free one (default: http.port of the file, or 3500)')
    .option(
      '--store <dir>',
      'keep tasks and results in this folder: the next server of the session has what this one leaves',
    )
    .option('--session <key>', 'with --store: whose tasks they are (default: the working directory)')
    .option(
      '--cluster [name]',
      'submit_commands runs on the instances of the servers of this cluster (default name: agent-tasks), instead of those of the file',
    )
    .option(
      '--connection <url>',
      'the Redis of the cluster, redis://… or rediss://… (default: workers.connection of the file, or AGENT_TASKS_CONNECTION)',
    )
    .option('--page [port]', 'serve a page that shows the tasks (default port: 3320, or a free one if that is taken)')
    .option('--no-page', 'without the page: the default')
    .addHelpText(
      'after',
      `
Over stdio it exits when the client disconnects, and ends all programs that it started. Messages go to stderr.

Examples:
  $ claude mcp add agent-tasks -- npx agent-tasks mcp --config /path/to/agent-tasks.config.json
  $ agent-tasks mcp --init
  $ agent-tasks mcp --store .agent/tasks
  $ agent-tasks mcp --http --port 3500
  $ AGENT_TASKS_CONNECTION=rediss://:secret@redis.example agent-tasks mcp --cluster`,
    )
    .action(
      async ({ config, init = false, http, host, port, store, session, connection, cluster, page }: McpOptions) => {
        if (init) {
          const file = resolve(config ?? CONFIG_FILE_NAME)
          writeStarterConfig(file)
          createTerminal(io, 'stdout').print(`Wrote ${file}. \`agent-tasks doctor\` checks it.`)
          return
        }
        await serveMcp({
          ...{ config, http, host, store, session, connection, cluster },
          ...(page !== undefined &&
            page !== false && { page: readPagePort('--page', page === true ? undefined : page) }),
          ...(port !== undefined && { port: readInteger('--port', port, 0, 65_535) }),
        })
      },
    )
}
