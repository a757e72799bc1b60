/** Starts the task server and closes it: resolves the configuration, creates the parts, and listens. */
import { randomUUID } from 'node:crypto'
import { getRequestListener } from '@hono/node-server'
import { systemClock, type Clock } from '../system/clock.js'
import { TaskManager } from '../command-tasks/task-manager.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { Engine } from '../engine/engine.js'
import type { Inspect } from '../isolation/inspection.js'
import { createInProcessEngine } from '../engine/in-process.js'
import { InvalidInputError } from '../errors.js'
import { addressOf, createAccess, type Refusal } from './http/access.js'
import { trackConnections } from './http/connections.js'
import { sendJson } from './http/json.js'
import { createServer, listen, stopListening, urlOf } from './http/listening.js'
import { createLog } from './http/log.js'
import { taskServerAt } from './http/port-holder.js'
import type { Instance } from '../command-tasks/instances/instance.js'
import { InstanceManager } from '../command-tasks/instances/instance-manager.js'
import {
  aClock,
  aFunction,
  anEngine,
  anInspector,
  anObject,
  anything,
  aStore,
  aString,
  checkOptions,
  listOf,
  objectWith,
  type OptionType,
  type OptionTypes,
} from '../protocol/option-checks.js'
import {
  resolveServerConfig,
  serverConfigSchema,
  type ServerConfig,
  type ServerConfigInput,
} from '../protocol/server-config.js'
import { EXTENSION_ORIGIN } from '../protocol/browser-extension.js'
import { aTelemetry, type Telemetry } from '../protocol/telemetry.js'
import { openStoreAt } from '../store/locations/open-store-at.js'
import type { Store } from '../store/store.js'
import { readConfigFile, readTls } from './config-file.js'
import { createFairEngine } from '../engine/fair-engine.js'
import { createEventLines } from './event-lines.js'
import { createHeartbeat } from './heartbeat.js'
import { createHttpEntry, rateRefusal, type OnRefused } from './http-entry.js'
import { logRefusals, logTasksAndInstances, requestFields } from './logged-events.js'
import { createMetrics } from './metrics.js'
import { createConnectionCounts, createRateLimiter } from './rates.js'
import { createRestApp, TOO_MANY_CONNECTIONS } from './rest-app.js'
import { createServerSockets } from './server-sockets.js'
import { settledWithin } from './backend/shutdown.js'
import { createLocalBackend, type TaskCluster } from './backend/task-backend.js'
import { createToolCalls } from './tool-calls.js'
import { CLIENT_PATH, createUpgrades, WORKER_PATH } from './upgrades.js'

/** Options of `startTaskServer`: the settings of the configuration file, and values that cannot be in a file. */
export interface TaskServerOptions extends ServerConfigInput {
  /** The instances that run commands. The server closes them when it closes. */
  readonly instances?: readonly Instance[]
  /** The environment variables. Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** The path of a JSON file with settings. Default: the environment variable `CONFIG_FILE`. */
  readonly configFile?: string
  /** Keeps tasks when the process ends. Default: the store of the setting `tasks.store`. If that is not set, tasks are lost with the process. */
  readonly store?: Store
  /** Makes this server one of several servers behind one address (`bullmqCluster` of `agent-tasks/bullmq`). Default: a single server. */
  readonly cluster?: TaskCluster | undefined
  /** The source of time and timers. Default: the platform's clock. */
  readonly clock?: Clock
  /** Starts the tool calls. Default: in this process. */
  readonly engine?: Engine
  /** Called with XState's inspection events of instances, lanes and tasks. The server does not close it. */
  readonly inspect?: Inspect | undefined
  /**
   * Traces the commands and counts the tasks (`agent-tasks/telemetry`). A `traceparent` header of `POST /tasks` makes the task a part of that trace.
   * Default: no tracing.
   */
  readonly telemetry?: Telemetry | undefined
  /** Returns the URL of a page that shows the tasks (`createTaskPage`), without the token of that page. `GET /` links to the page. Default: no page. */
  readonly pageUrl?: () => string | undefined
  /** Called with each line of the log. Default: `console.error`. */
  readonly writeLog?: (line: string) => void
}

const optionTypes: OptionTypes<TaskServerOptions> = {
  // The values of the settings are checked by `resolveServerConfig`, so here only their names count.
  ...(Object.fromEntries(Object.keys(serverConfigSchema.shape).map((name) => [name, anything])) as Record<
    keyof ServerConfig,
    OptionType
  >),
  instances: listOf(objectWith('an instance', 'listTools', 'callTool', 'onLost', 'close')),
  env: anObject,
  configFile: aString,
  store: aStore,
  cluster: objectWith('a cluster', 'join'),
  clock: aClock,
  engine: anEngine,
  inspect: anInspector,
  telemetry: aTelemetry,
  pageUrl: aFunction,
  writeLog: aFunction,
}

/** A listening server. */
export interface TaskServer {
  /** The URL of the REST API, such as `http://127.0.0.1:3300`. */
  readonly httpUrl: string
  /** The URL of the client WebSocket, such as `ws://127.0.0.1:3400`. */
  readonly wsUrl: string
  /** The value of every setting, after defaults. */
  readonly config: ServerConfig
  /** The command tasks. */
  readonly taskManager: TaskManager
  /** The instances that run commands. */
  readonly instances: InstanceManager
  /** Aborted when another process has taken over the store: close the server and end the process. Undefined for a store that cannot detect it. */
  readonly storeLost: AbortSignal | undefined
  /**
   * Accepts no new tasks, and waits for running ones. Then it closes all sockets and instances. Without a store, tasks that have not ended are cancelled,
   * and subscribers get the `complete` of every task. With a store they are left to the next server. Further calls return the same promise.
   * @param options.drainMs how long running tasks may take, in ms; Infinity for any time. Default: `tasks.drainMs`
   * @throws INVALID_INPUT when `drainMs` is not a number >= 0; then the server keeps running
   */
  close(options?: { readonly drainMs?: number }): Promise<void>
  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** When the server closes: how long clients may take to close their sockets and to read the rest of their streams, in ms. */
const CLOSE_MS = 2000
const HEARTBEAT_MS = 30_000
/** How many network connections an address may have in addition to its WebSockets and event streams. */
const SPARE_CONNECTIONS = 1000

/**
 * Starts a server for command tasks: REST, Server-Sent Events and WebSocket.
 * @throws INVALID_SETTING for an invalid setting, or a port that is in use
 * @throws INVALID_INPUT for an unknown option, or an option of a wrong type
 * @throws StoreError when the store cannot be opened
 */
export async function startTaskServer(options: TaskServerOptions = {}): Promise<TaskServer> {
  checkOptions(options, optionTypes)
  const {
    instances: given = [],
    env = process.env,
    configFile: givenFile,
    clock = systemClock,
    engine = createInProcessEngine({ clock }),
    inspect,
    telemetry,
    pageUrl = () => undefined,
    writeLog,
    store: givenStore,
    cluster,
    ...values
  } = options
  const configFile = givenFile ?? env['CONFIG_FILE']
  const file = readConfigFile(configFile, givenFile === undefined ? 'CONFIG_FILE' : '--config, options.configFile')
  const config = resolveServerConfig({ options: values, env, file, ...omitUndefined({ fileName: configFile }) })
  const tls = readTls(config)
  const { host, limits } = config
  const log = createLog(config.logLevel, writeLog)

  const instances = new InstanceManager({
    clock,
    inspect,
    onError: (error, { source, instanceId }) => log('error', `${source} of instance ${instanceId}`, error),
  })
  const { enabled: _enabled, wsPort: _wsPort, drainMs: _drainMs, store: storeFile, ...taskLimits } = config.tasks
  if (cluster !== undefined && (givenStore ?? storeFile) !== undefined) {
    throw new InvalidInputError('options.store', '(given)', 'none, because the tasks of a cluster are kept in Redis')
  }
  const store =
    givenStore ?? (storeFile === undefined ? undefined : await openStoreAt(storeFile, 'tasks.store', 'server'))
  const taskManager = new TaskManager({
    ...taskLimits,
    instances,
    clock,
    inspect,
    telemetry,
    ...omitUndefined({ store }),
    // The cluster keeps the ended tasks in Redis, so the manager of this node keeps none.
    ...(cluster && { maxRetained: 0 }),
    engine: createFairEngine(engine, clock),
    onError: (error, { source }) => log(source === 'late-result' ? 'warn' : 'error', source, error),
  })
  const writeEvent = createEventLines(log, clock)
  logTasksAndInstances(taskManager, instances, writeEvent)
  let isDraining = false
  const parts = { taskManager, instances, config, clock, log, isDraining: () => isDraining }
  const backend = await (cluster?.join(parts) ?? Promise.resolve(createLocalBackend(parts, store !== undefined))).catch(
    async (error: unknown) => {
      await taskManager.dispose()
      throw error
    },
  )
  const { hub } = backend
  const service = logRefusals(backend.service, writeEvent)
  const metrics = createMetrics(taskManager, () => hub.size)
  const onRefused: OnRefused = ({ status, code }, request) => {
    metrics.refused(code)
    writeEvent('info', 'refused request', { ...requestFields(request), status, code })
  }
  const heartbeat = createHeartbeat(clock, HEARTBEAT_MS)
  const requests = createRateLimiter(limits.requestsPerMinute, clock)
  const connections = createConnectionCounts(limits.connectionsPerClient)
  let closing: Promise<void> | undefined
  let httpPort = config.port
  let wsPort = config.tasks.wsPort

  const scheme: '' | 's' = tls === undefined ? '' : 's'
  const httpUrl = (): string => urlOf(`http${scheme}`, host, httpPort)
  const wsUrl = (): string =>
    config.tasks.enabled ? urlOf(`ws${scheme}`, host, wsPort) : `${urlOf(`ws${scheme}`, host, httpPort)}/ws`
  const publicUrl = backend.publicUrl?.replace(/^http/, 'ws').replace(/\/$/, '')
  const clientUrl = (): string => (publicUrl === undefined ? wsUrl() : `${publicUrl}${CLIENT_PATH}`)
  const workerUrl = (): string => `${publicUrl ?? urlOf(`ws${scheme}`, host, httpPort)}${WORKER_PATH}`

  const access = createAccess({
    host,
    allowedHosts: config.allowedHosts,
    tokens: config.auth.tokens,
    origins: [...config.cors.origins, EXTENSION_ORIGIN],
    pages: () => ({ scheme: `http${scheme}`, ports: [httpPort, wsPort] }),
  })
  const sockets = createServerSockets({
    config,
    clock,
    access,
    service,
    instances,
    hub,
    metrics,
    heartbeat,
    log,
    writeEvent,
    frames: createRateLimiter(limits.framesPerMinute, clock),
    workerFrames: createRateLimiter(limits.framesPerMinute, clock),
    createId: randomUUID,
    sharedWorkers: backend.sharedWorkers,
  })
  const toolCalls = createToolCalls({
    service,
    hub,
    clock,
    instances: backend.instances,
    limitMs: limits.toolCallMs,
  })
  const app = createRestApp({
    config,
    service,
    hub,
    instances: backend.instances,
    metrics,
    log,
    writeEvent,
    wsUrl: clientUrl,
    telemetry,
    baseUrl: () => backend.publicUrl?.replace(/\/$/, '') ?? httpUrl(),
    pageUrl,
    toolCalls,
    countConnected: () => instances.list().filter(({ isConnected }) => isConnected).length,
    isDraining: () => isDraining,
    register: (request, isBrowser) => backend.register(request, { websocketUrl: workerUrl(), isBrowser }),
    enter: (address) => connections.enter(address),
    keep: (stream) => heartbeat.keep(stream),
  })
  const listener = getRequestListener(app.fetch, { hostname: host, overrideGlobalObjects: false })
  const upgrades = createUpgrades({
    access,
    frameBytes: limits.frameBytes,
    admit: (request): Refusal | undefined => {
      const refusal = rateRefusal(requests, request)
      if (refusal !== undefined) return refusal
      const leave = connections.enter(addressOf(request))
      if (leave === undefined) return { status: 429, ...TOO_MANY_CONNECTIONS }
      request.socket.once('close', leave)
      return undefined
    },
    onSocket: (kind, socket, request) => sockets[kind](socket, request),
    onRefused,
  })
  const httpServer = createServer(
    tls,
    createHttpEntry({ access, requests, onRefused, serve: (request, response) => void listener(request, response) }),
  )
  const wsServer = createServer(
    tls,
    createHttpEntry({
      access,
      requests,
      onRefused,
      serve: (_request, response) => {
        const body = { error: 'This port accepts WebSocket connections only', code: 'UPGRADE_REQUIRED' }
        sendJson(response, 426, body, { upgrade: 'websocket', connection: 'close, upgrade' })
      },
    }),
  )
  const servers = config.tasks.enabled ? [httpServer, wsServer] : [httpServer]
  const network = trackConnections(servers, limits.connectionsPerClient + SPARE_CONNECTIONS)

  const stop = async (): Promise<void> => {
    await taskManager.dispose()
    upgrades.close()
    heartbeat.endAll()
    const stopped = Promise.all([...servers.map(stopListening), sockets.closeAll()])
    if (!(await settledWithin(stopped, clock, CLOSE_MS))) {
      network.destroyAll()
      await stopped
    }
    await instances.dispose()
    metrics.dispose()
    await backend.close()
  }

  const close: TaskServer['close'] = ({ drainMs = config.tasks.drainMs } = {}) => {
    if (typeof drainMs !== 'number' || !(drainMs >= 0)) {
      return Promise.reject(new InvalidInputError('options.drainMs', drainMs, 'a number of ms >= 0, or Infinity'))
    }
    return (closing ??= (async () => {
      isDraining = true
      log('info', `closing: waiting up to ${drainMs} ms for running tasks`)
      await Promise.all([toolCalls.cancelQueued(), backend.drain(drainMs)])
      await stop()
      log('info', 'closed')
    })())
  }

  try {
    for (const instance of given) instances.connect(instance)
    backend.restore()
    upgrades.attach(httpServer, false)
    upgrades.attach(wsServer, true)
    httpPort = await listen(httpServer, host, config.port, {
      host: 'HOST',
      port: 'PORT',
      whenTaken: whenTaken(host, '--port, options.port, PORT'),
    })
    if (config.tasks.enabled) {
      wsPort = await listen(wsServer, host, config.tasks.wsPort, {
        host: 'HOST',
        port: 'TASKS_WS_PORT',
        whenTaken: whenTaken(host, '--ws-port, options.tasks.wsPort, TASKS_WS_PORT'),
      })
    }
  } catch (error) {
    await stop()
    throw error
  }
  const { queued, interrupted } = taskManager.recovered
  if (store !== undefined) {
    log('info', `tasks in the store: ${queued.length} queued, ${interrupted.length} interrupted`)
  }
  log('info', `listening at ${httpUrl()} and ${wsUrl()}`)

  return {
    httpUrl: httpUrl(),
    wsUrl: wsUrl(),
    config,
    taskManager,
    instances,
    storeLost: store?.lost,
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}

/** @param names the names of the setting for the port: the command-line flag, the option, and the environment variable */
const whenTaken =
  (host: string, names: string) =>
  async (port: number): Promise<string> => {
    const holder = (await taskServerAt(host, port)) ?? 'another program'
    return `Port ${port} on ${host} is in use by ${holder}. Choose another port (${names}), or 0 for a free one.`
  }
