/** The BullMQ queue of an instance. Jobs are fetched by hand, so that all queues of a node share one connection. */
import { createRedisBackend, Queue, Worker, type Job } from 'bullmq'
import type { Redis } from 'ioredis'

/** The data of a job. The task itself is a record of the cluster. */
export interface TaskJob {
  readonly task: string
}

export interface InstanceQueue {
  /** Limits the queue to one active job. */
  prepare(): Promise<unknown>
  /** Adds a task to the end of the queue. Adding the same id again is a no-op. */
  add(taskId: string, name: string): Promise<unknown>
  /** Fetches and locks the next job. Undefined when there is none, or one is active. */
  next(token: string): Promise<Job<TaskJob> | undefined>
  /** The active jobs: at most one. */
  active(): Promise<Job<TaskJob>[]>
  job(taskId: string): Promise<Job<TaskJob> | undefined>
  /** Removes a waiting job. An active one stays. */
  remove(taskId: string): Promise<void>
  close(): Promise<void>
}

/** Ended jobs are kept for a day, for dashboards. */
const KEEP = { age: 86_400, count: 100 }
/** BullMQ's own events are only for dashboards; the cluster has its feed. */
const MAX_EVENTS = 100

/** @param lockMs how long a lock lasts, in ms */
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
    // It shares a connection, because it never uses a blocking command.
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
