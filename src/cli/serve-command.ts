/** `agent-tasks serve`: the task server, with MCP servers as its instances. */
import type { Command } from 'commander'
import { systemClock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { disposeOnSignals } from '../engine/dispose-on-signals.js'
import { createLog } from '../server/http/log.js'
import type { Instance } from '../command-tasks/instances/instance.js'
import { mcpInstance } from '../command-tasks/instances/mcp-instance.js'
import type { Inspector } from '../observability/inspect/inspector-types.js'
import { startTaskServer, type TaskServer, type TaskServerOptions } from '../server/start-task-server.js'
import { STORE_NAMES, STORE_URLS } from '../store/locations/store-url.js'
import type { TaskPage } from '../page/create-task-page.js'
import { createDemoAgent, type DemoAgent } from './demo-agent.js'
import { readCluster, type ClusterFlags } from './cluster-options.js'
import { createDemoInstance } from './demo-instance.js'
import { parseInstanceOptions } from './instance-option.js'
import { introduce } from './introduction.js'
import { exitWhenLost } from './lost-store.js'
import { readInteger } from './numbers.js'
import { reviveInstances } from './revived-instances.js'
import { readPageSettings, servePage, TOKEN_FILE_OPTION, TRACE_URL_OPTION, type PageFlags } from './served-page.js'
import { createTerminal, type ProgramIO } from './terminal.js'

interface ServeOptions extends ClusterFlags, PageFlags {
  readonly host?: string
  readonly port?: string
  readonly wsPort?: string
  readonly config?: string
  readonly store?: string
  readonly instance: readonly string[]
  readonly demo?: boolean
  readonly inspect?: string | true
  readonly page: boolean
  readonly pagePort?: string
  readonly json?: boolean
}

export function addServeCommand(program: Command, io: ProgramIO): void {
  program
    .command('serve')
    .description('start the task server')
    .option(
      '--instance <name=command>',
      `an MCP server as an instance: name='command args' or name=http://...; may be repeated`,
      (value: string, before: readonly string[]) => [...before, value],
      [] as readonly string[],
    )
    .option('--demo', 'an instance "calc" with the tools add, echo and slow; and an agent with tasks, for the page')
    .option('--host <address>', 'the address to listen on (default: HOST, or 127.0.0.1)')
    .option('--port <port>', 'the port of REST and /ws, 0 for a free one (default: PORT, or 3300)')
    .option('--ws-port <port>', 'the port of a second client socket, the same as /ws (default: TASKS_WS_PORT, or 3400)')
    .option('--config <file>', 'a JSON file with server settings (default: CONFIG_FILE)')
    .option(
      '--store <file>',
      `keep tasks in this file, or in a ${STORE_NAMES} (${STORE_URLS}), when the server ends (default: TASKS_STORE, or tasks are not kept)`,
    )
    .option(
      '--connection <url>',
      'join a cluster of servers behind one address, which keeps tasks in Redis: redis://… or rediss://… (default: AGENT_TASKS_CONNECTION, or no cluster)',
    )
    .option('--cluster <name>', 'with --connection: the name of the cluster (default: agent-tasks)')
    .option(
      '--public-url <url>',
      'with --connection: the address of the load balancer in front of all servers, which clients and workers use',
    )
    .option(
      '--redis-without-password',
      'with --connection: accept a Redis without a password that other machines can reach',
    )
    .option(
      '--inspect [url]',
      'show live actors in Stately’s viewer, through the relay at this ws:// URL (see docs/inspect.md)',
    )
    .option('--no-page', 'do not serve the page that shows the tasks (see docs/page.md)')
    .option(
      '--page-port <port>',
      'the port of the page, 0 for a free one (default: 3320, or a free one if that is taken)',
    )
    .option(...TOKEN_FILE_OPTION)
    .option(...TRACE_URL_OPTION)
    .option('--json', 'print the URLs as JSON')
    .addHelpText(
      'after',
      `
An instance that is lost while the server runs is restarted, after 1 s at first and after 60 s at most.
SIGTERM and Ctrl-C stop the server when running tasks have ended, or after its drain time. A second signal stops it immediately.
With --store, queued tasks wait for the next start, even if the server was killed. A postgres:// URL may name a schema and a session
(?schema=agent_tasks&session=server). If another server takes over the session, this one exits with 1.
With --connection, every server answers requests for all tasks, and runs the tasks of the instances that are connected to it (see docs/scale.md).
It then serves no page. If several servers have the same instance, one of them connects to it, and another one takes over when that server ends.

Examples:
  $ agent-tasks serve --demo
  $ agent-tasks serve --demo --store .agent/tasks.db
  $ agent-tasks serve --instance browser='npx @playwright/mcp --headless' --instance files='npx @modelcontextprotocol/server-filesystem .'`,
    )
    .action((options: ServeOptions) => serve(options, io))
}

/** Resolves when the server listens. The sockets of the server keep the process alive until a signal ends it. */
async function serve(options: ServeOptions, io: ProgramIO): Promise<void> {
  const wanted = parseInstanceOptions(options.instance)
  const port = options.port === undefined ? undefined : readInteger('--port', options.port, 0, 65_535)
  const wsPort = options.wsPort === undefined ? undefined : readInteger('--ws-port', options.wsPort, 0, 65_535)
  const pageSettings = readPageSettings('--page-port', options.pagePort, options)
  const settings: TaskServerOptions = {
    env: io.env,
    ...omitUndefined({ host: options.host, port }),
    tasks: omitUndefined({ wsPort, store: options.store }),
    ...omitUndefined({ configFile: options.config }),
  }
  const cluster = await readCluster(options, io.env)
  const inspector = await inspectorFor(options.inspect)
  const instances: Instance[] = options.demo === true ? [createDemoInstance()] : []
  let server: TaskServer | undefined
  let stopReviving = (): void => undefined
  let agent: DemoAgent | undefined
  let page: TaskPage | undefined
  const close = async (): Promise<void> => {
    stopReviving()
    await agent?.dispose()
    await (server?.close() ?? Promise.all(instances.map((instance) => instance.close())))
    // The page is closed last, because it shows how the tasks end.
    await page?.close()
    await inspector?.close()
  }
  // Signals are handled before the first instance starts, so that an early signal also closes the instances. `drainMs` limits how long the server takes
  // to close.
  const stopListening = disposeOnSignals(close, { exitCode: 0, limitMs: Infinity })
  try {
    for (const location of wanted) instances.push(await mcpInstance(location))
    server = await startTaskServer({
      ...settings,
      instances,
      cluster,
      pageUrl: () => page && withoutToken(page.url),
      ...omitUndefined({ inspect: inspector }),
    })
    exitWhenLost({ lost: server.storeLost }, close)
    stopReviving = reviveInstances({
      instances: server.instances,
      starts: new Map(wanted.map((location) => [location.id, () => mcpInstance(location)])),
      clock: systemClock,
      log: createLog(server.config.logLevel),
    })
    // In a cluster there is no page, because it would show only the tasks that run on this server.
    if (options.page && cluster === undefined) {
      const { taskManager, httpUrl: restUrl, config } = server
      const hasRestTokens = config.auth.tokens.length > 0
      if (options.demo === true) agent = createDemoAgent(taskManager)
      page = await servePage(pageSettings, {
        taskManager,
        restUrl,
        hasRestTokens,
        ...(agent && { tasks: agent.tasks }),
      })
    }
    const terminal = createTerminal(io, 'stdout')
    const { httpUrl, wsUrl } = server
    const ids = instances.map(({ id }) => id)
    if (options.json === true) {
      terminal.printJson({ httpUrl, wsUrl, instances: ids, ...(page && { pageUrl: page.url }) })
    } else terminal.printLines(introduce(server, ids, page?.url))
  } catch (error) {
    stopListening()
    await close()
    throw error
  }
}

/** @param url the URL of the relay; `true` for the default relay */
async function inspectorFor(url: string | true | undefined): Promise<Inspector | undefined> {
  if (url === undefined) return undefined
  // The module is loaded only when it is needed.
  const { createInspector } = await import('../observability/inspect/inspector.js')
  return createInspector(url === true ? {} : { url })
}

/** The answer of `GET /` links to the page, and must not contain the token of the page. */
const withoutToken = (pageUrl: string): string => new URL('/', pageUrl).href
