/** `startTaskServer({ cluster: bullmqCluster({ … }) })`: several servers behind one address, with their tasks in Redis. */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { ClusterTasks } from '../../command-tasks/cluster-tasks.js'
import { InvalidInputError } from '../../errors.js'
import { aString, checkOptions, numberFrom, type OptionTypes } from '../../protocol/option-checks.js'
import type { Deliver } from '../../task-backend/hub.js'
import { createCursors } from '../../task-backend/task-service.js'
import type { BackendParts, TaskBackend, TaskCluster } from '../../task-backend/task-backend.js'
import { openConnection, redisAccessTypes, toRedisAddress, type RedisAccess } from '../connection.js'
import { DEFAULT_LOCK_MS } from '../queue-settings.js'
import { reportFindings } from '../redis-checks.js'
import { clusterKeys } from './cluster-keys.js'
import { createClusterHub } from './cluster-hub.js'
import { ClusterNode } from './cluster-node.js'
import { createClusterRedis } from './cluster-redis.js'
import { createClusterService, type ExpectedEnd } from './cluster-service.js'
import { HostedTasks } from './hosted-tasks.js'
import { createFeed, type FeedEntry } from './feed.js'
import { toTaskEvent } from './feed-event.js'
import { withLimit } from './time-limit.js'

/** Options of `bullmqCluster`. */
export interface BullmqClusterOptions extends Omit<RedisAccess, 'log'> {
  /** The name of the cluster. All nodes use the same name; several clusters may share a Redis. Default `agent-tasks`. */
  readonly name?: string
  /**
   * The address of the load balancer in front of all nodes, such as `https://tasks.example`. Clients and workers connect to it. Default: each node gives
   * its own address.
   */
  readonly publicUrl?: string
  /** The time after a node's death until its running commands have failed and its instances can connect elsewhere, in ms. Default 15000. */
  readonly lockMs?: number
  /** The time limit of a submission while Redis is away, in ms. After it the submission is refused and does not run. Default 5000. */
  readonly sendTimeoutMs?: number
}

/** The server's log reports connection changes, so the option `log` is left out. */
const { log: _log, ...accessTypes } = redisAccessTypes

const optionTypes: OptionTypes<BullmqClusterOptions> = {
  ...accessTypes,
  name: aString,
  publicUrl: aString,
  lockMs: numberFrom(100),
  sendTimeoutMs: numberFrom(1),
}

/**
 * Creates a cluster of task servers, for `startTaskServer({ cluster })` and for hosts that use the cluster (`tasks()`).
 * @throws InvalidInputError for an unknown or invalid option, and for a Redis without a password that other machines can reach
 */
export function bullmqCluster(options: BullmqClusterOptions): BullmqCluster {
  checkOptions(options, optionTypes)
  const { name = 'agent-tasks', publicUrl, sendTimeoutMs = DEFAULT_SEND_TIMEOUT_MS } = options
  if (!/^[\w.-]+$/.test(name)) {
    throw new InvalidInputError('options.name', name, 'letters, digits, dots, dashes and underscores')
  }
  if (publicUrl !== undefined && !httpUrl.safeParse(publicUrl).success) {
    throw new InvalidInputError('options.publicUrl', publicUrl, 'a URL that begins with http:// or https://')
  }
  const address = toRedisAddress(options)
  return {
    join: (parts) => joinCluster(options, address, parts),
    tasks: ({ log } = {}) => new HostedTasks({ name, address, sendTimeoutMs, log }),
  }
}

/** A cluster of task servers. */
export interface BullmqCluster extends TaskCluster {
  /**
   * The tasks of the cluster, for a process that is not a cluster node. Use it as the `taskManager` of `createAgentTasks`, of the tool
   * `submit_commands`, and of the MCP servers. It connects on first use; `close` ends it.
   */
  tasks(options?: {
    /** Called with one line for each change of a connection. Default: `console.error`. */
    readonly log?: ((line: string) => void) | undefined
  }): ClusterTasks
}

/** The default of `sendTimeoutMs`. */
const DEFAULT_SEND_TIMEOUT_MS = 5000

const httpUrl = z.url({ protocol: /^https?$/ })

async function joinCluster(
  {
    name = 'agent-tasks',
    publicUrl,
    lockMs = DEFAULT_LOCK_MS,
    sendTimeoutMs = DEFAULT_SEND_TIMEOUT_MS,
  }: BullmqClusterOptions,
  address: ReturnType<typeof toRedisAddress>,
  { taskManager: tasks, instances, config, clock, log, isDraining }: BackendParts,
): Promise<TaskBackend> {
  const limits = config.tasks
  const keys = clusterKeys(name)
  const say = (line: string): void => log('warn', line)
  const connection = openConnection(address, { use: 'cluster', log: say })
  const reading = openConnection(address, { use: 'cluster feed', log: say })
  // BullMQ adds listeners for each queue.
  connection.setMaxListeners(0)
  const onError = (error: unknown): void => log('error', 'The cluster', error)
  const inTime = withLimit(clock, sendTimeoutMs)
  const redis = createClusterRedis(connection, keys, limits)
  const node = new ClusterNode({ connection, redis, keys, tasks, instances, limits, clock, log, lockMs })
  let publish: Deliver = () => undefined
  const hub = createClusterHub({
    source: {
      listen: (deliver) => {
        publish = deliver
        return () => (publish = () => undefined)
      },
    },
    read: async (taskId, after) => (await redis.events(taskId, after)).map(toTaskEvent),
    onError,
  })
  const waiting = new Map<string, Set<() => void>>()

  async function onEvent({ id = '', seq = '', m = '' }: Readonly<Record<string, string>>): Promise<void> {
    const ended = waiting.get(id)
    if (hub.size === 0 && ended === undefined) return
    const kept =
      m === ''
        ? (await redis.events(id, Number(seq) - 1)).find((event) => event.seq === Number(seq))
        : { seq: Number(seq), json: m }
    if (kept === undefined) return
    const event = toTaskEvent(kept)
    publish(event)
    if (event.isComplete) for (const stop of [...(ended ?? [])]) stop()
  }

  function onEntry({ type, fields }: FeedEntry): Promise<void> | void {
    const { inst = '', id = '' } = fields
    switch (type) {
      case 'event':
        return onEvent(fields).catch(onError)
      case 'work':
        node.wake(inst)
        return
      case 'cancel':
        node.cancel(id, fields['m'] ?? '')
        return
      case 'instance':
        node.noteInstance(inst, fields['node'] ?? '')
        return
      case 'forgotten':
        node.forget(inst)
    }
  }

  const feed = createFeed({
    redis: reading,
    stream: keys.feed,
    onEntry,
    log: say,
    onGap: () => {
      say('This node has missed events of the cluster: subscribers of tasks read them, those of instances begin anew.')
      hub.catchUpAll()
    },
  })

  function expectEnd(taskId: string): ExpectedEnd {
    const all = waiting.get(taskId) ?? new Set()
    let stop = (): void => undefined
    const told = new Promise<void>((resolve) => {
      const timer = clock.setTimeout(() => stop(), 2 * lockMs)
      stop = () => {
        clock.clearTimeout(timer)
        all.delete(stop)
        if (all.size === 0 && waiting.get(taskId) === all) waiting.delete(taskId)
        resolve()
      }
      waiting.set(taskId, all.add(stop))
    })
    return { told, stop }
  }

  const close = async (): Promise<void> => {
    hub.dispose()
    await node.close()
    feed.close()
    connection.disconnect()
  }

  try {
    await inTime(reportFindings(connection, { name: address.name, log: (line) => log('warn', line) }))
    const sealKey = await redis.shared('cursors', randomBytes(32).toString('hex'))
    await feed.start()
    await node.start()
    await redis.setLimits(limits)
    const service = createClusterService({
      redis,
      limits,
      isDraining,
      expectEnd,
      inTime,
      onError,
      cursors: createCursors(Buffer.from(sealKey, 'hex')),
      queueOf: (instanceId) => node.queueOf(instanceId),
      now: () => clock.now(),
    })
    return {
      service,
      hub,
      publicUrl,
      close,
      instances: { read: () => inTime(node.list()) },
      register: (request, worker) => inTime(node.register(request, worker)),
      sharedWorkers: {
        find: (instanceId, secret) => node.find(instanceId, secret),
        announced: (instanceId) => node.announced(instanceId),
      },
      restore: () => undefined,
      drain: (drainMs) => node.drain(drainMs),
    }
  } catch (error) {
    await close()
    throw error
  }
}
