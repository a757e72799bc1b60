/** The abort reasons for runs of tasks that have reached a limit. */
import { BUDGET_EXCEEDED, timeoutMessage } from '../../../machines/async-task.js'
import type { TaskEntry } from '../../../machines/task-entry.js'

/** Returns the abort reason for a run whose task has reached a limit. Without `excess`, its timeout has passed. */
export const stopReason = (entry: TaskEntry, excess: string | undefined): Error =>
  excess === undefined
    ? Object.assign(new Error(timeoutMessage(entry.record.timeoutMs ?? 0)), { name: 'TimeoutError' })
    : excessError(entry, excess)

/** Returns the abort reason for a run that has exceeded a budget, or a limit of a feature. `excess` says which, in words. */
export function excessError({ ref }: TaskEntry, excess: string): Error {
  const code = ref?.getSnapshot().context.excessCode ?? BUDGET_EXCEEDED
  const name = code === BUDGET_EXCEEDED ? 'BudgetExceededError' : 'TimeoutError'
  return Object.assign(new Error(excess), { name, code })
}
