/** The abort reasons for runs of tasks that have reached a limit. */
import { BUDGET_EXCEEDED, timeoutMessage } from '../../../machines/async-task.js'
import type { AsyncTaskInfo } from '../../../machines/records.js'

/**
 * Returns the abort reason for a run whose task has reached a limit.
 * @param excess the exceeded budget, in words; undefined if the timeout has passed
 */
export const stopReason = ({ timeoutMs = 0 }: AsyncTaskInfo, excess: string | undefined): Error =>
  excess === undefined
    ? Object.assign(new Error(timeoutMessage(timeoutMs)), { name: 'TimeoutError' })
    : excessError(excess)

/**
 * Returns the abort reason for a run that has exceeded a budget.
 * @param excess the exceeded budget, in words
 */
export const excessError = (excess: string): Error =>
  Object.assign(new Error(excess), { name: 'BudgetExceededError', code: BUDGET_EXCEEDED })
