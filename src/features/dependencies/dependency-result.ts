/** The results of other tasks that a run receives (promise F15). */
import type { AsyncTaskInfo, SettledTaskInfo, TaskFailure } from '../../../machines/records.js'
import type { DependencyResult } from '../../engine/runner.js'
import { jsonBytes } from '../../data/json-size.js'
import { toOneLine } from '../../data/control-characters.js'
import { cutText } from '../../data/cut-text.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { boundNotification } from '../delivery/notifications.js'
import { maxWholeChars, previewText } from '../output/bounded-text.js'
import { taskName } from '../../async-tasks/task-name.js'
import { endedAs, wasStopped } from '../../../machines/task-status.js'

/** The minimum of `resultChars`, in characters, however many results there are. */
const MIN_CHARS = 200

/** The maximum length of another task's error when it is quoted in the error of the waiting task, in characters. */
const ERROR_CHARS = 500

/** The maximum length of one result, in characters: all results together may be as long as one message. */
export const resultChars = (count: number): number => Math.max(MIN_CHARS, Math.floor(maxWholeChars(0) / count))

/** Converts the end of a task for the run that waited for it. Long texts are shortened as in a message. */
export function toDependencyResult(task: SettledTaskInfo, maxChars: number): DependencyResult {
  const { status } = task
  if (endedAs(task, 'succeeded')) {
    if (jsonBytes(task.output, maxChars) <= maxChars) return { status, output: task.output }
    const { text } = boundNotification(task, maxChars)
    return { status, output: { final_message: text }, isCut: true }
  }
  if (endedAs(task, 'stopped')) return { status, ...omitUndefined({ cancelReason: task.cancelReason }) }
  const error = cutText(task.error, maxChars)
  const isCut = error.length < task.error.length
  return { status, error, ...omitUndefined({ errorCode: task.errorCode }), ...(isCut && { isCut }) }
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
  const end = wasStopped(status) ? 'was cancelled' : 'has failed'
  const why = error === undefined ? '.' : `: ${previewText(error, ERROR_CHARS)}`
  return {
    error: `The task was not started, because task ${toOneLine(id)}${name}, which had to end first, ${end}${why}`,
    errorCode: DEPENDENCY_FAILED,
  }
}
