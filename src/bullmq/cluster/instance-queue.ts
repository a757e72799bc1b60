/** The BullMQ queue of one instance. The node fetches jobs itself instead of letting BullMQ run them, so that all queues share one connection. */
import { createRedisBackend, Queue, Worker, type Job } from 'bullmq'
import type { Redis } from 'ioredis'

/** The data of a job: only the id of the task. The task itself is a hash in Redis. */
export interface TaskJob {
  readonly task: string
}

export interface InstanceQueue {
  /** Limits the queue to one active job. */
  prepare(): Promise<unknown>
  /** Adds a task to the end of the queue. BullMQ ignores a second add of the same id. */
  add(taskId: string, name: string): Promise<unknown>
  /** Fetches and locks the next job. Resolves with undefined when no job waits, or when a job is active. */
  next(token: string): Promise<Job<TaskJob> | undefined>
  /** The active jobs. There is at most one. */
  active(): Promise<Job<TaskJob>[]>
  job(taskId: string): Promise<Job<TaskJob> | undefined>
  /** Removes a waiting job. An active job stays. */
  remove(taskId: string): Promise<void>
  close(): Promise<void>
}

/** How long BullMQ keeps ended jobs (one day) and how many. Only dashboards show them. */
const KEEP = { age: 86_400, count: 100 }
/** The maximum number of BullMQ's own events. Only dashboards use these events. */
const MAX_EVENTS = 100

/** @param lockMs how long the lock of a fetched job lasts, in ms */
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
    // The worker shares the connection of the queue. This is safe, because the worker never sends a blocking command.
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
