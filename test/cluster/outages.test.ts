/** Redis goes away and comes back. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { toRedisAddress } from '../../src/bullmq/connection.js'
import { HostLink } from '../../src/bullmq/host-link.js'
import { startFleet } from '../support/fleet.js'

const goal = { subagentName: 'research', goalPrompt: 'find out' }

describe('when Redis goes away', () => {
  it('W6: nothing that was accepted is lost, and host and worker come back and say so', async () => {
    const fleet = await startFleet()
    // What runs when Redis dies ends while it is away; its lock outlives that.
    let started = 0
    await fleet.worker(
      async ({ goal }, context) => {
        started += 1
        context.append(`${goal} begins\n`)
        await pause(Number(goal))
        context.append(`${goal} ends\n`)
        return { final_message: goal }
      },
      { concurrency: 3, lockMs: 30_000 },
    )
    const manager = fleet.manager({ maxAsyncTasks: -1 })
    const run = fleet.runnerOf({ lockMs: 30_000 })
    const tasks = ['300', '400', '3000', '100', '200', '0'].map((goalPrompt) =>
      manager.launch({ ...goal, goalPrompt }, run),
    )
    while (started < 3) await pause(5)
    await fleet.redis.kill()
    await pause(1500)
    await fleet.redis.start()
    const ids = tasks.map(({ id }) => id)
    const { settled, pending } = await manager.waitFor(ids, { timeoutMs: 60_000 })
    expect(pending).toEqual([])
    expect(settled.map(({ status, output, error }) => [status, output?.final_message ?? error])).toEqual(
      tasks.map(({ goalPrompt }) => ['completed', goalPrompt]),
    )
    for (const { id, goalPrompt } of tasks) {
      expect(manager.readOutput(id)?.text).toBe(`${goalPrompt} begins\n${goalPrompt} ends\n`)
    }
    expect(fleet.lines.filter((line) => /Reconnecting until Redis is back/.test(line)).length).toBeGreaterThan(1)
    expect(fleet.lines.filter((line) => /is back\.$/.test(line)).length).toBeGreaterThan(1)
  })

  it('W6: what cannot be sent in time fails its launch', async () => {
    const fleet = await startFleet()
    await fleet.redis.kill()
    const manager = fleet.manager()
    const { id } = manager.launch(goal, fleet.runnerOf({ sendTimeoutMs: 300 }))
    const { settled } = await manager.waitFor([id])
    expect(settled).toMatchObject([
      {
        status: 'failed',
        errorCode: 'START_FAILED',
        error: expect.stringMatching(
          /^The task was not sent to the workers of queue research: Redis at .* within 300 ms\.$/,
        ) as string,
      },
    ])
  })

  it('W6: what a full Redis refuses fails its launch, with what Redis has answered', async () => {
    const fleet = await startFleet()
    const manager = fleet.manager()
    const redis = new Redis(fleet.redis.url)
    onTestFinished(() => redis.disconnect())
    await redis.config('SET', 'maxmemory', '1')
    const { id } = manager.launch(goal, fleet.runnerOf({ sendTimeoutMs: 1000 }))
    const { settled } = await manager.waitFor([id])
    expect(settled).toMatchObject([
      {
        status: 'failed',
        errorCode: 'START_FAILED',
        error: expect.stringMatching(/ within 1000 ms\. It answered: OOM /) as string,
      },
    ])
    await redis.config('SET', 'maxmemory', '0')
  })

  it('W6: what was on its way when its launch failed never runs, however late it arrives', async () => {
    const fleet = await startFleet()
    const started: string[] = []
    const run = fleet.runnerOf({ sendTimeoutMs: 2000 })
    const manager = fleet.manager()
    const first = manager.launch(goal, run)
    const redis = new Redis(fleet.redis.url)
    while ((await redis.llen('bull:research:wait')) === 0) await pause(10)
    // The add is in the socket of a Redis that reads it much later.
    fleet.redis.pause()
    const { id } = manager.launch(goal, run)
    const { settled } = await manager.waitFor([id])
    expect(settled).toMatchObject([{ status: 'failed', errorCode: 'START_FAILED' }])
    fleet.redis.resume()
    // Whichever of the two came first: the id is given up.
    const isGivenUp = async (): Promise<boolean> => {
      const agents = await redis.keys('*:agent')
      return (await Promise.all(agents.map((key) => redis.hexists(key, 'cancel')))).includes(1)
    }
    while (!(await isGivenUp())) await pause(10)
    redis.disconnect()
    await fleet.worker(({ id: taskId }) => {
      started.push(taskId)
      return {}
    })
    await manager.waitFor([first.id])
    expect(started).toEqual([first.id])
  })

  it('W6: an id that was given up stays given up: an add that comes later does nothing', async () => {
    const fleet = await startFleet()
    const started: string[] = []
    const options = { name: { prefix: 'bull', queue: 'research' }, sendTimeoutMs: 10_000, lookMs: 500 }
    const link = new HostLink({
      ...options,
      address: toRedisAddress({ connection: fleet.redis.url }),
      log: () => undefined,
      logFailure: () => undefined,
    })
    link.join('given-up-1', () => undefined)
    while (!link.isReady) await pause(5)
    expect(await link.cancel('given-up-1', 'It was not sent in time.')).toBe('missing')
    const data = { input: { ...goal, id: 'late' }, owner: 'main', attempt: 1, host: link.channel }
    await link.send('given-up-1', data, new AbortController().signal)
    link.leave('given-up-1')
    await fleet.worker(({ id }) => {
      started.push(id)
      return {}
    })
    const manager = fleet.manager()
    const { id } = manager.launch(goal, fleet.runnerOf())
    await manager.waitFor([id])
    expect(started).toEqual([id])
  })
})
