/** A runner that sends its tasks to workers on other machines. */
import type { OutputRunner } from '../engine/runner.js'
import { aBoolean, aName, checkOptions, numberFrom, required, type OptionTypes } from '../protocol/option-checks.js'
import { redisAccessTypes, toRedisAddress, type RedisAccess } from './connection.js'
import { HostLink } from './host-link.js'
import { workersChannel } from './job-keys.js'
import { aQueueName, DEFAULT_LOCK_MS, DEFAULT_PREFIX, lockTimes } from './queue-settings.js'
import { followRun } from './remote-run.js'
import { interruptedError } from './wire.js'

/** How long a task may take to be sent, in ms. */
const DEFAULT_SEND_TIMEOUT_MS = 10_000

/** Options of `bullmqRunner`. */
export interface BullmqRunnerOptions extends RedisAccess {
  /** The name of the queue. Workers with a subagent of this name run its tasks. */
  readonly queue: string
  /** The time limit for Redis to accept a task, in ms. After it the launch fails, and a late request has no effect. Default 10000. */
  readonly sendTimeoutMs?: number
  /** The time after a worker's death until its tasks fail or are run again, in ms. Workers must use the same value. Default 15000. */
  readonly lockMs?: number
  /** Whether the subagent on the workers reads `context.messages`. Default false: messages to its tasks are refused. */
  readonly takesMessages?: boolean
  /** The prefix of BullMQ's keys; the same at the workers. Default `bull`. */
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
 * Creates a runner whose tasks are run by workers (`startWorker`, `agent-tasks worker`), as jobs of BullMQ.
 *
 * Give the host a store, so that after a crash the next process finds the jobs again. Without a store the jobs continue, but their results are not
 * read. A worker that dies fails its task with `INTERRUPTED`, unless the subagent has `retry: { on: ['interrupted'] }`.
 * @throws InvalidInputError for an invalid option, or for a Redis without a password that other machines can reach
 */
export function bullmqRunner(options: BullmqRunnerOptions): OutputRunner {
  checkOptions(options, optionTypes)
  const { queue, prefix = DEFAULT_PREFIX, log = (line) => console.error(line), takesMessages = false } = options
  const { sendTimeoutMs = DEFAULT_SEND_TIMEOUT_MS, lockMs = DEFAULT_LOCK_MS } = options
  const name = { prefix, queue }
  const address = toRedisAddress(options)
  const link = new HostLink({ address, name, sendTimeoutMs, lookMs: lockTimes(lockMs).stalledInterval, log })
  return {
    run: (input, context) => {
      const { durability } = context
      const key = durability?.key ?? (durability?.isResumed === true ? undefined : globalThis.crypto.randomUUID())
      if (key === undefined) {
        throw interruptedError('Another kind of runner had started this task, and its end is not known.')
      }
      const jobId = `${key}-${context.attempt}`
      return followRun({ link, jobId, workers: workersChannel(name), input, context, log })
    },
    survivesHost: true,
    takesMessages,
    whyNotContinue: () => 'its run was on a worker, which keeps no session',
  }
}
