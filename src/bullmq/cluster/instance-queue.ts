/** The queue of an instance in BullMQ, fetched by hand: all queues of a node share one connection. */
import { createRedisBackend, Queue, Worker, type Job } from 'bullmq'
import type { Redis } from 'ioredis'

/** What a job says. The task itself is a record of the cluster. */
export interface TaskJob {
  readonly task: string
}

export interface InstanceQueue {
  /** Sees to it that at most one job is active. */
  prepare(): Promise<unknown>
  /** Puts a task at the end; again under the same id it changes nothing. */
  add(taskId: string, name: string): Promise<unknown>
  /** Fetches the next job, and locks it. Undefined when there is none, or one is active. */
  next(token: string): Promise<Job<TaskJob> | undefined>
  /** The jobs that are active: at most one. */
  active(): Promise<Job<TaskJob>[]>
  job(taskId: string): Promise<Job<TaskJob> | undefined>
  /** Removes a job that waits; one that is active stays. */
  remove(taskId: string): Promise<void>
  close(): Promise<void>
}

/** Jobs that have ended are kept for a day, for dashboards. */
const KEEP = { age: 86_400, count: 100 }
/** BullMQ's own events are for dashboards, too: those of the cluster are in its feed. */
const MAX_EVENTS = 100

/** @param lockMs how long a lock lasts */
export function createInstanceQueue(
  name: string,
  { redis, prefix, lockMs, onError }: { redis: Redis; prefix: string; lockMs: number; onError: (error: Error) => void },
): InstanceQueue {
  const options = { connection: redis, prefix, skipVersionCheck: true }
  const queue = new Queue<TaskJob>(name, {
    ...options,
    streams: { events: { maxLen: MAX_EVENTS } },
    defaultJobOptions: { removeOnComplete: KEEP, removeOnFail: KEEP },
  })
  const worker = new Worker<TaskJob>(
    name,
    null,
    // No connection of its own: it never waits in Redis.
    { ...options, autorun: false, lockDuration: lockMs },
    (queueName, backendOptions) => createRedisBackend(queueName, backendOptions, {}),
  )
  queue.on('error', onError)
  worker.on('error', onError)
  return {
    prepare: () => queue.setGlobalConcurrency(1),
    add: (taskId, taskName) => queue.add(taskName === '' ? 'task' : taskName, { task: taskId }, { jobId: taskId }),
    next: (token) => worker.getNextJob(token, { block: false }),
    active: () => queue.getActive(),
    job: (taskId) => queue.getJob(taskId),
    remove: async (taskId) => {
      await queue.remove(taskId)
    },
    close: async () => {
      await Promise.all([worker.close(), queue.close()])
    },
  }
}
