/** `agent-tasks mcp`: background tasks for agents, over MCP. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { omitUndefined } from '../data/omit-undefined.js'
import { InvalidSettingError } from '../errors.js'
import { CONFIG_FILE_NAME } from '../protocol/agent-config.js'
import { STORE_NAMES, STORE_URLS } from '../store/locations/store-url.js'
import { readInteger } from './numbers.js'
import { initConfig, trustConfig } from './trusted-config.js'
import { serveMcp } from './serve-mcp.js'
import { readPageSettings, TOKEN_FILE_OPTION, TRACE_URL_OPTION, type PageFlags } from './served-page.js'
import type { ProgramIO } from './terminal.js'

interface McpOptions extends PageFlags {
  readonly config?: string
  readonly init?: boolean
  readonly trust?: string | boolean
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
    .option(
      '--config <file>',
      'subagents and instances (default: agent-tasks.config.json of the working directory, if it is trusted)',
    )
    .option('--init', 'write an example of the configuration, unless the file exists, trust it, and exit')
    .option(
      '--trust [file]',
      'trust the present content of agent-tasks.config.json in this folder, or of this file, and exit',
    )
    .option('--http', 'serve over streamable HTTP instead of stdio')
    .option('--host <address>', 'with --http: the address to listen on (default: http.host of the file, or 127.0.0.1)')
    .option('--port <port>', 'with --http: the port, 0 for a free one (default: http.port of the file, or 3500)')
    .option(
      '--store <dir>',
      `keep tasks and results in this folder, or in a ${STORE_NAMES} (${STORE_URLS}), for the next server of the session`,
    )
    .option('--session <key>', 'with --store: the session key of the tasks (default: the working directory)')
    .option(
      '--cluster [name]',
      'run submit_commands on the instances of this cluster instead of those of the file (default name: agent-tasks)',
    )
    .option(
      '--connection <url>',
      'the Redis of the cluster, redis://… or rediss://… (default: workers.connection of the file, or AGENT_TASKS_CONNECTION)',
    )
    .option('--page [port]', 'serve a page that shows the tasks (default port: 3320, or a free one if that is taken)')
    .option('--no-page', 'do not serve the page (the default)')
    .option(...TOKEN_FILE_OPTION)
    .option(...TRACE_URL_OPTION)
    .addHelpText(
      'after',
      `
An agent-tasks.config.json in the working directory names programs, and may have come with a repository. It is used only after you have trusted
it, and must be trusted again after each change. A file that --config names needs no trust.
In a ${STORE_NAMES} a session has one server at a time, so give each server a --session of its own. Programs that survive their host need a folder.
Over stdio, the server exits when the client disconnects, and ends the programs that it started,
except those with survivesHost. Messages go to stderr.

Examples:
  $ claude mcp add agent-tasks -- npx --no-install agent-tasks mcp --config /path/to/agent-tasks.config.json
  $ agent-tasks mcp --init
  $ agent-tasks mcp --trust /path/to/agent-tasks.config.json
  $ agent-tasks mcp --store .agent/tasks
  $ agent-tasks mcp --store postgres://agent@db.example/agents --session worker-1
  $ agent-tasks mcp --http --port 3500
  $ AGENT_TASKS_CONNECTION=rediss://:secret@redis.example agent-tasks mcp --cluster`,
    )
    .action(
      async ({
        config,
        init = false,
        trust = false,
        http,
        host,
        port,
        store,
        session,
        connection,
        cluster,
        page,
        ...pageFlags
      }: McpOptions) => {
        if (init) {
          initConfig(resolve(config ?? CONFIG_FILE_NAME), io)
          return
        }
        if (trust !== false) {
          trustConfig(resolve(trust === true ? (config ?? CONFIG_FILE_NAME) : trust), io)
          return
        }
        const portNumber = port === undefined ? undefined : readInteger('--port', port, 0, 65_535)
        if (portNumber !== undefined && !http) {
          throw new InvalidSettingError('--port', portNumber, 'nothing without --http')
        }
        await serveMcp({
          config,
          http,
          host,
          store,
          session,
          connection,
          cluster,
          env: io.env,
          ...(page !== undefined &&
            page !== false && { page: readPageSettings('--page', page === true ? undefined : page, pageFlags) }),
          ...omitUndefined({ port: portNumber }),
        })
      },
    )
}
