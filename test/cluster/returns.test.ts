/** Redis was away for longer than a lock, or an answer of it was lost: what runs goes on, and nothing is there twice. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { jobKeys } from '../../src/bullmq/job-keys.js'
import { CANCEL, GIVE_UP, KEEP_LOCK, TELL, WRITE } from '../../src/bullmq/job-scripts.js'
import { runScript, type Script } from '../../src/bullmq/script.js'
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
  /** A job that runs, whose lock has ended. */
  async function openJob() {
    const server = await startRedis()
    const redis = new Redis(server.url)
    onTestFinished(async () => {
      redis.disconnect()
      await server.close()
    })
    const keys = jobKeys({ prefix: 'bull', queue: 'q' }, 'job')
    const { job, lock, agent, up, down, queueKeys } = keys
    await redis.hset(job, { data: '{}', processedOn: 1 })
    const run = (script: Script, of: readonly string[], ...args: readonly (string | number)[]) =>
      runScript(redis, script, of, args)
    return {
      ...{ redis, keys },
      keep: (token: string) => run(KEEP_LOCK, [job, lock], token, 60_000),
      write: (token: string, number: number, text: string) =>
        run(WRITE, [lock, agent, up, job], 'job', token, 'host', 60, 9999, 60_000, number, 'output', '', text),
      tell: (number: string, text: string) =>
        run(TELL, [job, agent, down], 'job', 60, 'workers', 'message', number, text, 9, 999),
      cancel: () => run(CANCEL, [job, lock, agent, up, down, ...queueKeys], 'job', 'not needed', 60, 'c', 'run', '{}'),
      giveUp: () => run(GIVE_UP, [job, lock, agent, up, down, ...queueKeys], 'job', 'it has died'),
    }
  }

  it('W1: is taken back by its worker when its lock has ended, and by nobody when it was given up', async () => {
    const { redis, keys, keep, write, giveUp } = await openJob()
    expect(await keep('mine')).toBe(1)
    expect(await keep('another')).toBe(0)
    expect(await giveUp()).toBe(0)
    await redis.del(keys.lock)
    expect(await write('mine', 1, 'text')).toBe(1)
    expect(await redis.get(keys.lock)).toBe('mine')
    await redis.del(keys.lock)
    expect(await giveUp()).toBe(1)
    expect(await keep('mine')).toBe(0)
    expect(await write('mine', 2, 'late')).toBe(0)
    expect(await redis.xlen(keys.up)).toBe(1)
    expect(await redis.exists(keys.lock)).toBe(0)
  })

  it('W2: has what is sent again, since its answer was lost, once', async () => {
    const { redis, keys, write, tell } = await openJob()
    for (const number of [1, 1, 2, 2]) expect(await write('mine', number, 'the same')).toBe(1)
    expect(await redis.xlen(keys.up)).toBe(2)
    for (const number of ['host:1', 'host:1', 'host:2', 'next:1']) expect(await tell(number, 'the same')).toBe(1)
    expect(await redis.xlen(keys.down)).toBe(3)
  })

  it('W3: that is cancelled while its lock has ended has its cancellation stored', async () => {
    const { redis, keys, cancel } = await openJob()
    expect(await cancel()).toBe('active')
    expect(await redis.hget(keys.agent, 'cancel')).toBe('not needed')
  })
})
