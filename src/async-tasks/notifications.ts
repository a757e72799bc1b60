/** The text about one ended task: whole, and cut to the maximum length of a message. */
import type {
  AsyncTaskInfo,
  CompletedTaskInfo,
  FailedTaskInfo,
  OutputObject,
  SettledTaskInfo,
} from '../../machines/records.js'
import { toJsonText } from '../protocol/json-text.js'
import { boundText, type BoundedText } from './bounded-text.js'

/**
 * The whole text about one ended task, with the fields of a synchronous task's result; `''` for a task that has not ended. Of more than ten million
 * characters the rest is left out in words.
 */
export function formatCompletionNotification(task: AsyncTaskInfo): string {
  const payload = payloadOf(task)
  if (payload === undefined) return ''
  const text = toJsonText(payload, { indent: 2 })
  return task.isRepeat === true ? `${POSSIBLE_REPEAT}\n${text}` : text
}

/** Marks a result that may have been delivered before. */
export const POSSIBLE_REPEAT =
  'possible repeat: this result may have been delivered before; the process ended before it could know.'

function payloadOf(task: AsyncTaskInfo): object | undefined {
  switch (task.status) {
    case 'completed':
      return { agent_id: task.id, ...shownOutput(task.output), ...shownChildren(task), ...spentOf(task) }
    case 'failed':
      return failurePayload(task)
    case 'cancelled':
      return {
        agent_id: task.id,
        status: 'cancelled',
        ...(task.cancelReason !== undefined && { reason: task.cancelReason }),
        ...spentOf(task),
      }
    case 'queued':
    case 'running':
      return undefined
  }
}

/** The name and code of the error tell a model what its message may not. */
function failurePayload(task: FailedTaskInfo): object {
  const { id, error, errorName, errorCode, lateOutput, attempt } = task
  return {
    ...{ agent_id: id, status: 'failed', error },
    ...(errorName !== undefined && { error_name: errorName }),
    ...(errorCode !== undefined && { error_code: errorCode }),
    ...(lateOutput !== undefined && { late_output: shownOutput(lateOutput) }),
    ...(attempt !== undefined && { attempt }),
    ...shownChildren(task),
    ...spentOf(task),
  }
}

const spentOf = ({ spent }: Pick<AsyncTaskInfo, 'spent'>): object | undefined => spent && { spent }

/** The tasks that it launched and that go on: their results come in messages of their own. */
function shownChildren({ runningChildren }: CompletedTaskInfo | FailedTaskInfo): object {
  return runningChildren === undefined ? {} : { running_children: runningChildren }
}

/** The known fields first. The others have a field of their own: they cannot pass for the status or the id. */
function shownOutput(output: OutputObject): object {
  const { terminate_reason, emitted_vars, final_message, ...others } = output
  return {
    terminate_reason,
    emitted_vars: emitted_vars ?? {},
    ...(final_message !== undefined && { final_message }),
    ...(Object.keys(others).length > 0 && { other_fields: others }),
  }
}

/**
 * A task's notification of at most `maxChars` characters; if it is cut, it says how to read the rest.
 * @param room the maximum length with that notice; default: that of a whole message
 */
export function boundNotification(task: AsyncTaskInfo, maxChars: number, room?: number): BoundedText {
  const reading = { task_id: task.id, action: 'output', part: 'result' }
  return boundText(formatCompletionNotification(task), maxChars, reading, room)
}

/** One of several notifications in a message. */
export interface FittingNotification extends BoundedText {
  readonly task: SettledTaskInfo
}

/** The length of the line breaks between two parts of a message. */
const SEPARATOR_CHARS = 2

/** The notifications of the first of these tasks: as many as fit into `room` characters, and at least one. */
export function fittingNotifications(
  tasks: readonly SettledTaskInfo[],
  maxChars: number,
  room: number,
): FittingNotification[] {
  const fitting: FittingNotification[] = []
  let left = room
  for (const task of tasks) {
    const notification = boundNotification(task, maxChars, room - SEPARATOR_CHARS)
    left -= notification.text.length + SEPARATOR_CHARS
    if (left < 0) break
    fitting.push({ task, ...notification })
  }
  return fitting
}
