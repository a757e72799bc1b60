/** What a cluster changes in Redis, one step at a time: who may change a task, and when. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { openConnection, toRedisAddress } from '../../src/bullmq/connection.js'
import { clusterKeys } from '../../src/bullmq/cluster/cluster-keys.js'
import { createClusterService } from '../../src/bullmq/cluster/cluster-service.js'
import { createInstanceQueue } from '../../src/bullmq/cluster/instance-queue.js'
import { createClusterRedis, type TaskWrite } from '../../src/bullmq/cluster/cluster-redis.js'
import { resolveServerConfig } from '../../src/server/index.js'
import { createCursors } from '../../src/server/backend/task-service.js'
import { taskFor, until } from '../support/cluster-client.js'
import { startRedis } from '../support/redis-server.js'

const LIFE_MS = 60_000

async function openCluster(maxRetained = 10) {
  const server = await startRedis()
  const redis = openConnection(toRedisAddress({ connection: server.url }), { use: 'test', log: () => undefined })
  onTestFinished(async () => {
    redis.disconnect()
    await server.close()
  })
  const keys = clusterKeys('test')
  const cluster = createClusterRedis(redis, keys, { maxRetained })
  await cluster.renew('n1', LIFE_MS, [], [])
  await cluster.renew('n2', LIFE_MS, [], [])
  const accept = async (key = '', instanceId = 'w', name = 't') => {
    const [code, id] = await cluster.accept(
      instanceId,
      { record: JSON.stringify({ name, intention: '', commands: [] }), summary: '{}', createdAt: 1, bytes: 10, key },
      { queue: 5, bytes: 1000 },
    )
    return { code, id }
  }
  const queue = keys.queueKey('w')
  /** A task that a node has fetched. */
  const fetch = async (id: string, token: string) => {
    const jobs = createInstanceQueue(keys.queue('w'), {
      redis,
      prefix: keys.prefix,
      lockMs: LIFE_MS,
      onError: () => undefined,
    })
    onTestFinished(() => jobs.close())
    await jobs.add(id, 't')
    expect((await jobs.next(token))?.id).toBe(id)
  }
  const lockOf = (id: string) => `${queue}:${id}:lock`
  /** A task that an instance runs. */
  const run = async (token: string, epoch: number) => {
    const { id } = await accept()
    await cluster.confirm(id)
    await fetch(id, token)
    expect(await cluster.begin(id, queue, token, epoch, 5)).toBe('run')
    return id
  }
  return { redis, keys, cluster, accept, run, fetch, queue, lockOf }
}

const claimed = (answer: { epoch: number } | { holder: string }): number => ('epoch' in answer ? answer.epoch : -1)

const write = (seq: number, fields: Record<string, string> = {}, isEnd = false): TaskWrite => ({
  fields,
  isEnd,
  dropped: [],
  bytes: 0,
  events: [{ seq, json: `{"seq":${seq}}` }],
})

describe('a task', () => {
  it('N1: what another connection of its instance reports changes nothing', async () => {
    const { redis, cluster, run, queue, lockOf } = await openCluster()
    const first = claimed(await cluster.claim('w', 'n1', await cluster.nextEpoch(), true, 1, { kind: 'websocket' }))
    const id = await run(`n1:${first}`, first)
    expect(await cluster.record(id, queue, `n1:${first}`, write(1, { index: '0' }))).toBe('ok')
    const second = claimed(await cluster.claim('w', 'n2', await cluster.nextEpoch(), true, 1, { kind: 'websocket' }))
    expect(second).toBeGreaterThan(first)
    expect(await cluster.seizeFromEarlier('w', id, `n2:${second}`, LIFE_MS, second)).toBe(true)
    const before = await cluster.readWithLog(id, 0)
    expect(await cluster.record(id, queue, `n1:${first}`, write(2, { index: '7' }))).toBe('stale')
    expect(await cluster.record(id, queue, `n1:${first}`, write(2, { status: 'completed' }, true))).toBe('stale')
    expect(
      await cluster.renew('n1', LIFE_MS, [{ id: 'w', epoch: first }], [{ taskId: id, queue, token: `n1:${first}` }]),
    ).toEqual(['taken', 'lost'])
    expect(await redis.get(lockOf(id))).toBe(`n2:${second}`)
    expect(await cluster.readWithLog(id, 0)).toEqual(before)
    // The loss of the earlier connection is no loss of the later one.
    await cluster.lose('w', 'n1', first)
    expect((await cluster.instance('w'))['node']).toBe('n2')
  })

  it('N1: is not begun under an earlier epoch, nor seized for one', async () => {
    const { redis, cluster, accept, fetch, queue, lockOf } = await openCluster()
    const first = claimed(await cluster.claim('w', 'n1', await cluster.nextEpoch(), true, 1, {}))
    const { id } = await accept()
    await cluster.confirm(id)
    const second = claimed(await cluster.claim('w', 'n2', await cluster.nextEpoch(), true, 1, {}))
    await fetch(id, `n1:${first}`)
    expect(await cluster.begin(id, queue, `n1:${first}`, first, 5)).toBe('stale')
    expect(await cluster.begin(id, queue, `n2:${second}`, second, 5)).toBe('unlocked')
    expect(await cluster.seizeFromEarlier('w', id, `n1:${first}`, LIFE_MS, first)).toBe(false)
    expect(await cluster.seize('w', id, `n2:${second}`, LIFE_MS)).toBe(false)
    expect(await cluster.seizeFromEarlier('w', id, `n2:${second}`, LIFE_MS, second)).toBe(true)
    expect(await cluster.begin(id, queue, `n2:${second}`, second, 5)).toBe('run')
    // Sent again by a connection that was lost: it is still the same beginning. Nobody else begins it.
    expect(await cluster.begin(id, queue, `n2:${second}`, second, 5)).toBe('run')
    await redis.del(lockOf(id))
    expect(await cluster.seize('w', id, 'n2:sweep', LIFE_MS)).toBe(true)
    expect(await cluster.begin(id, queue, 'n2:sweep', second, 5)).toBe('begun')
  })

  it('N3: has one end, and each event once, also when a write is sent twice', async () => {
    const { cluster, run, queue } = await openCluster()
    const epoch = claimed(await cluster.claim('w', 'n1', await cluster.nextEpoch(), true, 1, {}))
    const id = await run(`n1:${epoch}`, epoch)
    for (const _ of [1, 2]) expect(await cluster.record(id, queue, `n1:${epoch}`, write(1))).toBe('ok')
    const end = write(2, { status: 'completed', completedAt: '9', duration: '4' }, true)
    for (const _ of [1, 2]) expect(await cluster.record(id, queue, `n1:${epoch}`, end)).toBe('ok')
    expect(await cluster.record(id, queue, `n1:${epoch}`, write(3, { status: 'failed' }, true))).toBe('over')
    expect(await cluster.endQueued(id, '{}', { status: 'cancelled' })).toBe(false)
    expect(await cluster.askCancel(id, '')).toBe(false)
    const { found, events } = await cluster.readWithLog(id, 0)
    expect(found?.task.status).toBe('completed')
    expect(events.map(({ seq }) => seq)).toEqual([1, 2])
  })

  it('N2: runs only when its submission is confirmed, and one that is given up leaves nothing', async () => {
    const { cluster, accept, fetch, queue } = await openCluster()
    const epoch = claimed(await cluster.claim('w', 'n1', await cluster.nextEpoch(), true, 1, {}))
    const { id } = await accept('key')
    await fetch(id, `n1:${epoch}`)
    expect(await cluster.begin(id, queue, `n1:${epoch}`, epoch, 5)).toBe('joining')
    // Too young for those who look after others.
    expect(await cluster.abandon(id, 60_000)).toBe(false)
    expect(await cluster.abandon(id)).toBe(true)
    expect(await cluster.confirm(id)).toBe(false)
    expect(await cluster.begin(id, queue, `n1:${epoch}`, epoch, 5)).toBe('gone')
    const again = await accept('key')
    expect(again.code).toBe('OK')
    expect(again.id).not.toBe(id)
    await cluster.confirm(again.id)
    expect(await cluster.abandon(again.id)).toBe(false)
    expect(await accept('key')).toEqual({ code: 'KNOWN', id: again.id })
    // As one step: a task that is given up a moment later is not taken for another one.
    expect((await accept('key', 'w', 'another')).code).toBe('REUSED')
    expect((await accept('key', '')).code).toBe('REUSED')
  })

  it('N2: whose node died before it was confirmed is confirmed by the request that repeats it', async () => {
    const { redis, keys, cluster } = await openCluster()
    await cluster.claim('w', 'n1', await cluster.nextEpoch(), true, 1, {})
    const queue = createInstanceQueue(keys.queue('w'), {
      redis,
      prefix: keys.prefix,
      lockMs: LIFE_MS,
      onError: () => undefined,
    })
    onTestFinished(() => queue.close())
    let isAlive = false
    const limits = { ...resolveServerConfig().tasks, maxQueueSize: 1 }
    const service = createClusterService({
      // The first request reaches Redis once, and then its node dies.
      redis: {
        ...cluster,
        confirm: (id) => (isAlive ? cluster.confirm(id) : Promise.reject(new Error('It has died.'))),
      },
      limits,
      queueOf: () => queue,
      cursors: createCursors(),
      isDraining: () => false,
      now: () => 1,
      expectEnd: () => ({ told: Promise.resolve(), stop: () => undefined }),
      inTime: (promise) => promise,
      onError: () => undefined,
    })
    const message = taskFor('w', 'do', { mark: 'one' })
    expect(await service.submit(message, 'key')).toMatchObject({ code: 'NOT_STORED' })
    isAlive = true
    expect(await service.submit(taskFor('w', 'do', { mark: 'two' }), 'key')).toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    })
    const answer = await service.submit(message, 'key')
    expect(answer).toMatchObject({ queuePosition: 1 })
    const { taskId } = answer as { taskId: string }
    expect(await cluster.abandon(taskId)).toBe(false)
    expect(await service.submit(message, 'key')).toEqual(answer)
    expect((await queue.next('n1:1'))?.id).toBe(taskId)
    expect(await queue.next('n1:1')).toBeUndefined()
  })

  it('N5: has a place within the limits of the whole cluster, and old ends are forgotten for it', async () => {
    const { redis, cluster, accept } = await openCluster(2)
    await cluster.claim('w', 'n1', await cluster.nextEpoch(), true, 1, {})
    await cluster.claim('v', 'n2', await cluster.nextEpoch(), true, 1, {})
    const ids: string[] = []
    for (let n = 0; n < 5; n += 1) ids.push((await accept()).id)
    expect((await accept()).code).toBe('QUEUE_FULL')
    expect((await accept('', 'v')).code).toBe('OK')
    expect((await accept('', 'nobody')).code).toBe('INVALID_INSTANCE')
    for (const id of ids.slice(0, 4)) expect(await cluster.endQueued(id, '{}', { status: 'cancelled' })).toBe(true)
    expect((await accept()).code).toBe('OK')
    const known = await Promise.all(ids.map(async (id) => (await cluster.read(id)) !== undefined))
    expect(known).toEqual([false, false, true, true, true])
    expect(await redis.get('{test}:cluster:bytes')).toBe('50')
  })
})

describe('an instance', () => {
  it('N1: stays with its later connection, however late an earlier one claims it', async () => {
    const { cluster } = await openCluster()
    const [earlier, later] = [await cluster.nextEpoch(), await cluster.nextEpoch()]
    expect(await cluster.claim('w', 'n1', later, true, 1, {})).toEqual({ epoch: later })
    expect(await cluster.claim('w', 'n2', earlier, true, 1, {})).toEqual({ holder: 'n1' })
    // As one whose answer was lost: it is sent again.
    expect(await cluster.claim('w', 'n1', later, true, 1, {})).toEqual({ epoch: later })
    expect(await cluster.instance('w')).toMatchObject({ node: 'n1', epoch: String(later) })
  })

  it('N4: of a node that is silent is lost, and one that nobody waits for leaves nothing behind', async () => {
    const { redis, cluster, accept } = await openCluster()
    await cluster.renew('n3', LIFE_MS, [], [])
    await cluster.claim('w', 'n3', await cluster.nextEpoch(), false, 1, {})
    expect(await cluster.claim('w', 'n1', await cluster.nextEpoch(), false, 1, {})).toEqual({ holder: 'n3' })
    const { id } = await accept()
    await cluster.confirm(id)
    await cluster.renew('n3', 1, [], [])
    await until(async () => {
      await cluster.survey(60_000, 60_000, 60_000)
      return (await cluster.instance('w'))['node'] === ''
    })
    expect((await accept()).code).toBe('NOT_CONNECTED')
    // Its grace has passed.
    expect(await cluster.survey(0, 60_000, 60_000)).toEqual([{ kind: 'awaited', instanceId: 'w', ids: [id] }])
    await cluster.endQueued(id, '{}', { status: 'failed' })
    await cluster.survey(0, 60_000, 0)
    await cluster.survey(0, 60_000, 0)
    const left = (await redis.keys('*')).toSorted().map((key) => key.replace('{test}:cluster:', ''))
    expect(left).toEqual(['bytes', 'epoch', 'feed', 'n', 'node:n1', 'node:n2', 'place', 'serial'])
  })

  it('N5: has one registration in the whole cluster', async () => {
    const { cluster, accept } = await openCluster()
    const register = (graceMs = 60_000, most = 10) => cluster.register('w', 'digest', '{}', graceMs, most)
    expect(await register()).toBe('OK')
    expect(await register()).toBe('IN_USE')
    expect(await register(0, 0)).toBe(1)
    expect(await register(0)).toBe('OK')
    const epoch = claimed(await cluster.claim('w', 'n1', await cluster.nextEpoch(), true, 1, {}))
    expect(await register(0)).toBe('IN_USE')
    await accept()
    await cluster.lose('w', 'n1', epoch)
    expect(await register(0)).toBe('AWAITED')
  })

  it('N5: registers again what has left and is not awaited, but not what is about to connect', async () => {
    const { cluster } = await openCluster()
    const register = () => cluster.register('w', 'digest', '{}', 60_000, 10)
    expect(await register()).toBe('OK')
    const epoch = claimed(await cluster.claim('w', 'n1', await cluster.nextEpoch(), true, 1, {}))
    await cluster.lose('w', 'n1', epoch)
    expect(await register()).toBe('OK')
    expect(await register()).toBe('IN_USE')
  })

  it('N5: registers no more while many are lost: as many as may wait, or as are connected', async () => {
    const { cluster } = await openCluster()
    const register = (id: string) => cluster.register(id, 'digest', '{}', 60_000, 2)
    const epochs = new Map<string, number>()
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      expect(await register(id)).toBe('OK')
      epochs.set(id, claimed(await cluster.claim(id, 'n1', await cluster.nextEpoch(), true, 1, {})))
    }
    const lose = (id: string) => cluster.lose(id, 'n1', epochs.get(id) ?? 0)
    await lose('a')
    await lose('b')
    expect(await register('f')).toBe('OK')
    expect(await register('g')).toBe(3)
    await cluster.claim('a', 'n1', await cluster.nextEpoch(), true, 1, {})
    expect(await register('g')).toBe('OK')
    await lose('c')
    await lose('d')
    expect(await register('h')).toBe(5)
    await cluster.survey(0, 60_000, 60_000)
    expect(await register('h')).toBe('OK')
  })

  it('N5: registers no more while the instances of a node that died are lost', async () => {
    const { cluster } = await openCluster()
    const register = (id: string) => cluster.register(id, 'digest', '{}', 60_000, 1)
    await cluster.renew('n3', 30, [], [])
    for (const id of ['a', 'b']) {
      await register(id)
      await cluster.claim(id, 'n3', await cluster.nextEpoch(), true, 1, {})
    }
    await until(async () => {
      await cluster.survey(60_000, 60_000, 60_000)
      return (await cluster.instance('a'))['node'] === ''
    })
    expect(await register('c')).toBe(2)
  })
})
