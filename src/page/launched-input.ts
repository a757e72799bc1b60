/** What is needed to launch a task again, besides its record. */
import type { LaunchedTask } from '../async-tasks/run-plan.js'
import { defined } from '../defined.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'

/** The input of a task, without the fields that its record contains. */
export type FurtherInput = Pick<LaunchTaskInput, 'params' | 'retry' | 'priority' | 'whenFull' | 'graceMs'>

export function furtherOf({ input, params }: LaunchedTask): FurtherInput {
  const { retry, priority, whenFull, graceMs } = input
  return defined({ params, retry, priority, whenFull, graceMs })
}
