/**
 * Runs the tasks of one instance that is connected to this node, for the time of that connection. It fetches one job at a time from the queue of the
 * instance, and runs it in the local task manager (promise N1). A command starts only after the previous call has settled, or its grace period has
 * passed (promise S5).
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { Job } from 'bullmq'
import type { TaskManager } from '../../command-tasks/task-manager.js'
import type { InstanceManager } from '../../command-tasks/instances/instance-manager.js'
import { createBackoff } from '../backoff.js'
import type { LogFailure } from '../failure-log.js'
import type { ClusterRedis } from './cluster-redis.js'
import type { InstanceQueue, TaskJob } from './instance-queue.js'
import { endFields, endTask, type ClusterTask } from './task-fields.js'
import { TaskRun } from './task-run.js'
import { eventWithInlineResults } from '../../server/backend/inline-results.js'
import { toJson } from '../../server/http/json.js'

/** The wait before the node checks again whether a submission was confirmed, in ms. */
const JOIN_PAUSE_MS = 5

const NODE_STOPPED = 'the server that it was connected to has stopped'

/** The first and the longest wait after Redis has refused a command, in ms. A node that ends waits for its lanes, so they must not wait long. */
const REFUSED_MS = { first: 100, most: 2000 } as const

export interface InstanceLaneOptions {
  readonly instanceId: string
  readonly epoch: number
  readonly node: string
  readonly queue: InstanceQueue
  readonly redis: ClusterRedis
  /** The prefix of BullMQ's keys of the queue. */
  readonly queueKey: string
  readonly lockMs: number
  readonly tasks: TaskManager
  readonly instances: InstanceManager
  readonly now: () => number
  readonly logFailure: LogFailure
}

export class InstanceLane {
  readonly instanceId: string
  readonly epoch: number
  readonly token: string
  readonly #options: InstanceLaneOptions
  #run: TaskRun | undefined
  #isFetching = false
  #hasNews = false
  #isClosed = false
  #isHeld = false
  #isInterrupted = false
  #isOpen = false
  #idle: Promise<void> = Promise.resolve()
  readonly #backoff = createBackoff(REFUSED_MS.first, REFUSED_MS.most)

  constructor(options: InstanceLaneOptions) {
    this.#options = options
    this.instanceId = options.instanceId
    this.epoch = options.epoch
    this.token = `${options.node}:${options.epoch}`
  }

  get run(): TaskRun | undefined {
    return this.#run
  }

  /** Resolves when no task runs and no fetch is pending. Call `hold` or `close` first, or the lane fetches again. */
  get idle(): Promise<void> {
    return this.#idle
  }

  /** Fails the task that an earlier connection of the instance was running, and then starts to fetch jobs. */
  async open(): Promise<void> {
    const { queue, redis, lockMs } = this.#options
    await queue.prepare()
    for (const job of await queue.active()) {
      const id = job.id ?? ''
      if (await redis.seizeFromEarlier(this.instanceId, id, this.token, lockMs, this.epoch)) {
        await settleStray(job, this.#options, this.token, 'its connection was lost')
      }
    }
    this.#isOpen = true
    this.wake()
  }

  /** Fetches the next job, if the lane is open and not busy. */
  wake(): void {
    this.#hasNews = true
    if (this.#isFetching || this.#isClosed || this.#isHeld || !this.#isOpen) return
    this.#isFetching = true
    this.#idle = this.#fetchAll()
      .catch(async (error: unknown) => {
        this.#options.logFailure('lane', `The queue of instance ${this.instanceId} could not be read`, error)
        await this.#backoff.wait()
      })
      .finally(() => {
        this.#isFetching = false
        if (this.#hasNews) this.wake()
      })
  }

  /** Stops fetching jobs. The running task continues. */
  hold(): void {
    this.#isHeld = true
  }

  /**
   * Gives up the task that runs, because the node is closing. It ends as after the death of the node, at once: the lane still holds its lock, so nobody
   * has to wait for the end of the lock.
   */
  interrupt(): void {
    this.#isInterrupted = true
    this.#run?.lose()
  }

  /** Closes the lane, because the instance has disconnected or the node is closing. */
  close(): void {
    this.#isClosed = true
  }

  async #fetchAll(): Promise<void> {
    while (this.#hasNews && !this.#isClosed && !this.#isHeld) {
      this.#hasNews = false
      const job = await this.#options.queue.next(this.token)
      if (job === undefined) continue
      this.#hasNews = true
      await this.#take(job)
      this.#backoff.reset()
    }
  }

  async #take(job: Job<TaskJob>): Promise<void> {
    const { redis } = this.#options
    const id = job.id ?? ''
    const state = await this.#begin(id)
    // The lock has expired: Redis could not be reached, or the confirmation took too long. A survey puts the job back into the queue.
    if (state === 'unlocked') return
    if (state === 'stale') {
      this.#isClosed ||= !this.#isHeld
      // Puts the job back to the head of the queue, for the next connection of the instance.
      await job.moveToWait(this.token).catch(() => undefined)
      await redis.announceWork(this.instanceId)
      return
    }
    if (state === 'begun') {
      await settleStray(job, this.#options, this.token, 'its connection was lost')
      return
    }
    const found = state === 'run' ? await redis.read(id) : undefined
    if (found === undefined) await finishJob(job, this.token)
    else await this.#perform(job, found)
  }

  async #begin(id: string): Promise<Exclude<Awaited<ReturnType<ClusterRedis['begin']>>, 'joining'>> {
    const { redis, queueKey, now } = this.#options
    while (!this.#isClosed && !this.#isHeld) {
      const state = await redis.begin(id, queueKey, this.token, this.epoch, now())
      if (state !== 'joining') return state
      // The submission is not confirmed yet. Soon it is either confirmed or dropped.
      await pause(JOIN_PAUSE_MS)
    }
    return 'stale'
  }

  async #perform(job: Job<TaskJob>, found: ClusterTask): Promise<void> {
    const { redis, queueKey: queue, tasks, instances } = this.#options
    const { task, submitted, place, seq } = found
    const entry = instances.get(this.instanceId)
    if (entry === undefined || this.#isClosed || this.#isInterrupted) {
      await endStray(
        found,
        { redis, queue, token: this.token, now: this.#options.now },
        'its connection was lost before the first command',
      )
      await finishJob(job, this.token)
      return
    }
    const run = new TaskRun(
      {
        taskId: task.id,
        queue,
        token: this.token,
        write: (write) => redis.record(task.id, queue, this.token, write),
        onLost: () => void tasks.cancelTask(task.id, 'this connection of the instance does not run the task any more'),
      },
      seq,
    )
    this.#run = run
    const [onProgress, onComplete] = listeners(run, tasks)
    tasks.on('progress', onProgress).on('complete', onComplete)
    try {
      tasks.run(submitted, place, entry)
      await run.settled
    } finally {
      tasks.off('progress', onProgress).off('complete', onComplete)
      this.#run = undefined
    }
    await this.#finish(job)
  }

  async #finish(job: Job<TaskJob>): Promise<void> {
    if (this.#isInterrupted) await settleStray(job, this.#options, this.token, NODE_STOPPED)
    else await finishJob(job, this.token)
  }
}

function listeners(run: TaskRun, tasks: TaskManager) {
  type Progress = Parameters<TaskRun['progress']>[0]
  type Complete = Parameters<TaskRun['complete']>[0]
  return [
    (message: Progress): void => {
      if (message.taskId === run.taskId) run.progress(message, tasks.getTask(message.taskId))
    },
    (message: Complete): void => {
      const task = message.taskId === run.taskId ? tasks.getTask(message.taskId) : undefined
      if (task !== undefined) run.complete(message, task)
    },
  ] as const
}

interface Fence {
  readonly redis: ClusterRedis
  readonly queue: string
  readonly token: string
  readonly now: () => number
}

/** Ends a task whose connection was lost while it ran. It ends as cancelled if someone has asked to cancel it, and otherwise as failed. */
async function endStray(found: ClusterTask, { redis, queue, token, now }: Fence, why: string): Promise<void> {
  const { task, message } = endTask(
    found,
    (ended) => {
      if (found.cancel === undefined) ended.lose(`Instance ${found.task.instanceId} disconnected: ${why}`)
      else ended.cancel(found.cancel === '' ? undefined : found.cancel)
    },
    now(),
  )
  const events = [{ seq: found.seq + 1, json: toJson(eventWithInlineResults(message)) }]
  await redis.record(task.id, queue, token, { fields: endFields(task), events, dropped: [], isEnd: true, bytes: 0 })
}

/**
 * Settles an active job whose connection was lost. A task that has started fails, because it may have had effects (promise N4). A task that has not
 * started goes back to the head of its queue. `token` must hold the lock of the job.
 */
export async function settleStray(
  job: Job<TaskJob>,
  { redis, queueKey, now, instanceId }: Pick<InstanceLaneOptions, 'redis' | 'queueKey' | 'now' | 'instanceId'>,
  token: string,
  why: string,
): Promise<void> {
  const id = job.id ?? ''
  const found = await redis.read(id)
  if (found?.task.status === 'queued') await job.moveToWait(token)
  else {
    if (found?.task.status === 'running') await endStray(found, { redis, queue: queueKey, token, now }, why)
    await finishJob(job, token)
  }
  await redis.announceWork(instanceId)
}

/** Removes a job from the queue. If another token holds its lock, the holder of that token removes the job. */
async function finishJob(job: Job<TaskJob>, token: string): Promise<void> {
  await job.moveToCompleted(null, token, false).catch(() => undefined)
}
