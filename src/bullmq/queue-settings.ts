/** The settings that the hosts and workers of a queue must share. */
import { aText } from '../protocol/option-checks.js'

/** The default of `lockMs`: how long after a worker's death its tasks fail, in ms. */
export const DEFAULT_LOCK_MS = 15_000

/** The default of BullMQ, which dashboards expect, too. */
export const DEFAULT_PREFIX = 'bull'

export const aQueueName = aText("the name of a queue: at least 1 character, and no ':'", /^[^:]+$/)

/**
 * Divides `lockMs` into time limits, so that the task of a dead worker fails within `lockMs`: first its lock expires, then the next check finds the
 * job.
 */
export function lockTimes(lockMs: number) {
  const lockDuration = Math.ceil((lockMs * 2) / 3)
  return {
    /** How long the lock of a worker lasts after its last renewal, in ms. */
    lockDuration,
    /** The interval at which workers and hosts look for jobs of dead workers, in ms. */
    stalledInterval: Math.ceil(lockMs / 6),
    /** The interval at which a worker reads what its hosts have sent, such as a cancellation, in ms. A pub/sub message normally announces it earlier. */
    pollMs: Math.ceil(lockDuration / 2),
  }
}
