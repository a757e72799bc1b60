/** Runs that do nothing on a worker: through `bullmqRunner`, and as jobs of BullMQ alone. One process, and a Redis that syncs each second. */
import { Queue, QueueEvents, Worker } from 'bullmq'
import { importEntry } from '../package.js'
import { startRedis } from '../../support/redis-server.js'
import type { Subject } from '../subject.js'

/** How the runs are started. */
export interface RunsLoad {
  /** How many are under way at once. */
  readonly atOnce: number
}

const CONCURRENCY = 16
const PAYLOAD = { id: 'agent-1', subagentName: 'research', goalPrompt: 'look into it' }
const OUTPUT = { final_message: 'done' }

/** Does an operation so often, so many at once, and notes how long each took. */
function repeated(atOnce: number, operate: () => Promise<unknown>): Pick<Subject, 'run' | 'takeDurations'> {
  const durations: number[] = []
  return {
    run: async (times) => {
      let left = times
      const lane = async (): Promise<void> => {
        for (; left > 0;) {
          left -= 1
          const start = performance.now()
          await operate()
          durations.push(performance.now() - start)
        }
      }
      await Promise.all(Array.from({ length: Math.min(atOnce, times) }, lane))
      return undefined
    },
    takeDurations: () => durations.splice(0),
  }
}

/** Tasks of a host without a store. */
export async function throughRunner({ atOnce }: RunsLoad, checkout: string): Promise<Subject> {
  const [{ AsyncTaskManager }, { bullmqRunner, startWorker }] = await Promise.all([
    importEntry(checkout, '.'),
    importEntry(checkout, './bullmq'),
  ])
  const redis = await startRedis({ appendfsync: 'everysec' })
  const access = { connection: redis.url, log: () => undefined }
  const worker = await startWorker({ ...access, subagents: { research: () => OUTPUT }, concurrency: CONCURRENCY })
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1 })
  const runner = bullmqRunner({ ...access, queue: 'research' })
  const ends = new Map<string, () => void>()
  manager.onTaskCompleted(({ id }) => {
    manager.markNotified(id)
    ends.get(id)?.()
    ends.delete(id)
  })
  const { id: _, ...input } = PAYLOAD
  const runOne = (): Promise<void> => {
    const { id } = manager.launch(input, runner)
    return new Promise((resolve) => ends.set(id, resolve))
  }
  return {
    ...repeated(atOnce, runOne),
    // Its connections are closed when it has had no run for a second; those of the reference are not.
    prepare: runOne,
    close: async () => {
      await manager.dispose()
      await worker.close()
      await redis.close()
    },
  }
}

/** The same payload, added and awaited. */
export async function jobsAlone({ atOnce }: RunsLoad): Promise<Subject> {
  const redis = await startRedis({ appendfsync: 'everysec' })
  const connection = { host: '127.0.0.1', port: redis.port, maxRetriesPerRequest: null }
  const worker = new Worker('research', () => Promise.resolve(OUTPUT), { connection, concurrency: CONCURRENCY })
  const queue = new Queue('research', { connection })
  const events = new QueueEvents('research', { connection })
  // Each job that is awaited listens to the queue.
  queue.setMaxListeners(0)
  await Promise.all([worker.waitUntilReady(), queue.waitUntilReady(), events.waitUntilReady()])
  const age = { age: 86_400 }
  return {
    ...repeated(atOnce, async () => {
      const job = await queue.add('run', PAYLOAD, { removeOnComplete: age, removeOnFail: age })
      await job.waitUntilFinished(events)
    }),
    close: async () => {
      await Promise.all([worker.close(), queue.close(), events.close()])
      await redis.close()
    },
  }
}
