/** Starts a worker, which runs tasks that hosts send through Redis. */
import { Job, Worker } from 'bullmq'
import { systemClock, clearLongTimeout, setLongTimeout } from '../system/clock.js'
import { aRunnable, resolveRunner } from '../engine/definition.js'
import type { Runner } from '../engine/runner.js'
import { InvalidInputError } from '../errors.js'
import {
  aName,
  checkOption,
  checkOptions,
  integerFrom,
  limitFrom,
  numberFrom,
  recordOf,
  required,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { openConnection, othersAreBack, redisAccessTypes, toRedisAddress, type RedisAccess } from './connection.js'
import { failureLog } from './failure-log.js'
import { giveUpDead } from './give-up-dead.js'
import { jobKeys, workersChannel, type QueueName } from './job-keys.js'
import { ANNOUNCE } from './job-scripts.js'
import { pauseOnErrors } from './paused-worker.js'
import { aQueueName, DEFAULT_LOCK_MS, DEFAULT_PREFIX, lockTimes } from './queue-settings.js'
import { RecentIds } from './recent-ids.js'
import { reportFindings } from './redis-checks.js'
import { runScript } from './script.js'
import { every } from './timing.js'
import { interruptedError, readJobData } from './wire.js'
import type { SubagentRequest } from '../tools/subagents.js'
import { WorkerRun } from './worker-run.js'

/** How long runs may take to stop when their worker closes, in ms. */
const STOP_MS = 5000

/** The maximum size of an output that is published with the end of its job, in bytes. A host reads a larger output from Redis. */
const MAX_TOLD_BYTES = 16_384

/** The number of started runs that a worker remembers, so that it does not start a run twice. */
const KNOWN_RUNS = 10_000

const STARTED_BEFORE =
  'The worker started this run before, and then Redis lost the job. The worker does not start it a second time, because the first execution may have had effects. Launch the task again if its result is still needed.'

/** The subagent that runs the tasks: a definition, or only its function. Settings for retries and budgets belong to the host, not to the worker. */
export type WorkerSubagent = Runner<SubagentRequest>

/** Options of `startWorker`. */
export interface WorkerOptions extends RedisAccess {
  /** The subagents that this worker offers. The name of a subagent is also the name of its queue. */
  readonly subagents: Readonly<Record<string, WorkerSubagent>>
  /** The maximum number of tasks of each subagent that run at the same time. Default 1. */
  readonly concurrency?: number
  /** How long after this worker's death its tasks fail or are run again, in ms. Hosts must use the same value. Default 15000. */
  readonly lockMs?: number
  /** How long `drain` waits for running tasks, in ms. After that they are stopped, and interrupted if they return no result. Default Infinity. */
  readonly drainMs?: number
  /** The prefix of BullMQ's keys in Redis. Hosts must use the same value. Default `bull`. */
  readonly prefix?: string
}

const optionTypes: OptionTypes<WorkerOptions> = {
  ...redisAccessTypes,
  subagents: required(recordOf(aRunnable)),
  concurrency: integerFrom(1),
  lockMs: numberFrom(100),
  drainMs: limitFrom(0),
  prefix: aName,
}

/** A running worker. */
export interface AgentWorker {
  /** The number of tasks that are running now. */
  readonly running: number
  /** Stops accepting tasks. Resolves when the running tasks have ended, or were stopped after `drainMs`, and the connections are closed. */
  drain(): Promise<void>
  /** Stops accepting tasks, and stops the running ones at once. Those that return no result are interrupted, which uses up no attempt. Resolves when the connections are closed. */
  close(): Promise<void>
  /** Calls `close`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/**
 * Starts a worker. Resolves when the worker is connected. Waits without a time limit for a Redis that cannot be reached yet.
 * @throws INVALID_INPUT for an invalid option
 * @throws INVALID_INPUT for a Redis that has no password and that other machines can reach
 * @throws AgentTasksError with the code `REDIS_UNUSABLE` for a Redis that is too old, refuses the connection, is a replica, or is a node of a Redis Cluster
 */
export async function startWorker(options: WorkerOptions): Promise<AgentWorker> {
  checkOptions(options, optionTypes)
  const names = Object.keys(options.subagents)
  if (names.length === 0) throw new InvalidInputError('options.subagents', options.subagents, 'at least one subagent')
  for (const name of names) {
    checkOption(name, aQueueName, ['options', 'subagents'])
  }
  const { log = (line) => console.error(line) } = options
  const logFailure = failureLog(log)
  const address = toRedisAddress(options)
  const redis = openConnection(address, { use: 'worker', log })
  const subscriber = openConnection(address, { use: 'worker hints', log })
  const runs = new Map<string, WorkerRun>()
  const known = new RecentIds(KNOWN_RUNS)
  let isStopped = false
  const { lockMs = DEFAULT_LOCK_MS, concurrency = 1, drainMs = Infinity, prefix = DEFAULT_PREFIX } = options
  const { lockDuration, stalledInterval, pollMs } = lockTimes(lockMs)
  const channels = new Map(names.map((queue) => [workersChannel({ prefix, queue }), queue]))
  try {
    await reportFindings(redis, { name: address.name, log })
    await subscriber.subscribe(...channels.keys())
  } catch (error) {
    redis.disconnect()
    subscriber.disconnect()
    throw error
  }
  subscriber.on('message', (channel, id) => runs.get(`${channels.get(channel) ?? ''}:${id}`)?.wake())
  const isReady = (): boolean => redis.status === 'ready'
  const stopPausing: (() => void)[] = []
  const findJobs = new Map<string, (id: string) => Promise<Job | undefined>>()
  const workers = Object.entries(options.subagents).map(([queue, subagent]) => {
    const runner = resolveRunner(subagent)
    const name: QueueName = { prefix, queue }
    const hostOf = (data: unknown): string =>
      typeof data === 'object' && data !== null && 'host' in data && typeof data.host === 'string' ? data.host : ''
    const announce = (job: Job | undefined): void => {
      if (job?.id === undefined) return
      const { queue: key, id, agent } = jobKeys(name, job.id)
      const args = { queue: key, id, host: hostOf(job.data), mostBytes: MAX_TOLD_BYTES }
      runScript(redis, ANNOUNCE, { agent }, args).catch(() => undefined)
    }
    const worker = new Worker(
      queue,
      async (job, token = '') => {
        const id = job.id ?? ''
        const data = readJobData(job.data)
        const run = new WorkerRun({
          redis,
          keys: jobKeys(name, id),
          token,
          lockMs: lockDuration,
          data,
          log,
          logFailure,
        })
        const key = `${queue}:${id}`
        if (!known.add(key)) {
          // Redis has lost the job, and the host has sent it again. The first run of this job stops when it finds that it does not hold the lock.
          run.abort(interruptedError(STARTED_BEFORE))
          return run.run(runner)
        }
        runs.set(key, run)
        // The worker began to close while this job was being fetched.
        if (isStopped) run.suspend()
        try {
          return await run.run(runner)
        } finally {
          runs.delete(key)
        }
      },
      {
        connection: redis,
        prefix,
        concurrency,
        lockDuration,
        // BullMQ's own check would fail jobs that are still running after an outage of Redis. `giveUpDead` waits until live workers have reconnected.
        skipStalledCheck: true,
        maxStalledCount: 0,
        maxStartedAttempts: 1,
        runRetryDelay: 1000,
      },
    )
    findJobs.set(queue, (id) => Job.fromId(worker, id))
    worker.on('lockRenewalFailed', (ids) => {
      for (const id of ids) void runs.get(`${queue}:${id}`)?.keepLock()
    })
    worker.on('completed', announce)
    worker.on('failed', announce)
    worker.on('error', (error) => {
      // While Redis cannot be reached, `openConnection` logs the error.
      if (isReady()) logFailure('queue', `Queue ${queue}`, error)
    })
    stopPausing.push(pauseOnErrors(worker, isReady))
    return worker
  })
  const stopPolling = every(pollMs, () => {
    for (const run of runs.values()) run.wake()
  })
  redis.on('ready', () => {
    for (const run of runs.values()) void run.keepLock()
  })
  const seesDead = othersAreBack(redis)
  const stopSweeping = every(stalledInterval, () => {
    for (const [queue, findJob] of findJobs) {
      const access = { redis, name: { prefix, queue }, findJob }
      giveUpDead({ ...access, everyMs: stalledInterval, seesDead }).catch(() => undefined)
    }
  })
  const stop = (): void => {
    isStopped = true
    for (const run of runs.values()) run.suspend()
  }
  let ending: Promise<void> | undefined
  const end = async (waitMs: number): Promise<void> => {
    for (const stopOne of stopPausing) stopOne()
    const closed = Promise.all(workers.map((worker) => worker.close()))
    let giveUp = (): void => undefined
    const late = new Promise<void>((resolve) => (giveUp = resolve))
    const timers = [
      setLongTimeout(systemClock, stop, waitMs),
      setLongTimeout(systemClock, () => giveUp(), waitMs + STOP_MS),
    ]
    await Promise.race([closed, late])
    for (const timer of timers) clearLongTimeout(systemClock, timer)
    stopPolling()
    stopSweeping()
    if (runs.size > 0) {
      log(
        `${runs.size} tasks did not stop within ${STOP_MS} ms. The worker has closed without them, and they may still be running.`,
      )
    }
    redis.disconnect()
    subscriber.disconnect()
  }
  await Promise.all(workers.map((worker) => worker.waitUntilReady()))
  log(
    `Worker of ${names.join(', ')}: connected to Redis at ${address.name}, runs up to ${concurrency} tasks of each subagent at once.`,
  )
  const close = (): Promise<void> => {
    stop()
    return (ending ??= end(0))
  }
  return {
    get running() {
      return runs.size
    },
    drain: () => (ending ??= end(drainMs)),
    close,
    [Symbol.asyncDispose]: close,
  }
}
