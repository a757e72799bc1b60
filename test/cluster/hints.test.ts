/** What hosts and workers tell each other so that they need not look, and what they look for all the same. */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { jobKeys } from '../../src/bullmq/job-keys.js'
import { ANNOUNCE, LOOK } from '../../src/bullmq/job-scripts.js'
import { runScript } from '../../src/bullmq/script.js'
import { startFleet, type Fleet } from '../support/fleet.js'
import { watchCommands } from '../support/redis-monitor.js'
import { startRedis } from '../support/redis-server.js'

/** Nobody looks for what it was not told, as long as a test takes. */
const lockMs = 1_200_000

const launch = { subagentName: 'research', goalPrompt: 'find out' }

function connect(url: string): Redis {
  const redis = new Redis(url)
  onTestFinished(() => redis.disconnect())
  return redis
}

/** Counts how often hosts look at jobs. */
async function watchLooks({ redis: { url, port } }: Fleet): Promise<() => Promise<number>> {
  const redis = connect(url)
  let looks = 0
  let seen = (): void => undefined
  const stop = await watchCommands(port, (line) => {
    if (line.includes(LOOK.sha)) looks += 1
    if (line.includes('"so far"')) seen()
  })
  onTestFinished(stop)
  return async () => {
    // What was sent before this has been seen with it.
    const isSeen = new Promise<void>((resolve) => (seen = resolve))
    await redis.echo('so far')
    await isSeen
    return looks
  }
}

async function outputOf(manager: AsyncTaskManager, id: string): Promise<unknown> {
  const { settled } = await manager.waitFor([id], { timeoutMs: 60_000 })
  return settled[0]?.output
}

describe('the end of a run', () => {
  it('W2: is sent with its output when the run has said nothing, and is read with what the run said otherwise', async () => {
    const fleet = await startFleet()
    await fleet.worker(
      ({ goal }, context) => {
        if (goal === 'speak') context.append('said')
        return { text: goal === 'large' ? 'x'.repeat(20_000) : 'two\nlines' }
      },
      { lockMs },
    )
    const manager = fleet.manager()
    const run = fleet.runnerOf({ lockMs })
    // A host that has just connected looks once.
    await outputOf(manager, manager.launch(launch, run).id)
    const redis = connect(fleet.redis.url)
    while ((await redis.pubsub('CHANNELS', '*agent-host*')).length === 0) await pause(5)
    const looks = await watchLooks(fleet)
    const { id } = manager.launch(launch, run)
    expect(await outputOf(manager, id)).toEqual({ text: 'two\nlines' })
    expect(await looks()).toBe(0)
    const speaks = manager.launch({ ...launch, goalPrompt: 'speak' }, run)
    expect(await outputOf(manager, speaks.id)).toEqual({ text: 'two\nlines' })
    expect(manager.readOutput(speaks.id)?.text).toBe('said')
    const large = manager.launch({ ...launch, goalPrompt: 'large' }, run)
    expect(await outputOf(manager, large.id)).toEqual({ text: 'x'.repeat(20_000) })
    expect(await looks()).toBeGreaterThanOrEqual(2)
  })

  it.each([
    ['completed, and has said nothing', { finishedOn: 1, returnvalue: '{"a":1}' }, {}, 'id\n{"a":1}'],
    ['completed, and has said something', { finishedOn: 1, returnvalue: '{"a":1}' }, { bytes: 0 }, 'id'],
    ['completed with more than is told', { finishedOn: 1, returnvalue: '{"a":"12"}' }, {}, 'id'],
    ['failed', { finishedOn: 1, failedReason: 'no' }, {}, 'id'],
    ['not ended for Redis', { returnvalue: '{"a":1}' }, {}, 'id'],
  ])('W2: of one that has %s is told as Redis has it', async (_what, job, agent, told) => {
    const server = await startRedis({ appendfsync: 'no file' })
    onTestFinished(() => server.close())
    const [redis, subscriber] = [connect(server.url), connect(server.url)]
    const keys = jobKeys({ prefix: 'bull', queue: 'research' }, 'id')
    await redis.hset(`${keys.queue}:id`, { name: 'run', ...job })
    await redis.hset(keys.agent, { wrapUp: 'soon', ...agent })
    await subscriber.subscribe('host')
    const heard = new Promise((resolve) => subscriber.once('message', (_channel, message) => resolve(message)))
    await runScript(redis, ANNOUNCE, { agent: keys.agent }, { queue: keys.queue, id: 'id', host: 'host', mostBytes: 7 })
    expect(await heard).toBe(told)
  })
})

describe('a run', () => {
  it('W2: finds what was sent to it before a worker had it', async () => {
    const fleet = await startFleet()
    const manager = fleet.manager()
    const { id } = manager.launch(launch, fleet.runnerOf({ takesMessages: true, lockMs }))
    manager.sendToTask(id, 'early')
    const redis = connect(fleet.redis.url)
    while ((await redis.keys('*:down')).length === 0) await pause(5)
    await fleet.worker(
      {
        run: async (_input: unknown, { messages }: { messages: AsyncIterable<string> }) => {
          for await (const message of messages) return { message }
          return {}
        },
        takesMessages: true,
      },
      { lockMs },
    )
    expect(await outputOf(manager, id)).toEqual({ message: 'early' })
  })
})
