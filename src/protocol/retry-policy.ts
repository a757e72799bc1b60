/** Retry policies: when a task runs again. */
import {
  aBoolean,
  integerFrom,
  listOf,
  numberFrom,
  oneOf,
  optionsOf,
  required,
  someOf,
  withDefault,
  withDefaults,
  type OptionTypes,
} from './option-checks.js'

/**
 * The reasons for running a task again:
 * - `interrupted`: its process has ended, which only a host with a store finds out, or the run failed with the code `INTERRUPTED`, as that of a lost worker does.
 * - `start-failed`: the run could not be started.
 * - `exit-code`: a program ended with an exit code other than 0.
 * - `timeout`: the deadline passed, and the run stopped within its grace period.
 * - `rate-limited`: the run failed with the code `RATE_LIMITED` or the status 429.
 * - `agent-error`: a coding agent said that it has failed, whatever its exit code (the code `AGENT_FAILED`).
 * - `error`: the run threw an error for which there is no other reason.
 */
export type RetryReason =
  'interrupted' | 'start-failed' | 'exit-code' | 'timeout' | 'rate-limited' | 'agent-error' | 'error'

export const RETRY_REASONS = [
  'interrupted',
  'start-failed',
  'exit-code',
  'timeout',
  'rate-limited',
  'agent-error',
  'error',
] as const satisfies readonly RetryReason[]

/**
 * The waits between runs. The first is `initialMs`. Each later one is `factor` times as long as the one before, at most `maxMs`. With `jitter`, a wait is
 * between half and all of that.
 */
export interface RetryBackoff {
  /** The wait before the second run, in ms. Default 1000. */
  readonly initialMs?: number | undefined
  /** The maximum wait, in ms. Default 60000. */
  readonly maxMs?: number | undefined
  /** Each wait is the previous wait times this number (>= 1). Default 2. */
  readonly factor?: number | undefined
  /**
   * Whether tasks that have failed together wait for different times, so that they do not start together. The difference depends on the id of the task
   * and the number of the run only. Default true.
   */
  readonly jitter?: boolean | undefined
}

/** When a task runs again instead of failing. */
export interface RetryPolicy {
  /** The maximum number of runs, including the first: an integer >= 1. */
  readonly attempts: number
  /** The failures after which the task runs again. Any other failure ends it. */
  readonly on: readonly RetryReason[]
  /** The waits between runs. A run that fails with a rate limit can report `retryAfterMs`; the next wait is not shorter. */
  readonly backoff?: RetryBackoff | undefined
  /** The exit codes that count as `exit-code`. Default: every code except 0. */
  readonly exitCodes?: readonly number[] | undefined
}

/** The type of the option `backoff`, of steps and of runs. */
export const backoffTypes = {
  initialMs: withDefault(numberFrom(0), 1000),
  maxMs: withDefault(numberFrom(0), 60_000),
  factor: withDefault(numberFrom(1), 2),
  jitter: withDefault(aBoolean, true),
} satisfies OptionTypes<RetryBackoff>
export const aBackoff = optionsOf(backoffTypes)

export const aRetryPolicy = optionsOf<RetryPolicy>({
  attempts: required(integerFrom(1)),
  on: required(someOf(oneOf(RETRY_REASONS, `'${RETRY_REASONS.join("' or '")}'`))),
  backoff: aBackoff,
  exitCodes: listOf(integerFrom(1)),
})

/**
 * Returns the wait after a run, in ms.
 * @param attempt the number of that run, from 1
 * @param key what waits. Waits with different keys have different lengths
 * @param leastMs how long the wait is at least
 */
export function backoffMs(backoff: RetryBackoff = {}, attempt: number, key: string, leastMs = 0): number {
  const { initialMs, maxMs, factor, jitter } = withDefaults(backoff, backoffTypes)
  const most = initialMs === 0 ? 0 : Math.min(initialMs * factor ** (attempt - 1), maxMs)
  const spread = jitter ? (most / 2) * shareOf(`${key} ${attempt}`) : 0
  return Math.max(most - spread, leastMs === 0 ? 0 : leastMs + spread)
}

/** A number from 0 to 1 that depends on the text only (FNV-1a). A random number would make runs of tests differ, and those of the race kit. */
function shareOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  // The last characters have an effect on the low bits only.
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return ((hash ^ (hash >>> 13)) >>> 0) / 2 ** 32
}
