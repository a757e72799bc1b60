/** What hosts and workers of one queue must agree on. */
import type { OptionType } from '../protocol/option-checks.js'

/** How long after the death of a worker its tasks are given up, in ms. */
export const DEFAULT_LOCK_MS = 15_000

/** BullMQ's own: what dashboards look for. */
export const DEFAULT_PREFIX = 'bull'

/** The name of a queue. */
export const aQueueName: OptionType = {
  expected: "the name of a queue: at least 1 character, and no ':'",
  accepts: (value) => typeof value === 'string' && value !== '' && !value.includes(':'),
}

/** The parts of `lockMs`: a lock that nobody renews ends, is found at the next look, and its task has failed before all of it has passed. */
export function lockTimes(lockMs: number) {
  const lockDuration = Math.ceil((lockMs * 2) / 3)
  return {
    /** How long a worker that is silent has its jobs. */
    lockDuration,
    /** How often workers, and hosts, look for jobs that nobody has. */
    stalledInterval: Math.ceil(lockMs / 6),
    /** How often a worker looks for what it was not told, such as a cancellation. */
    pollMs: Math.ceil(lockDuration / 2),
  }
}
