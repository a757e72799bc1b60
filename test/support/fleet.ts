/** A Redis, a host and workers, all in this process, for tests of the messages between them. */
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import type { AsyncTaskManagerOptions } from '../../src/async-tasks/manager-options.js'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { bullmqRunner, type BullmqRunnerOptions } from '../../src/bullmq/bullmq-runner.js'
import { startWorker, type WorkerOptions, type AgentWorker } from '../../src/bullmq/start-worker.js'
import type { OutputRunner, Runner } from '../../src/engine/runner.js'
import { startRedis, type RedisServer, type RedisServerOptions } from './redis-server.js'

/** How long a lock lasts, in ms. A dead worker is noticed after this time. It is short, so that tests do not wait long. */
export const LOCK_MS = 3000

/** A host and workers that share one queue. */
export interface Fleet {
  readonly redis: RedisServer
  /** All lines that the hosts and workers have logged. */
  readonly lines: string[]
  readonly runnerOf: (options?: Partial<BullmqRunnerOptions>) => OutputRunner
  readonly manager: (options?: AsyncTaskManagerOptions) => AsyncTaskManager
  /** Cuts the connections on which workers and hosts receive published messages, until the test ends. Cuts them again whenever they connect again. */
  readonly dropSubscribers: () => Promise<void>
  readonly worker: (run: Runner, options?: Partial<WorkerOptions>) => Promise<AgentWorker>
}

/** Starts a Redis. After the test, ends everything that was started with it. */
export async function startFleet(options?: RedisServerOptions): Promise<Fleet> {
  const redis = await startRedis(options)
  const lines: string[] = []
  const log = (line: string): void => void lines.push(line)
  const ends: (() => Promise<unknown>)[] = []
  onTestFinished(async () => {
    for (const end of ends.reverse()) await end()
    await redis.close()
  })
  return {
    redis,
    lines,
    runnerOf: (more) => bullmqRunner({ connection: redis.url, queue: 'research', lockMs: LOCK_MS, log, ...more }),
    manager: (more) => {
      const manager = new AsyncTaskManager(more)
      ends.push(() => manager.dispose())
      return manager
    },
    dropSubscribers: async () => {
      const admin = new Redis(redis.url)
      const drop = (): Promise<unknown> => admin.client('KILL', 'TYPE', 'pubsub')
      const timer = setInterval(() => void drop(), 10)
      ends.push(() => {
        clearInterval(timer)
        return admin.quit()
      })
      await drop()
    },
    worker: async (run, more) => {
      const worker = await startWorker({
        connection: redis.url,
        subagents: { research: run },
        lockMs: LOCK_MS,
        log,
        ...more,
      })
      ends.push(() => worker.close())
      return worker
    },
  }
}
