/** Retry policies: when a task runs again. */
import {
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
 */
export type RetryReason = 'interrupted' | 'start-failed' | 'exit-code' | 'timeout' | 'rate-limited' | 'agent-error'

export const RETRY_REASONS = [
  'interrupted',
  'start-failed',
  'exit-code',
  'timeout',
  'rate-limited',
  'agent-error',
] as const satisfies readonly RetryReason[]

/** The waits between runs. The first is `initialMs`. Each later one is `factor` times as long as the one before, at most `maxMs`. */
export interface RetryBackoff {
  /** The wait before the second run, in ms. Default 1000. */
  readonly initialMs?: number | undefined
  /** The maximum wait, in ms. Default 60000. */
  readonly maxMs?: number | undefined
  /** Each wait is the previous wait times this number (>= 1). Default 2. */
  readonly factor?: number | undefined
}

/** When a task runs again instead of failing. */
export interface RetryPolicy {
  /** The maximum number of runs, including the first: an integer >= 1. */
  readonly attempts: number
  /** The failures after which the task runs again. Any other failure ends it. */
  readonly on: readonly RetryReason[]
  /** The waits between runs. A run that fails with a rate limit can report `retryAfterMs`; then the next wait is at least that long. */
  readonly backoff?: RetryBackoff | undefined
  /** The exit codes that count as `exit-code`. Default: every code except 0. */
  readonly exitCodes?: readonly number[] | undefined
}

/** The type of the option `backoff`, of steps and of runs. */
export const backoffTypes = {
  initialMs: withDefault(numberFrom(0), 1000),
  maxMs: withDefault(numberFrom(0), 60_000),
  factor: withDefault(numberFrom(1), 2),
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
 */
export function backoffMs(backoff: RetryBackoff = {}, attempt: number): number {
  const { initialMs, maxMs, factor } = withDefaults(backoff, backoffTypes)
  return initialMs === 0 ? 0 : Math.min(initialMs * factor ** (attempt - 1), maxMs)
}
