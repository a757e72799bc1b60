/** What the run of a task that has reached a limit is aborted with. */
import { BUDGET_EXCEEDED, timeoutMessage } from '../../../machines/async-task.js'
import type { AsyncTaskInfo } from '../../../machines/records.js'

/** The reason that the run of a task which has reached a limit is aborted with. @param excess the budget that was exceeded, in words */
export const stopReason = ({ timeoutMs = 0 }: AsyncTaskInfo, excess: string | undefined): Error =>
  excess === undefined
    ? Object.assign(new Error(timeoutMessage(timeoutMs)), { name: 'TimeoutError' })
    : excessError(excess)

/** The reason of a run that has exceeded a budget. @param excess the budget, in words */
export const excessError = (excess: string): Error =>
  Object.assign(new Error(excess), { name: 'BudgetExceededError', code: BUDGET_EXCEEDED })
