/** A cluster whose nodes are in this process, for tests that do not kill or pause a node. */
import { onTestFinished } from 'vitest'
import { bullmqCluster } from '../../src/bullmq/index.js'
import { startTaskServer, type TaskServer, type TaskServerOptions } from '../../src/server/index.js'
import { connectTo, inTurn, startFront } from './front.js'
import { startRedis, type RedisServer } from './redis-server.js'

export interface NearCluster {
  readonly redis: RedisServer
  /** The address in front of all nodes. */
  readonly url: string
  readonly nodes: readonly TaskServer[]
  /** Cuts all connections through the address. */
  readonly cut: () => void
}

export interface NearClusterSetup {
  /** Whether workers stay at the node at which they registered. */
  readonly hasOwnAddresses?: boolean
  /** How long the data from the first node to Redis is delayed, in ms. */
  readonly firstDelayMs?: number
  readonly server?: TaskServerOptions
}

/** Starts a cluster that ends with the test. */
export async function startNearCluster(count: number, setup: NearClusterSetup = {}): Promise<NearCluster> {
  const redis = await startRedis()
  onTestFinished(() => redis.close())
  const slow = await startFront(() => connectTo(redis.port), setup.firstDelayMs)
  const nodes: TaskServer[] = []
  const { port, cut } = await startFront(inTurn(() => nodes))
  const url = `http://127.0.0.1:${port}`
  for (let index = 0; index < count; index += 1) {
    const node = await startTaskServer({
      logLevel: 'silent',
      env: {},
      ...setup.server,
      port: 0,
      tasks: { wsPort: 0, abortGraceMs: 0, ...setup.server?.tasks },
      cluster: bullmqCluster({
        connection: index === 0 ? `redis://127.0.0.1:${slow.port}` : redis.url,
        ...(setup.hasOwnAddresses !== true && { publicUrl: url }),
      }),
    })
    onTestFinished(() => node.close({ drainMs: 0 }))
    nodes.push(node)
  }
  return { redis, url, nodes, cut }
}
