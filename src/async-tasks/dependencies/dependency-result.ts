/** The results of other tasks that a run receives (promise F15). */
import type { AsyncTaskInfo, SettledTaskInfo, TaskFailure } from '../../../machines/records.js'
import type { DependencyResult } from '../../engine/runner.js'
import { jsonBytes } from '../../json/json-size.js'
import { toOneLine } from '../../text/control-characters.js'
import { cutText } from '../../text/cut-text.js'
import { defined } from '../../defined.js'
import { boundNotification } from '../delivery/notifications.js'
import { maxWholeChars, previewText } from '../output/bounded-text.js'
import { taskName } from '../task-name.js'

/** The minimum of `resultChars`, in characters, however many results there are. */
const MIN_CHARS = 200

/** The maximum length of another task's error when it is quoted in the error of the waiting task, in characters. */
const ERROR_CHARS = 500

/** The maximum length of one result, in characters: all results together may be as long as one message. */
export const resultChars = (count: number): number => Math.max(MIN_CHARS, Math.floor(maxWholeChars(0) / count))

/** Converts the end of a task for the run that waited for it. Long texts are shortened as in a message. */
export function toDependencyResult(task: SettledTaskInfo, maxChars: number): DependencyResult {
  switch (task.status) {
    case 'completed': {
      if (jsonBytes(task.output, maxChars) <= maxChars) return { status: 'completed', output: task.output }
      const { text } = boundNotification(task, maxChars)
      return { status: 'completed', output: { final_message: text }, isCut: true }
    }
    case 'failed': {
      const error = cutText(task.error, maxChars)
      const isCut = error.length < task.error.length
      return { status: 'failed', error, ...defined({ errorCode: task.errorCode }), ...(isCut && { isCut }) }
    }
    case 'cancelled':
      return { status: 'cancelled', ...defined({ cancelReason: task.cancelReason }) }
  }
}

export const LOST_RESULT: DependencyResult = Object.freeze({
  status: 'failed',
  error: 'The result of this task is unknown, because its record was not in the store after a restart.',
})

const DEPENDENCY_FAILED = 'DEPENDENCY_FAILED'

export function dependencyFailure(
  id: string,
  { status, error }: DependencyResult,
  task: AsyncTaskInfo | undefined,
): TaskFailure {
  const name = task === undefined ? '' : ` (${taskName(task)})`
  const end = status === 'cancelled' ? 'was cancelled' : 'has failed'
  const why = error === undefined ? '.' : `: ${previewText(error, ERROR_CHARS)}`
  return {
    error: `The task was not started, because task ${toOneLine(id)}${name}, which had to end first, ${end}${why}`,
    errorCode: DEPENDENCY_FAILED,
  }
}
