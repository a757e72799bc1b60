/** The reports of runs and hosts. Each sets a field of the record while the task runs. */
import type { ReportedField } from '../../../machines/record-fields.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { holdsSlot } from '../../../machines/task-status.js'
import { taskEvents } from '../../async-tasks/task-events.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { InvalidInputError } from '../../errors.js'
import { describeIssue } from '../../protocol/parse.js'
import { schemaOf } from '../../protocol/record-fields.js'
import { notifyOfReport } from './output-stream.js'

/** The short forms in which a field may be reported, and the text that names both forms. */
const SHORT_FORMS: Partial<Record<ReportedField, { toValue: (given: unknown) => unknown; expected: string }>> = {
  progress: {
    toValue: (given) => (typeof given === 'number' ? { progress: given } : given),
    expected: 'a finite number, or { progress, total?, message? }',
  },
}

/**
 * Records and emits what a running task reports.
 * @returns false if the task is not running, or if the value is malformed
 */
export function reportField(registry: TaskRegistry, entry: TaskEntry, field: ReportedField, given: unknown): boolean {
  if (!holdsSlot(entry.record.status)) return false
  const short = SHORT_FORMS[field]
  const value = short === undefined ? given : short.toValue(given)
  const { data, error } = schemaOf(field).safeParse(value)
  if (error !== undefined) {
    const { expected } = short ?? describeIssue(error, value, field)
    registry.report(new InvalidInputError(field, given, expected), { source: 'progress', taskId: entry.record.id })
    return false
  }
  registry.send({ type: 'task.note', entry, fields: { [field]: data } })
  registry.use(taskEvents).emitReport(entry.record, field)
  notifyOfReport(registry, entry)
  return true
}
