/** Workers that are killed, stopped and drained, as processes of their own. */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { SettledTaskInfo } from '../../machines/records.js'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { RunFunction } from '../../src/engine/runner.js'
import { until } from '../support/cluster-client.js'
import { LOCK_MS, startFleet, type Fleet } from '../support/fleet.js'
import { startSpoken, type SpokenProcess } from '../support/spoken-process.js'

async function workerOf({ redis }: Fleet, { lockMs = LOCK_MS, concurrency = 4 } = {}): Promise<SpokenProcess> {
  const worker = startSpoken('fleet-worker', [redis.url, lockMs, concurrency])
  await worker.says('ready')
  return worker
}

async function settled(manager: AsyncTaskManager, id: string): Promise<SettledTaskInfo> {
  const { settled: ended } = await manager.waitFor([id], { timeoutMs: 60_000 })
  const [task] = ended
  if (task === undefined) throw new Error(`task ${id} has not ended`)
  return task
}

const goal = (goalPrompt: string) => ({ subagentName: 'research', goalPrompt })

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Longer than a test: it does not end by itself. */
const FOREVER = 'hold 100000'

describe('a worker that dies', () => {
  it('W4: fails its task with INTERRUPTED, also where no other worker lives, at most lockMs later', async () => {
    const fleet = await startFleet()
    const worker = await workerOf(fleet)
    const manager = fleet.manager()
    const { id } = manager.launch(goal(FOREVER), fleet.runnerOf())
    await worker.says('started')
    worker.signal('SIGKILL')
    await worker.ended
    const killedAt = performance.now()
    expect(await settled(manager, id)).toMatchObject({ status: 'failed', errorCode: 'INTERRUPTED' })
    // The machine may be slow; a lock that is kept for long would be five times as late.
    expect(performance.now() - killedAt).toBeLessThan(LOCK_MS * 5)
  })

  it('W4: has its task run again by another one, if the policy says so, and never twice as one attempt', async () => {
    const fleet = await startFleet()
    const first = await workerOf(fleet)
    const manager = fleet.manager()
    const run = fleet.runnerOf()
    const retry = { attempts: 2, on: ['interrupted'], backoff: { initialMs: 0 } } as const
    const { id } = manager.launch(goal('again'), { run, retry })
    await first.says('started')
    const second = await workerOf(fleet)
    first.signal('SIGKILL')
    expect(await settled(manager, id)).toMatchObject({
      status: 'completed',
      output: { final_message: 'attempt 2' },
      attempt: 2,
    })
    expect(manager.readOutput(id)?.text).toContain('attempt 2 on a worker')
    const started = [...first.said, ...second.said].filter((line) => 'started' in line)
    expect(started).toEqual([
      { started: id, attempt: 1 },
      { started: id, attempt: 2 },
    ])
  })

  it('W4: ends the programs of its runs, also when it is killed', async () => {
    const fleet = await startFleet()
    const worker = startSpoken('fleet-program-worker', [fleet.redis.url, LOCK_MS])
    await worker.says('ready')
    const manager = fleet.manager()
    const { id } = manager.launch(goal('run'), fleet.runnerOf())
    const pidOf = (): number => Number(manager.readOutput(id)?.text)
    while (!(pidOf() > 0)) await pause(10)
    const program = pidOf()
    worker.signal('SIGKILL')
    while (isAlive(program)) await pause(10)
    expect(await settled(manager, id)).toMatchObject({ status: 'failed', errorCode: 'INTERRUPTED' })
  })

  it('W1: when it was only stopped for longer than its lock, says nothing more: its end and its output change nothing', async () => {
    const fleet = await startFleet()
    const worker = await workerOf(fleet)
    const manager = fleet.manager()
    const { id } = manager.launch(goal('hold 2000'), fleet.runnerOf())
    await worker.says('started')
    worker.signal('SIGSTOP')
    const task = await settled(manager, id)
    expect(task).toMatchObject({ status: 'failed', errorCode: 'INTERRUPTED' })
    worker.signal('SIGCONT')
    // It goes on, and ends: the next task shows that it works again.
    await Promise.race([worker.says('ended'), worker.says('aborted')])
    const next = manager.launch(goal('hold 0'), fleet.runnerOf())
    expect(await settled(manager, next.id)).toMatchObject({ status: 'completed' })
    expect(manager.getTask(id)).toEqual(task)
    const redis = new Redis(fleet.redis.url)
    // The run has written nothing since.
    const keys = await redis.keys('*:up')
    const texts = await Promise.all(keys.map(async (key) => JSON.stringify(await redis.xrange(key, '-', '+'))))
    expect(texts.filter((text) => text.includes('the end'))).toHaveLength(1)
    expect(await redis.zcard('bull:research:failed')).toBe(1)
    redis.disconnect()
  })

  it('W4: drains when it gets SIGTERM: finishes what it has, takes nothing new, and ends', async () => {
    const fleet = await startFleet()
    const worker = await workerOf(fleet)
    const manager = fleet.manager()
    const run = fleet.runnerOf()
    const { id } = manager.launch(goal('hold 2000'), run)
    await worker.says('started')
    worker.signal('SIGTERM')
    await worker.says('draining')
    const redis = new Redis(fleet.redis.url)
    onTestFinished(() => redis.disconnect())
    // It does not wait for another job any more.
    await until(async () => !String(await redis.client('LIST')).includes('cmd=bzpopmin'))
    const later = manager.launch(goal('hold 0'), run)
    expect(await settled(manager, id)).toMatchObject({ status: 'completed', output: { final_message: 'attempt 1' } })
    expect(await worker.ended).toBe(0)
    expect(manager.getTask(later.id)?.status).toBe('running')
    expect(worker.said.filter((line) => 'started' in line)).toHaveLength(1)
    await workerOf(fleet)
    expect(await settled(manager, later.id)).toMatchObject({ status: 'completed' })
  })
})

describe('a worker that is stopped', () => {
  const retry = { attempts: 2, on: ['interrupted'], backoff: { initialMs: 60_000 } } as const

  it('K13, W4: leaves its run to another one, without using up an attempt', async () => {
    const fleet = await startFleet()
    const manager = fleet.manager()
    const started: unknown[] = []
    const hold: RunFunction = (_input, { signal, attempt }) =>
      new Promise((_, reject) => {
        started.push(attempt)
        signal.addEventListener('abort', () => reject(new Error('It has stopped.')))
      })
    const { id } = manager.launch(goal('again'), { run: fleet.runnerOf(), retry })
    for (let stop = 1; stop <= 2; stop += 1) {
      const worker = await fleet.worker(hold, { drainMs: 0 })
      await until(() => Promise.resolve(started.length === stop))
      await worker.drain()
    }
    await fleet.worker((_input, { attempt }) => ({ attempt }))
    const task = await settled(manager, id)
    expect(task).toMatchObject({ status: 'completed', output: { attempt: 1 } })
    expect(task).not.toHaveProperty('attempts')
    expect(started).toEqual([1, 1])
  })

  it('K13, W4: completes a run that returns a result then, and interrupts the others', async () => {
    const fleet = await startFleet()
    const manager = fleet.manager()
    const aborted: unknown[] = []
    const worker = await fleet.worker(
      ({ goal }, { signal }) =>
        new Promise((resolve) =>
          signal.addEventListener('abort', () => {
            aborted.push(signal.reason)
            resolve(goal === 'nothing' ? {} : { final_message: goal })
          }),
        ),
      { concurrency: 2 },
    )
    const ids = ['all but one', 'nothing'].map((text) => manager.launch(goal(text), fleet.runnerOf()).id)
    await until(() => Promise.resolve(worker.running === 2))
    await pause(50)
    await worker.close()
    const [completed, interrupted] = [await settled(manager, ids[0] ?? ''), await settled(manager, ids[1] ?? '')]
    expect(completed).toMatchObject({ status: 'completed', output: { final_message: 'all but one' } })
    expect(interrupted).toMatchObject({ status: 'failed', errorCode: 'INTERRUPTED' })
    expect(aborted).toMatchObject([{ code: 'SUSPENDED' }, { code: 'SUSPENDED' }])
  })

  it('K13, W4: uses up no attempt of a run that does not stop, also when it is killed then', async () => {
    const fleet = await startFleet()
    const worker = startSpoken('fleet-worker', [fleet.redis.url, LOCK_MS, 1, 0])
    await worker.says('ready')
    const manager = fleet.manager()
    const { id } = manager.launch(goal('deaf 100000'), { run: fleet.runnerOf(), retry })
    await worker.says('started')
    worker.signal('SIGTERM')
    await worker.says('draining')
    const redis = new Redis(fleet.redis.url)
    onTestFinished(() => redis.disconnect())
    await until(async () => {
      const [key = ''] = await redis.keys('*:agent')
      return (await redis.hexists(key, 'failure')) === 1
    })
    worker.signal('SIGKILL')
    await fleet.worker((_input, { attempt }) => ({ attempt }))
    expect(await settled(manager, id)).toMatchObject({ status: 'completed', output: { attempt: 1 } })
  })
})

describe('a cancelled task', () => {
  it('W3: is stopped on its worker', async () => {
    const fleet = await startFleet()
    const worker = await workerOf(fleet)
    const manager = fleet.manager()
    const { id } = manager.launch(goal(FOREVER), fleet.runnerOf())
    await worker.says('started')
    manager.cancelTask(id, { reason: 'not needed' })
    expect(await worker.says('aborted')).toEqual({ aborted: id, attempt: 1 })
  })

  it('W3: never starts when no worker has it yet', async () => {
    const fleet = await startFleet()
    const worker = await workerOf(fleet, { concurrency: 1 })
    const manager = fleet.manager()
    const run = fleet.runnerOf()
    const first = manager.launch(goal('hold 3000'), run)
    await worker.says('started')
    const waiting = manager.launch(goal(FOREVER), run)
    const redis = new Redis(fleet.redis.url)
    const count = async (key: string): Promise<number> => redis.llen(`bull:research:${key}`)
    while ((await count('wait')) === 0) await pause(5)
    manager.cancelTask(waiting.id)
    while ((await count('wait')) > 0) await pause(5)
    redis.disconnect()
    const last = manager.launch(goal('hold 0'), run)
    await settled(manager, first.id)
    await settled(manager, last.id)
    expect(worker.said.flatMap((line) => ('started' in line ? [line['started']] : []))).toEqual([first.id, last.id])
  })

  it('W3: is found by a worker that missed the message, at half the time of its lock', async () => {
    const fleet = await startFleet()
    const worker = await workerOf(fleet)
    const manager = fleet.manager()
    const { id } = manager.launch(goal(FOREVER), fleet.runnerOf())
    await worker.says('started')
    // What is published while the worker is stopped reaches it late; what is lost with its connections never does.
    await fleet.dropSubscribers()
    manager.cancelTask(id)
    await worker.says('aborted')
  })
})
