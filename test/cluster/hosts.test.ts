/** Hosts that are killed, and the next ones on their stores. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Queue } from 'bullmq'
import { Redis } from 'ioredis'
import { filter, firstValueFrom } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { sqliteStore } from '../../src/store/index.js'
import { LOCK_MS, startFleet, type Fleet } from '../support/fleet.js'
import { createRunContext, runInput } from '../support/run-context.js'
import { startSpoken, type SpokenProcess } from '../support/spoken-process.js'

/** A host that is killed when it has launched these goals. */
async function deadHost({ redis }: Fleet, file: string, ...goals: string[]): Promise<void> {
  const host = startSpoken('fleet-host', [redis.url, file, LOCK_MS, ...goals])
  await host.says('launched')
  await sent(redis.url, goals.length)
  host.signal('SIGKILL')
  await host.ended
}

/** Resolves when so many jobs have been sent. */
async function sent(url: string, count: number): Promise<void> {
  const { port, hostname } = new URL(url)
  const queue = new Queue('research', { connection: { host: hostname, port: Number(port) } })
  for (let found = 0; found < count;) {
    const counts = await queue.getJobCounts('wait', 'active', 'completed', 'failed')
    found = Object.values(counts).reduce((sum, each) => sum + each, 0)
  }
  await queue.close()
}

function storeFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-fleet-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'tasks.db')
}

/** The next host on a store. */
function nextHost(fleet: Fleet, file: string): AsyncTaskManager {
  const run = fleet.runnerOf()
  return fleet.manager({ store: sqliteStore(file), maxAsyncTasks: -1, findRunner: () => run })
}

async function workerOf({ redis }: Fleet): Promise<SpokenProcess> {
  const worker = startSpoken('fleet-worker', [redis.url, LOCK_MS, 4])
  await worker.says('ready')
  return worker
}

describe('a host that dies', () => {
  it('W5: leaves its jobs to the next one on its store, which owes each result once', async () => {
    const fleet = await startFleet()
    const file = storeFile()
    const worker = await workerOf(fleet)
    await deadHost(fleet, file, 'hold 0', 'hold 100', 'hold 3000')
    // It ended while nobody was there to hear of it.
    await worker.says('ended', ({ ended }) => ended === 'task-1')
    const manager = nextHost(fleet, file)
    const owed: string[] = []
    manager.onTaskCompleted(({ id }) => owed.push(id))
    const { adopted } = await manager.recovered
    expect(adopted).toContain('task-2')
    const { settled, deliveryId } = await manager.waitFor(['task-0', 'task-1', 'task-2'], { timeoutMs: 60_000 })
    expect(settled.map(({ status, output }) => [status, output])).toEqual(
      Array(3).fill(['completed', { final_message: 'attempt 1' }]),
    )
    expect(new Set(owed).size).toBe(owed.length)
    const started = worker.said.flatMap((line) => ('started' in line ? [line['started']] : []))
    expect(started.sort()).toEqual(['task-0', 'task-1', 'task-2'])
    manager.confirm(deliveryId ?? '')
    await manager.dispose()
    const last = nextHost(fleet, file)
    await last.recovered
    expect(['task-0', 'task-1', 'task-2'].map((id) => last.getTask(id)?.delivery)).toEqual(Array(3).fill('delivered'))
  })

  it('K13, W5: leaves its jobs to the next one when it is only closed, without stopping them', async () => {
    const fleet = await startFleet()
    const file = storeFile()
    const started: string[] = []
    let end: () => void = () => undefined
    const worker = await fleet.worker(async ({ id }, { signal }) => {
      started.push(id)
      await new Promise<void>((resolve) => (end = resolve))
      return { wasStopped: signal.aborted }
    })
    const first = nextHost(fleet, file)
    const { id } = first.launch({ subagentName: 'research', goalPrompt: 'look' }, fleet.runnerOf())
    while (started.length === 0) await pause(5)
    await first.dispose()
    expect(worker.running).toBe(1)
    const next = nextHost(fleet, file)
    expect(await next.recovered).toMatchObject({ adopted: [id], retried: [], interrupted: [] })
    end()
    const { settled } = await next.waitFor([id], { timeoutMs: 60_000 })
    expect(settled).toMatchObject([{ status: 'completed', output: { wasStopped: false } }])
    expect(started).toEqual([id])
  })

  it('W5: leaves jobs that the next one finds interrupted when their worker died with it', async () => {
    const fleet = await startFleet()
    const file = storeFile()
    const worker = await workerOf(fleet)
    const dies = deadHost(fleet, file, 'hold 100000')
    await worker.says('started')
    worker.signal('SIGKILL')
    await dies
    const manager = nextHost(fleet, file)
    const { settled } = await manager.waitFor(['task-0'], { timeoutMs: 60_000 })
    expect(settled).toMatchObject([{ status: 'failed', errorCode: 'INTERRUPTED' }])
  })

  it('W3: leaves jobs that the next one can cancel', async () => {
    const fleet = await startFleet()
    const file = storeFile()
    const worker = await workerOf(fleet)
    await deadHost(fleet, file, 'hold 100000')
    await worker.says('started')
    const manager = nextHost(fleet, file)
    await manager.recovered
    manager.cancelTask('task-0')
    await worker.says('aborted')
  })

  it('W2: leaves a question that the next one asks again, and the output from its beginning', async () => {
    const fleet = await startFleet()
    const file = storeFile()
    const worker = await workerOf(fleet)
    await deadHost(fleet, file, 'ask')
    await worker.says('started')
    const manager = nextHost(fleet, file)
    const { questions } = await firstValueFrom(manager.questions$.pipe(filter((event) => event.questions.length > 0)))
    expect(manager.readOutput('task-0')?.text).toBe('attempt 1 on a worker\n')
    manager.answerTask('task-0', questions[0]?.id ?? '', { action: 'accept', content: { answer: 'this' } })
    const { settled } = await manager.waitFor(['task-0'], { timeoutMs: 60_000 })
    expect(settled).toMatchObject([
      { status: 'completed', output: { answer: { action: 'accept', content: { answer: 'this' } } } },
    ])
  })

  it('W5: leaves the end and the output of a run whose end it had read, and not stored', async () => {
    const fleet = await startFleet()
    await fleet.worker((_, context) => {
      context.append('what it found\n')
      return { final_message: 'done' }
    })
    const follow = async (isResumed: boolean) => {
      const context = createRunContext()
      const durability = {
        folder: undefined,
        key: 'key',
        isResumed,
        startedAt: Date.now(),
        saveProgram: () => Promise.resolve(),
      }
      const output = await fleet.runnerOf().run(runInput(), { ...context, durability })
      return { output, text: context.output() }
    }
    const end = { output: { final_message: 'done' }, text: 'what it found\n' }
    expect(await follow(false)).toEqual(end)
    expect(await follow(true)).toEqual(end)
  })

  it.each([1, 2])(
    'W1: leaves a run that its worker does not start again when Redis has lost it and the next host sends it (%d at once)',
    async (concurrency) => {
      const fleet = await startFleet()
      const file = storeFile()
      const started: string[] = []
      const aborted: unknown[] = []
      let finish = (): void => undefined
      const finished = new Promise<void>((resolve) => (finish = resolve))
      await fleet.worker(
        async ({ id, goal }, { signal }) => {
          started.push(id)
          if (goal === 'again') return { final_message: 'another run' }
          signal.addEventListener('abort', () => aborted.push(signal.reason))
          await finished
          return { final_message: 'too late' }
        },
        { concurrency, lockMs: 60_000 },
      )
      await deadHost(fleet, file, 'hold')
      while (started.length === 0) await pause(5)
      const redis = new Redis(fleet.redis.url)
      onTestFinished(() => redis.disconnect())
      await redis.flushall()
      const manager = nextHost(fleet, file)
      const ended = manager.waitFor(['task-0'], { timeoutMs: 60_000 })
      // With one at a time the worker takes the copy when it has ended what it runs.
      while (concurrency === 1 && (await redis.llen('bull:research:wait')) === 0) await pause(5)
      if (concurrency === 1) finish()
      const { settled } = await ended
      expect(settled).toMatchObject([{ status: 'failed', errorCode: 'INTERRUPTED' }])
      expect(settled[0]?.error).toMatch(/^The worker started this run before, and then Redis lost the job\./)
      expect(started).toEqual(['task-0'])
      finish()
      // The worker goes on, with other runs.
      const { id } = manager.launch({ subagentName: 'research', goalPrompt: 'again' }, fleet.runnerOf())
      const { settled: next } = await manager.waitFor([id], { timeoutMs: 60_000 })
      expect(next).toMatchObject([{ status: 'completed', output: { final_message: 'another run' } }])
      expect(started).toEqual(['task-0', id])
    },
  )

  it('W1: sends a task that it had stored but not sent, once', async () => {
    const fleet = await startFleet()
    const file = storeFile()
    await fleet.redis.kill()
    const host = startSpoken('fleet-host', [fleet.redis.url, file, LOCK_MS, 'hold 0'])
    await host.says('launched')
    host.signal('SIGKILL')
    await host.ended
    await fleet.redis.start()
    const worker = await workerOf(fleet)
    const manager = nextHost(fleet, file)
    const { settled } = await manager.waitFor(['task-0'], { timeoutMs: 60_000 })
    expect(settled).toMatchObject([{ status: 'completed' }])
    expect(worker.said.filter((line) => 'started' in line)).toHaveLength(1)
  })
})
