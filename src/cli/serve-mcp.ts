/** Serves MCP over stdio or streamable HTTP. Over stdio, standard output carries the protocol, so all messages go to standard error. */
import { omitUndefined } from '../data/omit-undefined.js'
import { disposeOnSignals } from '../engine/dispose-on-signals.js'
import { loadAgentConfig } from '../mcp/config-file.js'
import { startMcpHttpServer } from '../mcp/http.js'
import { sessionPlace, type SessionPlace } from '../mcp/session.js'
import { howToConfigure } from '../mcp/starter-config.js'
import { startMcpStdioServer, type McpStdioServer } from '../mcp/stdio.js'
import type { Environment } from '../mcp/trust-records.js'
import { describeUntrusted } from '../mcp/trust.js'
import { unknownPlaceholders } from '../mcp/unknown-placeholders.js'
import { openStoreAt } from '../store/locations/open-store-at.js'
import type { OpenStore } from '../store/open-store.js'
import { readClusterTasks } from './cluster-options.js'
import { exitWhenLost } from './lost-store.js'
import { servePage, type PageSettings } from './served-page.js'
import { sentSubagents } from './worker-subagents.js'

export interface ServeMcpOptions {
  /** The path of the configuration file. Default: `agent-tasks.config.json` in the working directory, if this file exists and is trusted. */
  readonly config?: string | undefined
  readonly env: Environment
  readonly http?: boolean | undefined
  readonly host?: string | undefined
  readonly port?: number | undefined
  /** The folder of the store, or the URL of a database. Default: `store` of the configuration. */
  readonly store?: string | undefined
  /** The name of the session. Default: `session` of the configuration, or the working directory. */
  readonly session?: string | undefined
  /**
   * The URL of the Redis of a cluster, and in `cluster` its name or `true` for the default name. Commands then run on the instances of the cluster.
   * Default: the instances of the configuration.
   */
  readonly connection?: string | undefined
  readonly cluster?: string | boolean | undefined
  /** Where to serve a page that shows the tasks. Default: no page. */
  readonly page?: PageSettings
}

/** If closing takes longer than this time limit, the process exits, which kills all programs. */
const ending = { exitCode: 0, limitMs: 10_000 } as const

/**
 * Serves until a signal ends it, or over stdio until the client disconnects. Then exits the process.
 * @throws INVALID_CONFIG, INVALID_SETTING or StoreError before the server starts
 */
export async function serveMcp(options: ServeMcpOptions): Promise<void> {
  const { config: path, env, http = false, host, port, store, session, connection, cluster, page } = options
  const { config, folder, file, path: configFile, untrusted } = loadAgentConfig(path, process.cwd(), env)
  const say = (line: string): void => console.error(`agent-tasks info: ${line}`)
  say(
    `configuration: ${file ?? 'none'}, ${config.subagents.length} subagent(s), ${config.instances.length} instance(s)`,
  )
  if (untrusted !== undefined) console.error(`agent-tasks warn: ${describeUntrusted(untrusted)}`)
  else if (file === undefined) {
    console.error(
      `agent-tasks warn: there is no file ${configFile}, so there are no subagents. ${howToConfigure(configFile)}`,
    )
  }
  for (const note of unknownPlaceholders(config)) console.error(`agent-tasks warn: ${note}`)
  if (!http && process.stdin.isTTY) say('waiting for an MCP client on standard input')
  const place = sessionPlace(config, { store, session, folder, projectFolder: process.cwd() })
  const opened = await openPlace(untrusted === undefined ? place : undefined, say)
  const shared = {
    config,
    folder,
    configFile,
    untrusted,
    ...(untrusted === undefined && {
      subagents: await sentSubagents(config, env, say),
      taskManager: await readClusterTasks({ connection, cluster }, config, env, say),
    }),
    ...omitUndefined({ session, store: opened }),
  }
  const watchStore = (server: Pick<McpStdioServer, 'close'>): void => {
    if (typeof opened === 'object') exitWhenLost(opened, () => server.close())
  }
  try {
    await start()
  } catch (error) {
    // The server did not start, so it does not close the store.
    if (typeof opened === 'object') await opened.close()
    throw error
  }

  async function start(): Promise<void> {
    if (http) {
      const starting = startMcpHttpServer({
        ...shared,
        ...omitUndefined({ host, port }),
      })
      const stopListening = disposeOnSignals(async () => (await starting).close(), ending)
      starting.catch(stopListening)
      const started = await starting
      watchStore(started)
      say(`MCP at ${started.url}`)
      await showPage(page, started, say, stopListening)
      return
    }
    const server = startMcpStdioServer(shared)
    const stopListening = disposeOnSignals(server, { ...ending, input: process.stdin })
    watchStore(server)
    await showPage(page, server, say, stopListening)
    void server.closed.then(() => process.exit())
  }
}

/**
 * Opens a store on a server. The MCP server itself opens a store in a folder.
 * @throws StoreError when the store cannot be opened
 * @throws INVALID_SETTING for an invalid URL
 */
async function openPlace(
  place: SessionPlace | undefined,
  say: (line: string) => void,
): Promise<string | OpenStore | undefined> {
  if (place === undefined) return undefined
  const key = JSON.stringify(place.key)
  if ('folder' in place) {
    say(`store: ${place.folder}, session ${key}`)
    return place.folder
  }
  const store = await openStoreAt(place.url, 'store', place.key)
  say(`store: ${store.name ?? ''}`)
  return store
}

/** Serves the page until the process ends, and prints its link to standard error. */
async function showPage(
  page: PageSettings | undefined,
  { shown, close }: Pick<McpStdioServer, 'shown' | 'close'>,
  say: (line: string) => void,
  stopListening: () => void,
): Promise<void> {
  if (page === undefined) return
  try {
    const { manager, taskManager } = await shown()
    say(`the page: ${(await servePage(page, { tasks: manager, taskManager, hints: 'mcp' })).url}`)
  } catch (error) {
    stopListening()
    await close()
    throw error
  }
}
