/** A runner that sends tasks to workers, which may run on other machines. */
import type { OutputRunner } from '../engine/runner.js'
import { aBoolean, aName, checkOptions, numberFrom, required, type OptionTypes } from '../protocol/option-checks.js'
import { redisAccessTypes, toRedisAddress, type RedisAccess } from './connection.js'
import { failureLog } from './failure-log.js'
import { HostLink } from './host-link.js'
import { workersChannel } from './job-keys.js'
import { aQueueName, DEFAULT_LOCK_MS, DEFAULT_PREFIX, lockTimes } from './queue-settings.js'
import { followRun } from './remote-run.js'
import { interruptedError } from './wire.js'

const DEFAULT_SEND_TIMEOUT_MS = 10_000

/** Options of `bullmqRunner`. */
export interface BullmqRunnerOptions extends RedisAccess {
  /** The name of the queue. Workers that offer a subagent with this name run the tasks. */
  readonly queue: string
  /**
   * How long Redis may take to accept a task, in ms. After that the task fails with `START_FAILED`, and does not run, even if Redis receives it later.
   * Default 10000.
   */
  readonly sendTimeoutMs?: number
  /**
   * How long after a worker's death its tasks fail with `INTERRUPTED`, or run again if the subagent's `retry` says so; in ms, at least 100. Hosts and
   * workers must use the same value. Default 15000.
   */
  readonly lockMs?: number
  /** Whether the subagent on the workers reads `context.messages`. With false, messages to its tasks are refused. Default false. */
  readonly takesMessages?: boolean
  /** The prefix of BullMQ's keys in Redis. Hosts and workers must use the same value. Default `bull`. */
  readonly prefix?: string
}

const optionTypes: OptionTypes<BullmqRunnerOptions> = {
  ...redisAccessTypes,
  queue: required(aQueueName),
  sendTimeoutMs: numberFrom(1),
  lockMs: numberFrom(100),
  takesMessages: aBoolean,
  prefix: aName,
}

/**
 * Creates a runner that sends each task to a worker (`startWorker` or `agent-tasks worker`), as a job of BullMQ.
 *
 * Give the host a store. After a crash of the host, the next process then finds the jobs and reads their results. Without a store the jobs continue,
 * but nobody reads their results. When a worker dies, its tasks fail with `INTERRUPTED`, or run again if the subagent has `retry: { on:
 * ['interrupted'] }`.
 * @throws INVALID_INPUT for an invalid option
 * @throws INVALID_INPUT for a Redis that has no password and that other machines can reach
 */
export function bullmqRunner(options: BullmqRunnerOptions): OutputRunner {
  checkOptions(options, optionTypes)
  const { queue, prefix = DEFAULT_PREFIX, log = (line) => console.error(line), takesMessages = false } = options
  const { sendTimeoutMs = DEFAULT_SEND_TIMEOUT_MS, lockMs = DEFAULT_LOCK_MS } = options
  const name = { prefix, queue }
  const address = toRedisAddress(options)
  const logFailure = failureLog(log)
  const lookMs = lockTimes(lockMs).stalledInterval
  const link = new HostLink({ address, name, sendTimeoutMs, lookMs, log, logFailure })
  return {
    run: (input, context) => {
      const { durability } = context
      const key = durability?.key ?? (durability?.isResumed === true ? undefined : globalThis.crypto.randomUUID())
      if (key === undefined) {
        throw interruptedError(
          'A runner of another kind started this task in an earlier process. Whether the run has ended is unknown. It may have had effects, so it is not run again.',
        )
      }
      const jobId = `${key}-${context.attempt}`
      return followRun({ link, jobId, workers: workersChannel(name), input, context, logFailure })
    },
    survivesHost: true,
    takesMessages,
    whyNotContinue: () => 'it ran on a worker, and workers keep no sessions',
  }
}
