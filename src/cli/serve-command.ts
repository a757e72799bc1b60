/** `agent-tasks serve`: the task server, with MCP servers as its instances. */
import type { Command } from 'commander'
import type { Instance } from '../instances/instance.js'
import { mcpInstance } from '../instances/mcp-instance.js'
import type { Inspector } from '../inspect/inspector.js'
import { startTaskServer, type TaskServerOptions } from '../server/start-task-server.js'
import { createDemoInstance } from './demo-instance.js'
import { parseInstanceOptions } from './instance-option.js'
import { introduce } from './introduction.js'
import { readInteger } from './numbers.js'
import { createTerminal, type Surroundings } from './terminal.js'

interface ServeOptions {
  readonly host?: string
  readonly port?: string
  readonly wsPort?: string
  readonly config?: string
  readonly instance: readonly string[]
  readonly demo?: boolean
  readonly inspect?: string | true
  readonly json?: boolean
}

export function addServeCommand(program: Command, surroundings: Surroundings): void {
  program
    .command('serve')
    .description('start the task server')
    .option(
      '--instance <name=command>',
      `an MCP server to run commands on, as name='command args' or name=http://...; may be repeated`,
      (value: string, before: readonly string[]) => [...before, value],
      [] as readonly string[],
    )
    .option('--demo', 'an instance "calc" with the tools add, echo and slow, to try the server with')
    .option('--host <address>', 'the address to listen at (default: HOST, or 127.0.0.1)')
    .option('--port <port>', 'the port of REST and /ws, 0 for a free one (default: PORT, or 3300)')
    .option('--ws-port <port>', 'the port of the socket for clients (default: TASKS_WS_PORT, or 3400)')
    .option('--config <file>', 'a JSON file with settings of the server (default: CONFIG_FILE)')
    .option(
      '--inspect [url]',
      'show what runs in Stately’s viewer, through the relay at this ws:// URL (see docs/inspect.md)',
    )
    .option('--json', 'print where it listens as JSON')
    .addHelpText(
      'after',
      `
SIGTERM and Ctrl-C let running tasks end for a while; a second one does not wait.

Examples:
  $ agent-tasks serve --demo
  $ agent-tasks serve --instance browser='npx @playwright/mcp --headless' --instance files='npx @modelcontextprotocol/server-filesystem .'`,
    )
    .action((options: ServeOptions) => serve(options, surroundings))
}

/** Returns when it listens; the sockets keep the process alive until a signal ends it. */
async function serve(options: ServeOptions, surroundings: Surroundings): Promise<void> {
  const wanted = parseInstanceOptions(options.instance)
  const port = options.port === undefined ? undefined : readInteger('--port', options.port, 0, 65_535)
  const wsPort = options.wsPort === undefined ? undefined : readInteger('--ws-port', options.wsPort, 0, 65_535)
  const settings: TaskServerOptions = {
    env: surroundings.env,
    ...(options.host !== undefined && { host: options.host }),
    ...(port !== undefined && { port }),
    ...(wsPort !== undefined && { tasks: { wsPort } }),
    ...(options.config !== undefined && { configFile: options.config }),
  }
  const inspector = await inspectorFor(options.inspect)
  const instances: Instance[] = options.demo === true ? [createDemoInstance()] : []
  try {
    for (const location of wanted) instances.push(await mcpInstance(location))
    const server = await startTaskServer({ ...settings, instances, ...(inspector && { inspect: inspector }) })
    stopOnSignals(async () => {
      await server.close()
      await inspector?.close()
    })
    const terminal = createTerminal(surroundings, 'stdout')
    const { httpUrl, wsUrl } = server
    if (options.json === true) terminal.printJson({ httpUrl, wsUrl, instances: instances.map(({ id }) => id) })
    else {
      terminal.print(
        introduce(
          server,
          instances.map(({ id }) => id),
        ),
      )
    }
  } catch (error) {
    await Promise.all([...instances.map((instance) => instance.close()), inspector?.close()])
    throw error
  }
}

/** @param url as on the command line: true for the default relay */
async function inspectorFor(url: string | true | undefined): Promise<Inspector | undefined> {
  if (url === undefined) return undefined
  // Nobody else needs it.
  const { createInspector } = await import('../inspect/inspector.js')
  return createInspector(url === true ? {} : { url })
}

function stopOnSignals(close: () => Promise<void>): void {
  let isStopping = false
  const stop = (): void => {
    if (isStopping) process.exit(1)
    isStopping = true
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error)
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', stop).on('SIGINT', stop)
}
