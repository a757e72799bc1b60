/** Redis was away for longer than a lock, or an answer of it was lost: what runs goes on, and nothing is there twice. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Queue, Worker, type Job } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openConnection, toRedisAddress } from '../../src/bullmq/connection.js'
import { giveUp } from '../../src/bullmq/give-up-dead.js'
import { jobKeys } from '../../src/bullmq/job-keys.js'
import { CANCEL, KEEP_LOCK, TELL, WRITE } from '../../src/bullmq/job-scripts.js'
import { runScript } from '../../src/bullmq/script.js'
import { LOCK_MS, startFleet } from '../support/fleet.js'
import { startRedis } from '../support/redis-server.js'
import { startSpoken } from '../support/spoken-process.js'

const goal = { subagentName: 'research', goalPrompt: 'find out' }

describe('when Redis was away for longer than a lock', () => {
  it('W6: what runs goes on as the same attempt, and its output is whole', async () => {
    const fleet = await startFleet()
    let finish = (): void => undefined
    const finished = new Promise<void>((resolve) => (finish = resolve))
    await fleet.worker(async (_, context) => {
      context.append('before\n')
      await finished
      context.append('after\n')
      return { attempt: context.attempt, wasAborted: context.signal.aborted }
    })
    const manager = fleet.manager()
    const retry = { attempts: 2, on: ['interrupted'], backoff: { initialMs: 0 } } as const
    const { id } = manager.launch(goal, { run: fleet.runnerOf(), retry })
    while (manager.readOutput(id)?.text !== 'before\n') await pause(10)
    await fleet.redis.kill()
    await pause(LOCK_MS)
    await fleet.redis.start()
    // Longer than it takes to give up a run whose worker has died.
    await pause(LOCK_MS)
    finish()
    const { settled } = await manager.waitFor([id], { timeoutMs: 60_000 })
    expect(settled).toMatchObject([{ status: 'completed', output: { attempt: 1, wasAborted: false } }])
    expect(manager.readOutput(id)?.text).toBe('before\nafter\n')
  })

  it('W4: a worker that has died meanwhile is given up all the same', async () => {
    const fleet = await startFleet()
    const worker = startSpoken('fleet-worker', [fleet.redis.url, LOCK_MS, 4])
    await worker.says('ready')
    const manager = fleet.manager()
    const { id } = manager.launch({ ...goal, goalPrompt: 'hold 100000' }, fleet.runnerOf())
    await worker.says('started')
    await fleet.redis.kill()
    worker.signal('SIGKILL')
    await pause(LOCK_MS)
    await fleet.redis.start()
    const { settled } = await manager.waitFor([id], { timeoutMs: 60_000 })
    expect(settled).toMatchObject([{ status: 'failed', errorCode: 'INTERRUPTED' }])
  })
})

it('W4: a worker that dies together with the host of its run is given up by the other workers', async () => {
  const fleet = await startFleet()
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-fleet-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const worker = startSpoken('fleet-worker', [fleet.redis.url, LOCK_MS, 4])
  const host = startSpoken('fleet-host', [fleet.redis.url, join(folder, 'tasks.db'), LOCK_MS, 'hold 100000'])
  await worker.says('started')
  worker.signal('SIGKILL')
  host.signal('SIGKILL')
  await fleet.worker(() => ({}))
  const redis = new Redis(fleet.redis.url)
  while ((await redis.zcard('bull:research:failed')) === 0) await pause(20)
  expect(await redis.llen('bull:research:active')).toBe(0)
  redis.disconnect()
})

describe('a job', () => {
  /** A job that a worker has fetched. */
  async function openJob() {
    const server = await startRedis()
    const redis = openConnection(toRedisAddress({ connection: server.url }), { use: 'test', log: () => undefined })
    const options = { connection: redis, prefix: 'bull' }
    const jobs = new Queue('q', options)
    const worker = new Worker('q', null, { ...options, autorun: false })
    onTestFinished(async () => {
      await Promise.all([jobs.close(), worker.close()])
      redis.disconnect()
      await server.close()
    })
    await jobs.add('run', {}, { jobId: 'job' })
    await worker.getNextJob('mine', { block: false })
    const name = { prefix: 'bull', queue: 'q' }
    const { queue, id, agent, up, down } = jobKeys(name, 'job')
    const job = { queue, id }
    const write = (token: string, number: number, text: string) =>
      runScript(
        redis,
        WRITE,
        { agent, up },
        {
          ...job,
          token,
          lockMs: 60_000,
          host: 'host',
          keptSeconds: 60,
          mostBytes: 9999,
          entryBytes: 64,
          write: number,
        },
        ['output', '', text],
      )
    return {
      redis,
      jobs,
      agent,
      up,
      down,
      write,
      lock: `${queue}:${id}:lock`,
      keep: (token: string) => runScript(redis, KEEP_LOCK, {}, { ...job, token, lockMs: 60_000 }),
      tell: (number: string, text: string) =>
        runScript(
          redis,
          TELL,
          { agent, down },
          {
            ...job,
            keptSeconds: 60,
            workers: 'workers',
            what: 'message',
            number,
            text,
            mostEntries: 9,
            mostBytes: 999,
          },
        ),
      cancel: () =>
        runScript(redis, CANCEL, { agent }, { ...job, reason: 'not needed', keptSeconds: 60, workers: 'c' }),
      giveUp: (findJob = (jobId: string): Promise<Job | undefined> => jobs.getJob(jobId)) =>
        giveUp({ redis, name, findJob }, id),
    }
  }

  it('W1: is taken back by its worker when its lock has ended, and by nobody when it was given up', async () => {
    const { redis, jobs, lock, up, keep, write, giveUp } = await openJob()
    expect(await keep('mine')).toBe(1)
    expect(await keep('another')).toBe(0)
    await giveUp()
    expect(await jobs.getJobState('job')).toBe('active')
    await redis.del(lock)
    expect(await write('mine', 1, 'text')).toBe(1)
    expect(await redis.get(lock)).toBe('mine')
    await redis.del(lock)
    await Promise.all([giveUp(), giveUp()])
    expect(await jobs.getJobState('job')).toBe('failed')
    expect((await jobs.getJob('job'))?.failedReason).toMatch(/^The worker that ran this task ended/)
    await giveUp()
    expect(await keep('mine')).toBe(0)
    expect(await write('mine', 2, 'late')).toBe(0)
    expect(await redis.xlen(up)).toBe(1)
    expect(await redis.exists(lock)).toBe(0)
  })

  it('W1: that was not given up, since who did it died, is taken back by its worker, or given up by the next', async () => {
    const { redis, jobs, lock, keep, giveUp } = await openJob()
    await redis.del(lock)
    const dies = () => Promise.reject(new Error('It has died.'))
    await expect(giveUp(dies)).rejects.toThrow('It has died.')
    expect(await redis.pttl(lock)).toBeGreaterThan(0)
    expect(await keep('mine')).toBe(0)
    await redis.del(lock)
    expect(await keep('mine')).toBe(1)
    await redis.del(lock)
    await giveUp()
    expect(await jobs.getJobState('job')).toBe('failed')
  })

  it('W2: has what is sent again, since its answer was lost, once', async () => {
    const { redis, up, down, write, tell } = await openJob()
    for (const number of [1, 1, 2, 2]) expect(await write('mine', number, 'the same')).toBe(1)
    expect(await redis.xlen(up)).toBe(2)
    for (const number of ['host:1', 'host:1', 'host:2', 'next:1']) expect(await tell(number, 'the same')).toBe(1)
    expect(await redis.xlen(down)).toBe(3)
  })

  it('W3: that is cancelled while its lock has ended has its cancellation stored', async () => {
    const { redis, agent, lock, cancel } = await openJob()
    await redis.del(lock)
    expect(await cancel()).toBe('silent')
    expect(await redis.hget(agent, 'cancel')).toBe('not needed')
  })
})
