/** The lane of an instance on its node, when Redis or a lock is not there in time: it goes on. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { ClusterNode } from '../../src/bullmq/cluster/cluster-node.js'
import { createClusterRedis, type ClusterRedis } from '../../src/bullmq/cluster/cluster-redis.js'
import { clusterKeys } from '../../src/bullmq/cluster/cluster-keys.js'
import { openConnection, toRedisAddress } from '../../src/bullmq/connection.js'
import { systemClock } from '../../src/system/clock.js'
import { TaskManager } from '../../src/command-tasks/task-manager.js'
import { InstanceManager } from '../../src/command-tasks/instances/instance-manager.js'
import { localInstance } from '../../src/server/index.js'
import { resolveServerConfig } from '../../src/server/index.js'
import { until } from '../support/cluster-client.js'
import { startRedis } from '../support/redis-server.js'

const LOCK_MS = 3000

/** A node in this process. @param change changes what it asks of Redis */
async function openNode(change: (cluster: ClusterRedis, unlock: (lock: string) => Promise<unknown>) => ClusterRedis) {
  const server = await startRedis()
  const redis = openConnection(toRedisAddress({ connection: server.url }), { use: 'test', log: () => undefined })
  redis.setMaxListeners(0)
  const keys = clusterKeys('test')
  const cluster = createClusterRedis(redis, keys, { maxRetained: 100 })
  const instances = new InstanceManager()
  const tasks = new TaskManager({ instances })
  const claims: string[] = []
  const recorded = (real: ClusterRedis): ClusterRedis => ({
    ...real,
    claim: (instanceId, ...rest) => {
      claims.push(instanceId)
      return real.claim(instanceId, ...rest)
    },
  })
  const node = new ClusterNode({
    connection: redis,
    keys,
    tasks,
    instances,
    lockMs: LOCK_MS,
    clock: systemClock,
    log: () => undefined,
    redis: recorded(change(cluster, (lock) => redis.del(lock))),
    limits: resolveServerConfig().tasks,
  })
  onTestFinished(async () => {
    await node.close()
    await Promise.all([tasks.dispose(), instances.dispose()])
    redis.disconnect()
    await server.close()
  })
  await node.start()
  const calls: string[] = []
  const execute = (args: unknown): object => {
    calls.push((args as { mark: string }).mark)
    return {}
  }
  return {
    redis,
    keys,
    cluster,
    node,
    calls,
    claims,
    disconnect: () => instances.disconnect('w'),
    connect: () => instances.connect(localInstance({ id: 'w', tools: [{ name: 'do', execute }] })),
    submit: async (mark: string): Promise<string> => {
      const commands = [{ id: 'cmd_1', tool_name: 'do', intention: '', args: { mark }, status: 'pending' }]
      const record = JSON.stringify({ name: mark, intention: '', commands })
      const [, id] = await cluster.accept(
        'w',
        { record, summary: '{}', createdAt: 1, bytes: 10, key: '' },
        { queue: 9, bytes: 1000 },
      )
      await node.queueOf('w').add(id, mark)
      await cluster.confirm(id)
      node.wake('w')
      return id
    },
    ended: (id: string) =>
      until(async () => {
        const task = (await cluster.read(id))?.task
        return task?.completedAt !== undefined && task
      }),
  }
}

describe('the lane of an instance', () => {
  it('N1: goes on when the lock of what it has fetched has ended before it began', async () => {
    let isFirst = true
    const { connect, submit, ended, calls, cluster, node } = await openNode((real, unlock) => ({
      ...real,
      begin: async (id, lock, ...rest) => {
        if (isFirst) await unlock(lock)
        isFirst = false
        return real.begin(id, lock, ...rest)
      },
    }))
    connect()
    await until(async () => (await cluster.instance('w'))['node'] === node.id)
    await submit('one')
    const two = await submit('two')
    expect(await ended(two)).toMatchObject({ status: 'completed' })
    expect(calls).toEqual(['one', 'two'])
  })

  it('N1: leaves an instance that has gone while Redis was away to the node where it is', async () => {
    const { connect, disconnect, redis, keys, cluster, claims } = await openNode((real) => ({
      ...real,
      // Its instance connects elsewhere before Redis answers.
      nextEpoch: async () => {
        await disconnect()
        await real.claim('w', 'elsewhere', await real.nextEpoch(), true, 1, { kind: 'local' })
        return real.nextEpoch()
      },
    }))
    await cluster.renew('elsewhere', 60_000, [], [])
    connect()
    await until(async () => (await redis.get(`${keys.own}epoch`)) === '2')
    expect(claims).toEqual([])
    expect(await cluster.instance('w')).toMatchObject({ node: 'elsewhere', epoch: '1' })
  })

  it('N4: is opened again when what an earlier connection has left could not be settled', async () => {
    let isFirst = true
    const { connect, submit, ended, calls, node, cluster } = await openNode((real) => ({
      ...real,
      seizeFromEarlier: (...args) => {
        if (!isFirst) return real.seizeFromEarlier(...args)
        isFirst = false
        return Promise.reject(new Error('The connection was lost.'))
      },
    }))
    await cluster.renew('earlier', 60_000, [], [])
    await cluster.claim('w', 'earlier', await cluster.nextEpoch(), true, 1, { kind: 'local' })
    const id = await submit('left')
    expect((await node.queueOf('w').next('earlier:1'))?.id).toBe(id)
    await cluster.leave('earlier')
    connect()
    expect(await ended(id)).toMatchObject({ status: 'completed' })
    expect(calls).toEqual(['left'])
  })
})
