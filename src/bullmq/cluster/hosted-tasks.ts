/**
 * The tasks of a cluster, for a process that is not one of its servers (promises N3 and N7). The process submits and reads tasks; the servers run
 * them.
 */
import type { Redis } from 'ioredis'
import { systemClock } from '../../system/clock.js'
import type { ClusterTasks, FollowOptions } from '../../command-tasks/cluster-tasks.js'
import { refusal } from '../../command-tasks/submission.js'
import type { SubmitResult } from '../../command-tasks/options.js'
import type { EndedTask } from '../../command-tasks/task-record.js'
import { AgentTasksError } from '../../errors.js'
import type { Task } from '../../protocol/command-tasks.js'
import { jsonBytes } from '../../data/json-size.js'
import { describeFailure } from '../../protocol/outcomes.js'
import type { InstanceSummary } from '../../protocol/rest.js'
import { resolveServerConfig } from '../../protocol/server-config.js'
import type { TaskSubmitMessage } from '../../protocol/task-submission.js'
import { createCursors, type TaskService } from '../../server/backend/task-service.js'
import { createBackoff, type Backoff } from '../backoff.js'
import { openConnection, type RedisAddress } from '../connection.js'
import { failureLog } from '../failure-log.js'
import { reportFindings } from '../redis-checks.js'
import { every, within } from '../timing.js'
import { clusterKeys } from './cluster-keys.js'
import { createClusterRedis, type ClusterRedis } from './cluster-redis.js'
import { NOT_STORED } from '../../command-tasks/submission.js'
import { createClusterService } from './cluster-service.js'
import { toTaskEvent } from './feed-event.js'
import { createInstanceQueue, type InstanceQueue } from './instance-queue.js'
import { listInstances } from './listed-instances.js'
import { LogReader } from './log-reader.js'
import { withLimit } from './time-limit.js'

export interface HostedTasksOptions {
  readonly name: string
  readonly address: RedisAddress
  readonly sendTimeoutMs: number
  readonly log: ((line: string) => void) | undefined
}

/**
 * How often the record of a followed task is read, in ms. An event normally announces the end earlier, but the task may be deleted before that event
 * is read.
 */
const LOOK_MS = 5000
/** The first and the longest wait before a failed request to Redis is repeated, in ms. */
const RETRY_MS = { first: 200, most: 2000 } as const
/** How long `close` waits for pending cancellations, and then for its queues to close, in ms. */
const CLOSE_MS = 2000
/** The maximum number of open queues, one for each instance. */
const MAX_QUEUES = 100
/** The maximum number of ended tasks that are kept, and their maximum size in bytes of JSON (32 MiB). */
const MAX_ENDED = 50
const MAX_ENDED_BYTES = 32 * 1024 * 1024

interface Parts {
  readonly connection: Redis
  readonly redis: ClusterRedis
  readonly reader: LogReader
  readonly service: TaskService
  readonly queues: Map<string, InstanceQueue>
}

export class HostedTasks implements ClusterTasks {
  readonly #options: HostedTasksOptions
  readonly #log: (line: string) => void
  readonly #inTime: ReturnType<typeof withLimit>
  readonly #closing = new AbortController()
  readonly #cancelling = new Map<string, Promise<boolean>>()
  readonly #limits = { ...resolveServerConfig({ options: {}, env: {} }).tasks }
  /** The followed tasks that have ended, in the order in which they ended. */
  readonly #ended = new Map<string, { readonly task: EndedTask; readonly bytes: number }>()
  #parts: Parts | undefined
  #isChecked: Promise<void> | undefined

  constructor(options: HostedTasksOptions) {
    this.#options = options
    this.#log = options.log ?? ((line) => console.error(line))
    this.#inTime = withLimit(systemClock, options.sendTimeoutMs)
  }

  async submitTask(message: TaskSubmitMessage): Promise<SubmitResult> {
    if (this.#isClosed) return refusal('NO_INSTANCE', 'The connection to the cluster was closed.')
    try {
      const { redis, service } = await this.#open()
      Object.assign(this.#limits, await this.#inTime(redis.limits()))
      return (await service.submit(message)) as SubmitResult
    } catch (error) {
      this.#log(`A task could not be submitted to the cluster: ${describeFailure(error)}`)
      return NOT_STORED
    }
  }

  async getTask(taskId: string): Promise<Task | undefined> {
    const { service } = await this.#open()
    return service.get(taskId)
  }

  cancelTask(taskId: string): Promise<boolean> {
    const known = this.#cancelling.get(taskId)
    if (known !== undefined) return known
    const cancelled = this.#cancel(taskId).finally(() => this.#cancelling.delete(taskId))
    this.#cancelling.set(taskId, cancelled)
    return cancelled
  }

  async followTask(taskId: string, options: FollowOptions): Promise<EndedTask | undefined> {
    const leaving = AbortSignal.any([options.signal, this.#closing.signal])
    leaving.throwIfAborted()
    let stop = (): void => undefined
    const left = new Promise<never>((_resolve, reject) => {
      const leave = (): void => reject(leaving.reason as Error)
      leaving.addEventListener('abort', leave)
      stop = () => leaving.removeEventListener('abort', leave)
    })
    const whileThere = <T>(promise: Promise<T>): Promise<T> => Promise.race([promise, left])
    try {
      return await this.#follow(taskId, options, whileThere)
    } finally {
      stop()
    }
  }

  listTasks(): readonly Task[] {
    return Array.from(this.#ended.values(), ({ task }) => task).reverse()
  }

  async listInstances(): Promise<InstanceSummary[]> {
    const { redis } = await this.#open()
    return this.#inTime(listInstances(redis))
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    await within(CLOSE_MS, Promise.all(this.#cancelling.values())).catch(() => undefined)
    this.#closing.abort(new AgentTasksError('DISPOSED', 'The connection to the cluster was closed.'))
    const { reader, connection, queues } = this.#parts ?? {}
    reader?.close()
    const closed = Promise.allSettled(Array.from(queues?.values() ?? [], (queue) => queue.close()))
    await within(CLOSE_MS, closed).catch(() => undefined)
    connection?.disconnect()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  async #follow(
    taskId: string,
    { onProgress }: FollowOptions,
    whileThere: <T>(promise: Promise<T>) => Promise<T>,
  ): Promise<EndedTask | undefined> {
    const { redis, reader } = await whileThere(this.#openAtLast())
    let wake = (): void => undefined
    let news = new Promise<void>((resolve) => (wake = resolve))
    const look = (): void => wake()
    const stopFollowing = reader.follow(taskId, (kept) => {
      const { message } = toTaskEvent(kept)
      if (message.type === 'task_progress') onProgress(message)
      else look()
    })
    const stopLooking = every(LOOK_MS, look)
    try {
      for (;;) {
        const found = await whileThere(redis.read(taskId))
        if (found === undefined) return undefined
        const { task } = found
        if (task.completedAt !== undefined) {
          await whileThere(reader.catchUp(taskId))
          this.#keep(task)
          return task
        }
        await whileThere(news)
        news = new Promise((resolve) => (wake = resolve))
      }
    } finally {
      stopLooking()
      stopFollowing()
    }
  }

  async #cancel(taskId: string, backoff: Backoff = createBackoff(RETRY_MS.first, RETRY_MS.most)): Promise<boolean> {
    try {
      const { service } = await this.#openAtLast()
      const cancelled = await service.cancel(taskId)
      // With `NOT_STORED`, the cancellation is stored, but the server that runs the task has not confirmed it yet.
      return cancelled.success || cancelled.code === 'NOT_STORED'
    } catch {
      if (this.#isClosed) return false
      // `openConnection` logs connection errors.
      await backoff.wait()
      return this.#cancel(taskId, backoff)
    }
  }

  #keep(task: EndedTask): void {
    const bytes = jsonBytes(task)
    this.#ended.delete(task.id)
    this.#ended.set(task.id, { task, bytes })
    let held = [...this.#ended.values()].reduce((sum, each) => sum + each.bytes, 0)
    for (const [id, each] of this.#ended) {
      if (this.#ended.size <= MAX_ENDED && held <= MAX_ENDED_BYTES) break
      this.#ended.delete(id)
      held -= each.bytes
    }
  }

  /** Opens the connections and checks Redis once. Rejects when Redis does not answer in time; the next call then tries again. */
  async #open(): Promise<Parts> {
    this.#closing.signal.throwIfAborted()
    const parts = (this.#parts ??= this.#connect())
    const { name } = this.#options.address
    this.#isChecked ??= this.#inTime(reportFindings(parts.connection, { name, log: this.#log }))
    try {
      await this.#isChecked
    } catch (error) {
      this.#isChecked = undefined
      throw error
    }
    return parts
  }

  /** Opens the connections like `#open`, but tries again until Redis answers. Rejects only after `close`, or with `REDIS_UNUSABLE`. */
  async #openAtLast(): Promise<Parts> {
    const backoff = createBackoff(RETRY_MS.first, RETRY_MS.most)
    for (;;) {
      try {
        return await this.#open()
      } catch (error) {
        if (this.#isClosed || (error as { readonly code?: unknown }).code === 'REDIS_UNUSABLE') throw error
        await backoff.wait()
      }
    }
  }

  #connect(): Parts {
    const { name, address } = this.#options
    const log = this.#log
    const logFailure = failureLog(log)
    const keys = clusterKeys(name)
    const connection = openConnection(address, { use: 'cluster host', log })
    // BullMQ adds listeners for each queue, so Node would warn of a leak.
    connection.setMaxListeners(0)
    const reading = openConnection(address, { use: 'cluster host, events', log })
    const redis = createClusterRedis(connection, keys, this.#limits)
    const queues = new Map<string, InstanceQueue>()
    const queueOf = (instanceId: string): InstanceQueue => {
      const queue =
        queues.get(instanceId) ??
        createInstanceQueue(keys.queue(instanceId), {
          redis: connection,
          prefix: keys.prefix,
          lockMs: LOOK_MS,
          onError: (error) => logFailure('queue', `Queue of instance ${instanceId}`, error),
        })
      queues.delete(instanceId)
      queues.set(instanceId, queue)
      for (const [id, oldest] of queues) {
        if (queues.size <= MAX_QUEUES) break
        queues.delete(id)
        void oldest.close().catch(() => undefined)
      }
      return queue
    }
    return {
      connection,
      redis,
      queues,
      reader: new LogReader({ connection, reading, keys, log, read: redis.events }),
      service: createClusterService({
        redis,
        queueOf,
        limits: this.#limits,
        inTime: this.#inTime,
        cursors: createCursors(),
        isDraining: () => this.#isClosed,
        // A host has no subscribers to wait for. `#follow` notices the end of a task.
        expectEnd: () => ({ told: Promise.resolve(), stop: () => undefined }),
        now: () => systemClock.now(),
        onError: (error) => logFailure('cluster', 'The cluster', error),
      }),
    }
  }
}
