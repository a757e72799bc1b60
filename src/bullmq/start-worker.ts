/** A worker: runs the tasks that hosts send, anywhere. */
import { Job, Worker } from 'bullmq'
import { systemClock, clearLongTimeout, setLongTimeout } from '../clock.js'
import { aRunnable, flatRunner } from '../engine/definition.js'
import type { Runner } from '../engine/runner.js'
import { InvalidInputError } from '../errors.js'
import {
  aName,
  checkOptions,
  integerFrom,
  limitFrom,
  numberFrom,
  recordOf,
  required,
} from '../protocol/option-checks.js'
import type { OptionTypes } from '../protocol/option-checks.js'
import { describeFailure } from '../protocol/outcomes.js'
import { openConnection, othersAreBack, redisAccessTypes, toRedisAddress, type RedisAccess } from './connection.js'
import { giveUpDead } from './give-up-dead.js'
import { jobKeys, workersChannel, type QueueName } from './job-keys.js'
import { ANNOUNCE } from './job-scripts.js'
import { aQueueName, DEFAULT_LOCK_MS, DEFAULT_PREFIX, lockTimes } from './queue-settings.js'
import { RecentIds } from './recent-ids.js'
import { reportFindings } from './redis-checks.js'
import { runScript } from './script.js'
import { every } from './timing.js'
import { interruptedError, readJobData } from './wire.js'
import { WorkerRun, type WorkerInput } from './worker-run.js'

/** How long a run may take to stop when a worker ends without it, in ms. */
const STOP_MS = 5000

/** The largest output that is told to a host, in bytes; a larger one is read. */
const MAX_TOLD_BYTES = 16_384

/** Of how many runs a worker knows that it has started them. */
const KNOWN_RUNS = 10_000

const STARTED_BEFORE =
  'The worker had started this run before, and Redis has lost its job since. It is not run twice: launch the task again if its result is still needed.'

/** What runs the tasks of a subagent: a definition, or only its function. A definition's retries and budgets are those of the host. */
export type WorkerSubagent = Runner<WorkerInput>

/** Options of `startWorker`. */
export interface WorkerOptions extends RedisAccess {
  /** What runs the tasks of each queue, by the name of the queue. */
  readonly subagents: Readonly<Record<string, WorkerSubagent>>
  /** How many tasks of each queue it runs at once. Default 1. */
  readonly concurrency?: number
  /** How long after its death its tasks are given up, in ms; the same number at the hosts. Default 15000. */
  readonly lockMs?: number
  /** How long `drain` waits for what runs, in ms; then it is stopped, and is `INTERRUPTED`. Default Infinity. */
  readonly drainMs?: number
  /** The prefix of BullMQ's keys; the same at the hosts. Default `bull`. */
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

/** A worker that runs. */
export interface AgentWorker {
  /** How many tasks it runs now. */
  readonly running: number
  /** Takes nothing new, and resolves when what it runs has ended. Its connections are closed then. */
  drain(): Promise<void>
  /** The same, but what runs is stopped at once, and is `INTERRUPTED`. */
  close(): Promise<void>
  /** `close`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

/**
 * Starts a worker. Resolves when it is connected; it waits for a Redis that is not there yet.
 * @throws InvalidInputError for an invalid option, or a Redis without a password that other machines reach; AgentTasksError for a Redis that is
 *   too old (`REDIS_UNUSABLE`)
 */
export async function startWorker(options: WorkerOptions): Promise<AgentWorker> {
  checkOptions(options, optionTypes)
  const names = Object.keys(options.subagents)
  if (names.length === 0) throw new InvalidInputError('options.subagents', options.subagents, 'at least one subagent')
  for (const name of names) {
    if (!aQueueName.accepts(name)) throw new InvalidInputError('options.subagents', name, aQueueName.expected)
  }
  const { log = (line) => console.error(line) } = options
  const address = toRedisAddress(options)
  const redis = openConnection(address, { use: 'worker', log })
  const subscriber = openConnection(address, { use: 'worker hints', log })
  const runs = new Map<string, WorkerRun>()
  const known = new RecentIds(KNOWN_RUNS)
  let stopped: Error | undefined
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
  const findJobs = new Map<string, (id: string) => Promise<Job | undefined>>()
  const workers = Object.entries(options.subagents).map(([queue, subagent]) => {
    const runner = flatRunner(subagent)
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
        const run = new WorkerRun({ redis, keys: jobKeys(name, id), token, lockMs: lockDuration, data, log })
        const key = `${queue}:${id}`
        if (!known.add(key)) {
          // Redis has lost its job, and its host has sent it again. The first one finds that it has no lock any more.
          run.abort(interruptedError(STARTED_BEFORE))
          return run.run(runner)
        }
        runs.set(key, run)
        // It was fetched while the worker began to end.
        if (stopped !== undefined) run.abort(stopped)
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
        // Its own check would give up what runs when Redis was away: `giveUpDead` does not.
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
      // The connections say themselves that Redis is away.
      if (redis.status === 'ready') log(`Queue ${queue}: ${describeFailure(error)}`)
    })
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
    stopped ??= interruptedError('The worker that ran this task was told to end.')
    for (const run of runs.values()) run.abort(stopped)
  }
  let ending: Promise<void> | undefined
  const end = async (waitMs: number): Promise<void> => {
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
    if (runs.size > 0) log(`${runs.size} tasks did not stop: they are given up, and may still be running.`)
    redis.disconnect()
    subscriber.disconnect()
  }
  await Promise.all(workers.map((worker) => worker.waitUntilReady()))
  log(`Worker of ${names.join(', ')}: connected to Redis at ${address.name}, ${concurrency} tasks of each at once.`)
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
