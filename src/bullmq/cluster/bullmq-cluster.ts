/**
 * Joins several task servers to a cluster: `startTaskServer({ cluster: bullmqCluster({ … }) })`. The servers share one address, and keep their tasks
 * in Redis.
 */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { ClusterTasks } from '../../command-tasks/cluster-tasks.js'
import { InvalidInputError } from '../../errors.js'
import { aString, checkOptions, numberFrom, type OptionTypes } from '../../protocol/option-checks.js'
import type { Deliver } from '../../server/backend/hub.js'
import { createCursors } from '../../server/backend/task-service.js'
import type { BackendParts, TaskBackend, TaskCluster } from '../../server/backend/task-backend.js'
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
  /** The name of the cluster. All servers of a cluster use the same name. Several clusters may share a Redis. Default `agent-tasks`. */
  readonly name?: string
  /**
   * The address of the load balancer in front of all servers, such as `https://tasks.example`. Clients and workers connect to this address. Default:
   * each server gives clients its own address.
   */
  readonly publicUrl?: string
  /** How long after a server's death its running commands fail and its instances can connect to another server, in ms. Default 15000. */
  readonly lockMs?: number
  /** How long a submission may wait for Redis, in ms. After that it is refused, and the task does not run. Default 5000. */
  readonly sendTimeoutMs?: number
}

/** The option `log` is left out, because the log of the task server reports when a connection is lost or restored. */
const { log: _log, ...accessTypes } = redisAccessTypes

const optionTypes: OptionTypes<BullmqClusterOptions> = {
  ...accessTypes,
  name: aString,
  publicUrl: aString,
  lockMs: numberFrom(100),
  sendTimeoutMs: numberFrom(1),
}

/**
 * Creates a cluster of task servers. Pass it to `startTaskServer({ cluster })`. A process that only uses the cluster calls its `tasks()`.
 * @throws INVALID_INPUT for an unknown or invalid option
 * @throws INVALID_INPUT for a Redis that has no password and that other machines can reach
 */
export function bullmqCluster(options: BullmqClusterOptions): BullmqCluster {
  checkOptions(options, optionTypes)
  const { name = 'agent-tasks', publicUrl, sendTimeoutMs = DEFAULT_SEND_TIMEOUT_MS } = options
  if (!/^[\w.-]+$/.test(name)) {
    throw new InvalidInputError(
      'options.name',
      name,
      'at least 1 character: letters, digits, dots, dashes and underscores',
    )
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
   * Returns the tasks of the cluster, for a process that is not one of its servers. `createAgentTasks`, the tool `submit_commands` and the MCP
   * servers accept the result as `taskManager`. It connects to Redis on first use, and disconnects on `close`.
   */
  tasks(options?: {
    /** Receives one line each time a connection is lost or restored. Default: `console.error`. */
    readonly log?: ((line: string) => void) | undefined
  }): ClusterTasks
}

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
  // BullMQ adds listeners for each queue, so Node would warn of a leak.
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
      say(
        'This node has missed events of the cluster. Subscribers of tasks now read them from Redis. Subscribers of instances are notified that events are missing.',
      )
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
