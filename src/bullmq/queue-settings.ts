/** The settings that the hosts and workers of a queue must share. */
import type { OptionType } from '../protocol/option-checks.js'

/** The default of `lockMs`: the time after a worker's death until its tasks are given up, in ms. */
export const DEFAULT_LOCK_MS = 15_000

/** BullMQ's own default, which dashboards expect. */
export const DEFAULT_PREFIX = 'bull'

/** The name of a queue. */
export const aQueueName: OptionType = {
  expected: "the name of a queue: at least 1 character, and no ':'",
  accepts: (value) => typeof value === 'string' && value !== '' && !value.includes(':'),
}

/** Splits `lockMs` into its parts: the lock expires, the next check finds it, and the task has failed before `lockMs` is over. */
export function lockTimes(lockMs: number) {
  const lockDuration = Math.ceil((lockMs * 2) / 3)
  return {
    /** How long the lock of a silent worker lasts, in ms. */
    lockDuration,
    /** The interval at which workers and hosts check for jobs of dead workers, in ms. */
    stalledInterval: Math.ceil(lockMs / 6),
    /** The interval at which a worker polls for news that a hint did not announce, such as a cancellation, in ms. */
    pollMs: Math.ceil(lockDuration / 2),
  }
}
