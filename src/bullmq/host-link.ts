/**
 * The connections of a host to one queue. They open with the first run, and close one second after the last run has ended.
 *
 * While Redis cannot be reached, commands fail at once instead of waiting in the connection. The caller then repeats the command or gives it up.
 */
import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { LongTimer } from '../system/clock.js'
import { clearLongTimeout, setLongTimeout, systemClock } from '../system/clock.js'
import { AgentTasksError } from '../errors.js'
import { createBackoff } from './backoff.js'
import { openConnection, othersAreBack, type RedisAddress } from './connection.js'
import type { LogFailure } from './failure-log.js'
import { giveUp } from './give-up-dead.js'
import { hostChannel, jobKeys, RETENTION_SECONDS, workersChannel, type JobKeys, type QueueName } from './job-keys.js'
import { CANCEL } from './job-scripts.js'
import { reportFindings } from './redis-checks.js'
import { runScript, type Named, type Script, type ScriptValue } from './script.js'
import { every, pause, within } from './timing.js'
import { JOB_NAME, type JobData } from './wire.js'

/** How long the connections stay open without a run, in ms. */
const LINGER_MS = 1000

/** The first and the longest wait before a failed attempt to add a job is repeated, in ms. */
const SEND_AGAIN_MS = { first: 50, most: 1000 } as const

/** How long Redis keeps the output of a run after the host has read how the run ended, in seconds. */
const KEPT_SECONDS = 3600

/** BullMQ ignores a second add of the same id while it keeps the job: for one day after the job has ended. */
const JOB_OPTIONS = { removeOnComplete: { age: RETENTION_SECONDS }, removeOnFail: { age: RETENTION_SECONDS } } as const

export interface HostLinkOptions {
  readonly address: RedisAddress
  readonly name: QueueName
  readonly sendTimeoutMs: number
  /** How often each run reads its state from Redis, in ms, because a pub/sub message can be missed. */
  readonly lookMs: number
  readonly log: (line: string) => void
  readonly logFailure: LogFailure
}

interface Connections {
  readonly redis: Redis
  readonly subscriber: Redis
  readonly queue: Queue
  readonly ready: Promise<unknown>
  readonly othersAreBack: () => boolean
  readonly stopLooking: () => void
}

/** Called when a job may have updates. `output` is the output of a completed job that has no other updates to read. */
export type Wake = (output?: string) => void

export class HostLink {
  readonly channel: string
  readonly #options: HostLinkOptions
  readonly #runs = new Map<string, Wake>()
  #connections: Connections | undefined
  #users = 0
  #linger: LongTimer | undefined

  constructor(options: HostLinkOptions) {
    this.#options = options
    this.channel = hostChannel(options.name, globalThis.crypto.randomUUID())
  }

  /** Registers a run that this host follows. The connections stay open until `leave`. */
  join(id: string, wake: Wake): void {
    this.#use()
    this.#runs.set(id, wake)
  }

  leave(id: string): void {
    if (this.#runs.delete(id)) this.#release()
  }

  get isReady(): boolean {
    return this.#connections?.redis.status === 'ready'
  }

  /** Whether a job without a lock really has a dead worker. This is false while live workers may still be reconnecting to Redis. */
  get seesDead(): boolean {
    return this.#connections?.othersAreBack() === true
  }

  keysOf(id: string): JobKeys {
    return jobKeys(this.#options.name, id)
  }

  /** Runs a script. Rejects at once while Redis cannot be reached. */
  run<Key extends string, Argument extends string>(
    script: Script<Key, Argument>,
    keys: Named<Key, string>,
    args: Named<Argument, ScriptValue>,
  ): Promise<unknown> {
    return runScript(this.#open().redis, script, keys, args)
  }

  /**
   * Sends a run to the queue. If Redis does not accept the job in time, the job is cancelled as soon as Redis answers, because Redis may still
   * receive the request.
   * @throws AgentTasksError with the code `START_FAILED` when Redis did not accept the job within `sendTimeoutMs`
   * @throws the reason of `signal` when it aborts
   */
  async send(id: string, data: JobData, signal: AbortSignal): Promise<void> {
    const { sendTimeoutMs, address, name } = this.#options
    const until = performance.now() + sendTimeoutMs
    const backoff = createBackoff(SEND_AGAIN_MS.first, SEND_AGAIN_MS.most)
    let wasSent = false
    let cause: unknown
    for (let left = sendTimeoutMs; left > 0; left = until - performance.now()) {
      if (signal.aborted) break
      try {
        const { queue, ready, redis } = this.#open()
        if (redis.status === 'ready') {
          await within(left, ready)
          wasSent = true
          await within(until - performance.now(), queue.add(JOB_NAME, data, { jobId: id, ...JOB_OPTIONS }))
          return
        }
      } catch (error) {
        cause = error
      }
      await pause(Math.min(backoff.next(), left))
    }
    if (wasSent) this.#giveUp(id)
    signal.throwIfAborted()
    const answer = cause instanceof Error && cause.name === 'ReplyError' ? ` It answered: ${cause.message}` : ''
    throw new AgentTasksError(
      'START_FAILED',
      `The task was not sent to the workers of queue ${name.queue}: Redis at ${address.name} did not accept it within ${sendTimeoutMs} ms.${answer}`,
      { cause },
    )
  }

  /**
   * Cancels a job. No worker starts the job after that, even if a delayed request adds it later. Rejects while Redis cannot be reached.
   * @returns the state of the job
   */
  async cancel(id: string, reason: string): Promise<string> {
    const { queue, agent } = this.keysOf(id)
    const workers = workersChannel(this.#options.name)
    const args = { queue, id, reason, keptSeconds: RETENTION_SECONDS, workers }
    const state = (await this.run(CANCEL, { agent }, args)) as string
    if (state === 'waiting') await this.#open().queue.remove(id)
    return state
  }

  /** Fails a job whose worker is dead. Does nothing when the worker has taken its lock again. Rejects while Redis cannot be reached. */
  giveUp(id: string): Promise<void> {
    const { redis, queue } = this.#open()
    return giveUp({ redis, name: this.#options.name, findJob: (jobId) => queue.getJob(jobId) }, id)
  }

  /**
   * Lets the keys that this host has read expire after an hour. They are not deleted at once: if this process dies before it has stored how the run
   * ended, the next process reads them again.
   */
  letGo(keys: readonly string[]): void {
    for (const key of keys) this.#connections?.redis.expire(key, KEPT_SECONDS).catch(() => undefined)
  }

  /** Cancels a job that could not be sent, as soon as Redis answers again. Redis may still receive the request that adds the job. */
  #giveUp(id: string): void {
    this.#use()
    const { lookMs, logFailure } = this.#options
    const backoff = createBackoff(lookMs)
    const tryIt = async (): Promise<void> => {
      for (;;) {
        try {
          if (this.isReady) {
            await this.cancel(id, 'The host could not send this task in time.')
            return
          }
        } catch (error) {
          if (this.isReady) logFailure('give up', `Job ${id} cannot be cancelled`, error)
        }
        await backoff.wait()
      }
    }
    void tryIt().finally(() => this.#release())
  }

  #use(): void {
    this.#users += 1
    clearLongTimeout(systemClock, this.#linger)
    this.#open()
  }

  #release(): void {
    this.#users -= 1
    if (this.#users > 0) return
    this.#linger = setLongTimeout(systemClock, () => this.#close(), LINGER_MS)
  }

  #open(): Connections {
    if (this.#connections !== undefined) return this.#connections
    const { address, name, log, logFailure, lookMs } = this.#options
    const redis = openConnection(address, { use: `host of ${name.queue}`, log, waits: false })
    const subscriber = openConnection(address, { use: `hints of ${name.queue}`, log })
    const queue = new Queue(name.queue, { connection: redis, prefix: name.prefix })
    // `openConnection` logs connection errors.
    queue.on('error', () => undefined)
    const wakeAll = (): void => {
      for (const wake of this.#runs.values()) wake()
    }
    redis.on('ready', wakeAll)
    redis.once('ready', () => {
      reportFindings(redis, { name: address.name, log }).catch((error: unknown) =>
        logFailure('check', `Queue ${name.queue}`, error),
      )
    })
    subscriber.on('message', (_channel, message) => {
      const [id = '', output] = message.split('\n', 2)
      this.#runs.get(id)?.(output)
    })
    subscriber.subscribe(this.channel).then(wakeAll, () => undefined)
    const ready = queue.waitUntilReady()
    // `send` awaits `ready`, and receives this error there.
    ready.catch(() => undefined)
    this.#connections = {
      redis,
      subscriber,
      queue,
      ready,
      othersAreBack: othersAreBack(redis),
      stopLooking: every(lookMs, wakeAll),
    }
    return this.#connections
  }

  #close(): void {
    const connections = this.#connections
    if (connections === undefined || this.#users > 0) return
    this.#connections = undefined
    connections.stopLooking()
    connections.queue.close().catch(() => undefined)
    connections.redis.disconnect()
    connections.subscriber.disconnect()
  }
}
