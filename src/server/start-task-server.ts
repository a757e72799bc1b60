/** Starts the server: reads its configuration, wires its parts, listens, and takes it all down again. */
import { randomUUID } from 'node:crypto'
import { getRequestListener } from '@hono/node-server'
import { systemClock, type Clock } from '../clock.js'
import { TaskManager } from '../command-tasks/task-manager.js'
import type { Engine } from '../engine/engine.js'
import type { Inspect } from '../callbacks/inspection.js'
import { createInProcessEngine } from '../engine/in-process.js'
import type { Instance } from '../instances/instance.js'
import { InstanceManager } from '../instances/instance-manager.js'
import { registerWorker } from '../instances/worker-socket.js'
import { resolveServerConfig, type ServerConfig, type ServerConfigInput } from '../protocol/server-config.js'
import { addressOf, createAccess, type Refusal } from './access.js'
import { readConfigFile, readTls } from './config-file.js'
import { createEventLog } from './event-log.js'
import { createFairEngine } from '../engine/fair-engine.js'
import { createHeartbeat } from './heartbeat.js'
import { createHttpEntry, rateRefusal } from './http-entry.js'
import { createHub } from './hub.js'
import { createServer, listen, stopListening, urlOf } from './listening.js'
import { createLog } from './log.js'
import { createMetrics } from './metrics.js'
import { createConnectionCounts, createRateLimiter } from './rates.js'
import { createRestApp, TOO_MANY_CONNECTIONS } from './rest-app.js'
import { createServerSockets } from './server-sockets.js'
import { drainTasks, settledWithin } from './shutdown.js'
import { createTaskService } from './task-service.js'
import { createUpgrades, WORKER_PATH } from './upgrades.js'

/** The values of the configuration, and what is no value. */
export interface TaskServerOptions extends ServerConfigInput {
  /** What runs commands. The server closes them when it closes. */
  readonly instances?: readonly Instance[]
  /** Where variables are read. Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** The path of a JSON file of values; default: the variable `CONFIG_FILE`. */
  readonly configFile?: string
  /** Default: the platform's. */
  readonly clock?: Clock
  /** Where calls are started. Default: in this process. */
  readonly engine?: Engine
  /** Sees what instances, lanes and tasks do (XState's inspection events); the server does not close it. */
  readonly inspect?: Inspect | undefined
  /** Gets each line of the log. Default: `console.error`. */
  readonly writeLog?: (line: string) => void
}

/** A server that listens. */
export interface TaskServer {
  /** Where REST is, as in `http://127.0.0.1:3300`. */
  readonly httpUrl: string
  /** Where clients open their sockets, as in `ws://127.0.0.1:3400`. */
  readonly wsUrl: string
  /** Every value, after defaults. */
  readonly config: ServerConfig
  /** The tasks. */
  readonly taskManager: TaskManager
  /** The instances, and who comes and goes. */
  readonly instances: InstanceManager
  /**
   * Takes no new tasks, cancels what is queued, gives what runs some time, tells every end, and closes everything.
   * Calling it again waits for the same end.
   * @param options.drainMs how long running tasks get, in ms; default `tasks.drainMs`
   */
  close(options?: { readonly drainMs?: number }): Promise<void>
}

/** How long sockets get to answer a goodbye, and streams to be read, in ms. */
const GOODBYE_MS = 2000
const HEARTBEAT_MS = 30_000

/**
 * Starts a server of command tasks.
 * @throws InvalidSettingError for a value that is not allowed, or a port that is taken; nothing is left open then
 */
export async function startTaskServer(options: TaskServerOptions = {}): Promise<TaskServer> {
  const {
    instances: given = [],
    env = process.env,
    configFile = env['CONFIG_FILE'],
    clock = systemClock,
    engine = createInProcessEngine({ clock }),
    inspect,
    writeLog,
    ...values
  } = options
  const config = resolveServerConfig({ options: values, env, file: readConfigFile(configFile) })
  const tls = readTls(config)
  const { host, limits } = config
  const report = createLog(config.logLevel, writeLog)

  const instances = new InstanceManager({
    clock,
    inspect,
    onError: (error, { source, instanceId }) => report('error', `${source} of instance ${instanceId}`, error),
  })
  const { commandTimeout, maxQueueSize, abortGraceMs, retentionMs, maxRetained } = config.tasks
  const taskManager = new TaskManager({
    ...{ instances, commandTimeout, maxQueueSize, abortGraceMs, retentionMs, maxRetained, clock, inspect },
    engine: createFairEngine(engine, clock),
    onError: (error, { source }) => report(source === 'late-result' ? 'warn' : 'error', source, error),
  })
  const log = createEventLog(clock)
  const hub = createHub(taskManager, log)
  const metrics = createMetrics(taskManager, () => hub.size)
  const heartbeat = createHeartbeat(clock, HEARTBEAT_MS)
  const requests = createRateLimiter(limits.requestsPerMinute, clock)
  const connections = createConnectionCounts(limits.connectionsPerClient)
  let isDraining = false
  let closing: Promise<void> | undefined
  let httpPort = config.port
  let wsPort = config.tasks.wsPort

  const scheme = tls === undefined ? '' : 's'
  const httpUrl = (): string => urlOf(`http${scheme}`, host, httpPort)
  const wsUrl = (): string =>
    config.tasks.enabled ? urlOf(`ws${scheme}`, host, wsPort) : `${urlOf(`ws${scheme}`, host, httpPort)}/ws`
  const workerUrl = (): string => `${urlOf(`ws${scheme}`, host, httpPort)}${WORKER_PATH}`

  const service = createTaskService({
    tasks: taskManager,
    isEnabled: config.tasks.enabled,
    isDraining: () => isDraining,
  })
  const access = createAccess(config, () => [httpPort, wsPort])
  const sockets = createServerSockets({
    ...{ config, clock, access, service, instances, hub, metrics, heartbeat, report },
    frames: createRateLimiter(limits.framesPerMinute, clock),
    createId: randomUUID,
  })
  const app = createRestApp({
    ...{ config, tasks: taskManager, service, instances, hub, log, metrics, report, wsUrl },
    isDraining: () => isDraining,
    register: (request) => registerWorker(instances, request, { websocketUrl: workerUrl(), clock }),
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
    onRefused: ({ code }) => metrics.refused(code),
  })
  const httpServer = createServer(
    tls,
    createHttpEntry({ access, requests, metrics, serve: (request, response) => void listener(request, response) }),
  )
  const wsServer = createServer(
    tls,
    createHttpEntry({
      ...{ access, requests, metrics },
      serve: (_request, response) => {
        response.writeHead(426, {
          'content-type': 'application/json',
          upgrade: 'websocket',
          connection: 'close, upgrade',
        })
        response.end(JSON.stringify({ error: 'This port speaks WebSocket', code: 'UPGRADE_REQUIRED' }))
      },
    }),
  )
  const servers = config.tasks.enabled ? [httpServer, wsServer] : [httpServer]

  const takeDown = async (): Promise<void> => {
    await taskManager.dispose()
    upgrades.close()
    heartbeat.endAll()
    const stopped = Promise.all([...servers.map(stopListening), sockets.closeAll()])
    if (!(await settledWithin(stopped, clock, GOODBYE_MS))) {
      sockets.terminateAll()
      for (const server of servers) server.closeAllConnections()
      await stopped
    }
    await instances.dispose()
    hub.dispose()
    metrics.dispose()
    log.dispose()
  }

  try {
    for (const instance of given) instances.connect(instance)
    upgrades.attach(httpServer, false)
    upgrades.attach(wsServer, true)
    httpPort = await listen(httpServer, host, config.port, 'PORT')
    if (config.tasks.enabled) wsPort = await listen(wsServer, host, config.tasks.wsPort, 'TASKS_WS_PORT')
  } catch (error) {
    await takeDown()
    throw error
  }
  report('info', `listening at ${httpUrl()} and ${wsUrl()}`)

  return {
    httpUrl: httpUrl(),
    wsUrl: wsUrl(),
    config,
    taskManager,
    instances,
    close: ({ drainMs = config.tasks.drainMs } = {}) =>
      (closing ??= (async () => {
        isDraining = true
        report('info', `closing: running tasks get ${drainMs} ms`)
        await drainTasks(taskManager, clock, drainMs)
        await takeDown()
        report('info', 'closed')
      })()),
  }
}
