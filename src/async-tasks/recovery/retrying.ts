/** Decides whether and when a failed run is retried (promise F9). */
import type { Outcome } from '../../engine/engine.js'
import { readField } from '../../protocol/outcomes.js'
import { MAX_FRUITLESS } from '../../features/steps/interruptions.js'
import { backoffMs, type RetryPolicy, type RetryReason } from '../../protocol/retry-policy.js'

/** The maximum wait that a run may request with `retryAfterMs`, in ms (one day). */
const MAX_RETRY_AFTER_MS = 86_400_000

export interface FailedRun {
  readonly outcome: Outcome
  readonly attempt: number
  readonly couldNotStart: boolean
  /** Whether the run was still running at its deadline. */
  readonly isOverdue: boolean
  /** Whether the run was stopped because a budget was exceeded. It is not retried then. */
  readonly isOverBudget: boolean
  /** How many times in a row the run was stopped because its process was closed. 0 if it has failed otherwise. Stops use up no attempt (promise K13). */
  readonly stops: number
}

/** Whether a run was interrupted from outside, and did not fail by itself. */
export const isInterruption = (outcome: Outcome): boolean =>
  outcome.type === 'threw' && readField(outcome.reason, 'code') === 'INTERRUPTED'

/** Whether the run was stopped because its process was closed: a worker, as the host of the task still lives. */
export const isStop = (outcome: Outcome): boolean =>
  isInterruption(outcome) && outcome.type === 'threw' && readField(outcome.reason, 'wasSuspended') === true

/** Returns how long to wait before the next run of a task, in ms. Returns undefined if the task is not run again. */
export function retryDelay(policy: RetryPolicy | undefined, taskId: string, run: FailedRun): number | undefined {
  if (policy === undefined || run.isOverBudget) return undefined
  if (run.stops === 0 ? run.attempt >= policy.attempts : run.stops >= MAX_FRUITLESS) return undefined
  const reason = reasonOf(policy, run)
  if (reason === undefined || !policy.on.includes(reason)) return undefined
  if (run.stops > 0) return 0
  const asked = reason === 'rate-limited' && run.outcome.type === 'threw' ? waitAsked(run.outcome.reason) : 0
  return backoffMs(policy.backoff, run.attempt, taskId, Math.min(asked, MAX_RETRY_AFTER_MS))
}

function reasonOf(policy: RetryPolicy, { outcome, isOverdue, couldNotStart }: FailedRun): RetryReason | undefined {
  // An abandoned run did not stop in time and may still be working, so another run would work at the same time.
  if (outcome.type === 'abandoned') return undefined
  if (isOverdue) return 'timeout'
  if (couldNotStart) return 'start-failed'
  if (outcome.type !== 'threw') return undefined
  const { reason } = outcome
  const code = readField(reason, 'code')
  if (code === 'RATE_LIMITED' || [429, '429'].some((status) => status === readField(reason, 'status'))) {
    return 'rate-limited'
  }
  if (code === 'INTERRUPTED') return 'interrupted'
  if (code === 'PROCESS_NOT_STARTED' || code === 'START_FAILED') return 'start-failed'
  if (code === 'AGENT_FAILED' && policy.on.includes('agent-error')) return 'agent-error'
  const exitCode = readField(reason, 'exitCode')
  if (typeof exitCode !== 'number' || exitCode === 0) return code === 'AGENT_FAILED' ? undefined : 'error'
  return policy.exitCodes?.includes(exitCode) === false ? undefined : 'exit-code'
}

function waitAsked(reason: unknown): number {
  const asked = readField(reason, 'retryAfterMs')
  return typeof asked === 'number' && asked > 0 ? asked : 0
}
