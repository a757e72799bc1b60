/** The progress reports of runs and hosts. */
import { holdsSlot } from '../../../machines/task-status.js'
import type { TaskProgress } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { InvalidInputError } from '../../errors.js'
import { progressSchema } from '../../protocol/async-tasks.js'
import { notifyFollowers } from './output-stream.js'
import type { TaskRegistry } from '../registry.js'
import { taskEvents } from '../task-events.js'

/**
 * Records and emits the progress of a running task.
 * @returns false if the task is not running, or if the progress is malformed
 */
export function reportProgress(registry: TaskRegistry, entry: TaskEntry, progress: number | TaskProgress): boolean {
  if (!holdsSlot(entry.record.status)) return false
  const given = typeof progress === 'number' ? { progress } : progress
  const checked = progressSchema().safeParse(given)
  if (!checked.success) {
    const expected = 'a finite number, or { progress, total?, message? }'
    const error = new InvalidInputError('progress', progress, expected)
    registry.report(error, { source: 'progress', taskId: entry.record.id })
    return false
  }
  const reported = Object.freeze(checked.data) as TaskProgress
  registry.send({ type: 'task.note', entry, fields: { progress: reported } })
  registry.use(taskEvents).emitProgress(entry.record, reported)
  notifyFollowers(entry)
  return true
}
