/**
 * What `src/bullmq/bullmq-layout.ts` knows of BullMQ's keys, compared with what BullMQ does. When a test of this file fails with a new version of BullMQ,
 * change that file.
 */
import { Queue, Worker, type Job } from 'bullmq'
import { describe, expect, it, onTestFinished } from 'vitest'
import { clusterKeys } from '../../src/bullmq/cluster/cluster-keys.js'
import { createClusterRedis } from '../../src/bullmq/cluster/cluster-redis.js'
import { createInstanceQueue } from '../../src/bullmq/cluster/instance-queue.js'
import { openConnection, toRedisAddress } from '../../src/bullmq/connection.js'
import { jobKeys, queueKey } from '../../src/bullmq/job-keys.js'
import { BEGIN_RUN, FIND_SILENT, GIVE_UP, KEEP_LOCK, LOOK } from '../../src/bullmq/job-scripts.js'
import { runScript } from '../../src/bullmq/script.js'
import { startRedis } from '../support/redis-server.js'

const LOCK_MS = 60_000
const name = { prefix: 'bull', queue: 'q' }
const layout = 'src/bullmq/bullmq-layout.ts'

async function connect() {
  const server = await startRedis({ appendfsync: 'no file' })
  const redis = openConnection(toRedisAddress({ connection: server.url }), { use: 'test', log: () => undefined })
  onTestFinished(async () => {
    redis.disconnect()
    await server.close()
  })
  return redis
}

/** A queue with one job, as BullMQ has it. */
async function openJob() {
  const redis = await connect()
  const options = { connection: redis, prefix: name.prefix }
  const queue = new Queue(name.queue, options)
  const worker = new Worker(name.queue, null, { ...options, autorun: false, lockDuration: LOCK_MS })
  onTestFinished(async () => {
    await Promise.all([queue.close(), worker.close()])
  })
  const { agent, up, down } = jobKeys(name, 'job')
  const at = { queue: queueKey(name), id: 'job' }
  const kept = { keptSeconds: 60 }
  /** The lock of the job expires: BullMQ gives it a millisecond more. */
  const expire = async (job: Job, token: string) => {
    await job.extendLock(token, 1)
    while ((await look())[0] === 'active') await Promise.resolve()
  }
  const look = async () => {
    const args = { ...at, after: '0-0', host: '', seen: '', ...kept, mostEntries: 9 }
    return (await runScript(redis, LOOK, { agent, up }, args)) as string[]
  }
  return {
    queue,
    look,
    expire,
    fetch: (token: string) => worker.getNextJob(token, { block: false }),
    begin: (token: string) => runScript(redis, BEGIN_RUN, { agent, down }, { ...at, token, lockMs: LOCK_MS }),
    keep: (token: string) => runScript(redis, KEEP_LOCK, {}, { ...at, token, lockMs: LOCK_MS }),
    seize: (token: string) =>
      runScript(redis, GIVE_UP, { agent }, { ...at, token, lockMs: LOCK_MS, failure: '{}', ...kept }),
    silent: () => runScript(redis, FIND_SILENT, {}, { queue: at.queue }),
  }
}

describe(`${layout} knows of a job`, () => {
  it('that it is missing, waits, is active, and what it has returned', async () => {
    const { queue, look, fetch, silent } = await openJob()
    expect(await look()).toEqual(['missing'])
    await queue.add('run', {}, { jobId: 'job' })
    expect((await look())[0]).toBe('waiting')
    const job = await fetch('mine')
    expect((await look())[0]).toBe('active')
    expect(await silent()).toEqual([])
    await job.moveToCompleted({ text: 'done' }, 'mine', false)
    expect((await look()).slice(0, 2)).toEqual(['completed', '{"text":"done"}'])
  })

  it('why it has failed', async () => {
    const { queue, look, fetch } = await openJob()
    await queue.add('run', {}, { jobId: 'job' })
    const job = await fetch('mine')
    await job.moveToFailed(new Error('no'), 'mine')
    expect((await look()).slice(0, 2)).toEqual(['failed', 'no'])
  })

  it('that its own check has found it without a lock', async () => {
    const { queue, look, fetch, expire } = await openJob()
    await queue.add('run', {}, { jobId: 'job' })
    await expire(await fetch('mine'), 'mine')
    const watcher = new Worker(name.queue, () => Promise.resolve(), {
      connection: queue.opts.connection,
      prefix: name.prefix,
      stalledInterval: 20,
      maxStalledCount: 0,
    })
    onTestFinished(() => watcher.close())
    await new Promise((resolve) => watcher.once('failed', resolve))
    expect((await look())[0]).toBe('interrupted')
  })

  it('its lock: who has it, that it has expired, and how it is taken so that BullMQ knows it', async () => {
    const { queue, look, fetch, expire, begin, keep, seize, silent } = await openJob()
    await queue.add('run', {}, { jobId: 'job' })
    const job = await fetch('mine')
    expect(await begin('another')).toBeNull()
    expect(await begin('mine')).not.toBeNull()
    expect([await keep('mine'), await keep('another'), await seize('another')]).toEqual([1, 0, 0])
    await expire(job, 'mine')
    expect([(await look())[0], await silent()]).toEqual(['silent', ['job']])
    expect(await keep('mine')).toBe(1)
    expect(await job.extendLock('mine', LOCK_MS)).toBe(1)
    await expire(job, 'mine')
    expect(await seize('taken')).toBe(1)
    expect(await silent()).toEqual([])
    await expect(job.moveToCompleted({}, 'mine', false)).rejects.toThrow()
    expect((await look())[0]).toBe('active')
    await job.moveToFailed(new Error('given up'), 'taken')
    expect([await keep('mine'), await seize('late'), await begin('mine')]).toEqual([0, 0, null])
    expect((await look()).slice(0, 2)).toEqual(['failed', 'given up'])
    expect(await queue.getJobState('job')).toBe('failed')
  })
})

describe(`${layout} knows of a queue`, () => {
  it('whether jobs wait, which are active, and all keys that are left of it', async () => {
    const redis = await connect()
    const keys = clusterKeys('test')
    const cluster = createClusterRedis(redis, keys, { maxRetained: 10 })
    const jobs = createInstanceQueue(keys.queue('w'), {
      redis,
      prefix: keys.prefix,
      lockMs: LOCK_MS,
      onError: () => undefined,
    })
    onTestFinished(() => jobs.close())
    await cluster.renew('n', LOCK_MS, [], [])
    const claimed = await cluster.claim('w', 'n', await cluster.nextEpoch(), true, 1, {})
    const epoch = 'epoch' in claimed ? claimed.epoch : -1
    const hasWork = () => cluster.renew('n', LOCK_MS, [{ id: 'w', epoch }], [])
    await jobs.prepare()
    expect(await hasWork()).toEqual(['ok'])
    for (const id of ['a', 'b', 'c', 'd']) await jobs.add(id, 't')
    expect(await hasWork()).toEqual(['work'])
    const first = await jobs.next('t')
    await first?.log('a line')
    await first?.moveToCompleted(null, 't', false)
    await (await jobs.next('t'))?.moveToFailed(new Error('no'), 't')
    const third = await jobs.next('t')
    await third?.moveToWait('t')
    await cluster.lose('w', 'n', epoch)
    const forget = () => cluster.survey(0, LOCK_MS, LOCK_MS)
    const active = await jobs.next('t')
    await forget()
    // A queue with an active job is kept.
    expect((await redis.keys(`${keys.queueKey('w')}:*`)).length).toBeGreaterThan(4)
    await active?.extendLock('t', 1)
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect(await forget()).toEqual([{ kind: 'stalled', instanceId: 'w', ids: [active?.id] }])
    expect(await cluster.seize('w', active?.id ?? '', 'sweep', LOCK_MS)).toBe(true)
    await active?.moveToCompleted(null, 'sweep', false)
    await forget()
    expect(await redis.keys(`${keys.queueKey('w')}:*`)).toEqual([])
  })
})
