/** A Redis, a host and workers, all in this process, for tests of what they say to each other. */
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import type { AsyncTaskManagerOptions } from '../../src/async-tasks/manager-options.js'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { bullmqRunner, type BullmqRunnerOptions } from '../../src/bullmq/bullmq-runner.js'
import { startWorker, type WorkerOptions, type AgentWorker } from '../../src/bullmq/start-worker.js'
import type { OutputRunner, Runner } from '../../src/engine/runner.js'
import { startRedis, type RedisServer, type RedisServerOptions } from './redis-server.js'

/** Short, so that a test does not wait: what a worker's death costs. */
export const LOCK_MS = 3000

/** A fleet of one queue. */
export interface Fleet {
  readonly redis: RedisServer
  /** All lines that hosts and workers have logged. */
  readonly lines: string[]
  readonly runnerOf: (options?: Partial<BullmqRunnerOptions>) => OutputRunner
  readonly manager: (options?: AsyncTaskManagerOptions) => AsyncTaskManager
  /** Cuts the connections on which workers and hosts hear what is published, as often as they connect again, until the test ends. */
  readonly dropSubscribers: () => Promise<void>
  readonly worker: (run: Runner, options?: Partial<WorkerOptions>) => Promise<AgentWorker>
}

/** Starts a Redis, and ends all that was started with it after the test. */
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
