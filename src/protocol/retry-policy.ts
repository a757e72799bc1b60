/** When a task is run again. */
import { integerFrom, listOf, optionsOf, required, type OptionType } from './option-checks.js'

/** Why the run of a task may have to be repeated. `interrupted`: the process that ran it has ended. */
export type RetryReason = 'interrupted'

/** All of them. */
export const RETRY_REASONS = ['interrupted'] as const satisfies readonly RetryReason[]

/** When a task is run again instead of failing. */
export interface RetryPolicy {
  /** How many runs a task may have in all, the first one included: an integer >= 1. */
  readonly attempts: number
  /** What is repeated; anything else fails the task. */
  readonly on: readonly RetryReason[]
}

const aRetryReason: OptionType = {
  expected: RETRY_REASONS.map((reason) => `'${reason}'`).join(' or '),
  accepts: (value) => RETRY_REASONS.some((reason) => reason === value),
}

export const aRetryPolicy = optionsOf<RetryPolicy>({
  attempts: required(integerFrom(1)),
  on: required(listOf(aRetryReason)),
})
