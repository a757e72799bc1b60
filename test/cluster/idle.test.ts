/** What nodes do while nothing happens: little, and enough to find what they were not told. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { readSubmission } from '../../src/command-tasks/submission.js'
import { openConnection, toRedisAddress } from '../../src/bullmq/connection.js'
import { clusterKeys } from '../../src/bullmq/cluster/cluster-keys.js'
import { createClusterRedis } from '../../src/bullmq/cluster/cluster-redis.js'
import { createInstanceQueue } from '../../src/bullmq/cluster/instance-queue.js'
import { submissionField, summaryField } from '../../src/bullmq/cluster/task-fields.js'
import { startMortalCluster } from '../support/cluster.js'
import { connectWatched } from '../support/cluster-instance.js'
import { taskFor } from '../support/cluster-client.js'
import { watchCommands } from '../support/redis-monitor.js'
import { startRedis } from '../support/redis-server.js'

const LIFE_MS = 60_000

/** A client of the data of a cluster that is no node of it. */
function openRedis(url: string, name: string) {
  const redis = openConnection(toRedisAddress({ connection: url }), { use: 'test', log: () => undefined })
  onTestFinished(() => redis.disconnect())
  const keys = clusterKeys(name)
  const queueOf = (instanceId: string) => {
    const queue = createInstanceQueue(keys.queue(instanceId), {
      redis,
      prefix: keys.prefix,
      lockMs: LIFE_MS,
      onError: () => undefined,
    })
    onTestFinished(() => queue.close())
    return queue
  }
  const cluster = createClusterRedis(redis, keys, { maxRetained: 10 })
  /** A task that is ready to be run, and that nobody was told of. */
  const addUntold = async (instanceId: string): Promise<string> => {
    const read = readSubmission({ type: 'task_submit', ...taskFor(instanceId, 'do', { mark: 'untold' }) })
    if ('error' in read) throw new Error(read.error)
    const { submission } = read
    const [, id] = await cluster.accept(
      instanceId,
      { record: submissionField(submission), summary: summaryField(submission), createdAt: 1, bytes: 1, key: '' },
      { queue: 5, bytes: 1000 },
    )
    await redis.zrem(`${keys.own}joining`, id)
    await queueOf(instanceId).add(id, 'task')
    return id
  }
  return { redis, cluster, addUntold }
}

describe('a node', () => {
  it('N1: finds a task whose message it missed when it renews its lock', async () => {
    const cluster = await startMortalCluster(1)
    const worker = await connectWatched(cluster.url, 'w')
    const { addUntold } = openRedis(cluster.redis.url, 'agent-tasks')
    await addUntold('w')
    await worker.untilStarted('untold')
    expect(worker.deeds[0]).toMatchObject({ mark: 'untold', step: 'start' })
  })

  it('N1: learns which of its instances have work with one command', async () => {
    const server = await startRedis({ appendfsync: 'no file' })
    onTestFinished(() => server.close())
    const { cluster, addUntold } = openRedis(server.url, 'test')
    await cluster.renew('n1', LIFE_MS, [], [])
    const held: { id: string; epoch: number }[] = []
    for (const id of ['v', 'w w']) {
      const claimed = await cluster.claim(id, 'n1', await cluster.nextEpoch(), true, 1, {})
      held.push({ id, epoch: 'epoch' in claimed ? claimed.epoch : -1 })
    }
    expect(await cluster.renew('n1', LIFE_MS, held, [])).toEqual(['ok', 'ok'])
    await addUntold('w w')
    let sent = 0
    const stop = await watchCommands(server.port, () => (sent += 1))
    onTestFinished(stop)
    expect(await cluster.renew('n1', LIFE_MS, held, [])).toEqual(['ok', 'work'])
    expect(sent).toBeLessThanOrEqual(1)
  })
})

describe('the nodes of a cluster', () => {
  it('N4: look for what nobody looks after one at a time, and each when it is time again', async () => {
    const server = await startRedis({ appendfsync: 'no file' })
    onTestFinished(() => server.close())
    const { cluster, addUntold, redis } = openRedis(server.url, 'test')
    await cluster.renew('n1', LIFE_MS, [], [])
    await cluster.claim('w', 'n1', await cluster.nextEpoch(), true, 1, {})
    const id = await addUntold('w')
    await cluster.lose('w', 'n1', 1)
    const look = () => cluster.survey(0, LIFE_MS, LIFE_MS, LIFE_MS)
    const found = [{ kind: 'awaited', instanceId: 'w', ids: [id] }]
    expect(await look()).toEqual(found)
    expect(await look()).toEqual([])
    expect(await redis.pttl('{test}:cluster:surveyed')).toBeGreaterThan(0)
    await redis.del('{test}:cluster:surveyed')
    expect(await look()).toEqual(found)
  })
})
