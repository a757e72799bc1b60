/** What is needed to launch a task again, besides its record. */
import type { LaunchedTask } from '../async-tasks/run-plan.js'
import { defined } from '../defined.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'

/** What a task was launched with, as far as its record does not say so. */
export type FurtherInput = Pick<LaunchTaskInput, 'params' | 'retry' | 'priority' | 'whenFull' | 'graceMs'>

export function furtherOf({ input, params }: LaunchedTask): FurtherInput {
  const { retry, priority, whenFull, graceMs } = input
  return defined({ params, retry, priority, whenFull, graceMs })
}
