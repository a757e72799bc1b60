/** The data that is needed to launch a task again, in addition to the task's record. */
import type { LaunchedTask } from '../async-tasks/run-plan.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import type { KeptParams } from '../protocol/run-fields.js'

/** The launch input of a task, without the fields that the task's record has. */
export interface FurtherInput extends Pick<LaunchTaskInput, 'retry' | 'priority' | 'whenFull' | 'graceMs'> {
  readonly params?: KeptParams
}

export function furtherOf({ input, params }: LaunchedTask): FurtherInput {
  const { retry, priority, whenFull, graceMs } = input
  return omitUndefined({ params, retry, priority, whenFull, graceMs })
}
