/** The text about one ended task: whole, and cut to the maximum length of a message. */
import type { AsyncTaskInfo, FailedTaskInfo } from '../../machines/records.js'
import { boundText, type BoundedText } from './bounded-text.js'

/** The whole text about one ended task, with the fields of a synchronous task's result; `''` for a running task. */
export function formatCompletionNotification(task: AsyncTaskInfo): string {
  switch (task.status) {
    case 'completed': {
      const { terminate_reason, emitted_vars, final_message } = task.output
      const payload = { agent_id: task.id, terminate_reason, emitted_vars: emitted_vars ?? {} }
      return JSON.stringify(final_message === undefined ? payload : { ...payload, final_message }, null, 2)
    }
    case 'failed':
      return JSON.stringify(failurePayload(task), null, 2)
    case 'cancelled':
      return JSON.stringify({ agent_id: task.id, status: 'cancelled' }, null, 2)
    case 'running':
      return ''
  }
}

/** The name and code of the error tell a model what its message may not. */
function failurePayload({ id, error, errorName, errorCode }: FailedTaskInfo): object {
  return {
    ...{ agent_id: id, status: 'failed', error },
    ...(errorName !== undefined && { error_name: errorName }),
    ...(errorCode !== undefined && { error_code: errorCode }),
  }
}

/** A task's notification of at most `maxChars` characters; if it is cut, it says how to read the rest. */
export function boundNotification(task: AsyncTaskInfo, maxChars: number): BoundedText {
  return boundText(formatCompletionNotification(task), maxChars, { task_id: task.id, action: 'output', part: 'result' })
}
