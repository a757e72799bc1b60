/**
 * The fields of a command in details of a task, and the last line of its output in lists. The line is shown as JSON text, so that it cannot imitate
 * another line of the list.
 */
import { outputLogs } from '../features/output/output-log.js'
import type { AsyncTaskInfo } from '../../machines/records.js'
import { isTerminal } from '../../machines/task-entry.js'
import { tailOf } from '../features/output/output-tail.js'
import { previewText } from '../features/output/bounded-text.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { TaskView } from './task-view.js'

/** The fields of a command: what runs, how it ended, and the end of its output. */
const LINE_CHARS = 80

/** The fields of a command, with the end of its output. A running program that is being stopped has them, too. */
export function commandDetails(view: TaskView, task: AsyncTaskInfo): Readonly<Record<string, unknown>> {
  const { kind, command, pid, exitCode, signal, endedProcesses } = task
  const outputTail = isTerminal(task) ? task.outputTail : writtenTail(view, task)
  return {
    ...(kind !== undefined && { kind, command }),
    ...omitUndefined({ pid, exitCode, signal, endedProcesses, outputTail }),
  }
}

/** The last output line of a command, for a list; `''` for any other task. */
export function lastLineOf(view: TaskView, task: AsyncTaskInfo): string {
  if (task.kind === undefined) return ''
  const line = (writtenTail(view, task) ?? '').split('\n').at(-1) ?? ''
  return line === '' ? '' : ` - output: ${JSON.stringify(previewText(line, LINE_CHARS))}`
}

function writtenTail({ manager: { reads } }: TaskView, task: AsyncTaskInfo): string | undefined {
  if (task.kind === undefined || task.outputTail !== undefined) return task.outputTail
  const entry = reads.history.get(task.id)
  const log = entry && outputLogs.get(entry)
  const tail = log === undefined ? '' : tailOf(log)
  return tail === '' ? undefined : tail
}
