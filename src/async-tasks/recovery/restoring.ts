/** Converts the records of an earlier process to records for a new registry. */
import { hasEnded, hasSucceeded, type TerminalStatus, wasStopped } from '../../../machines/task-status.js'
import { z } from 'zod'
import { lazily } from '../../protocol/lazily.js'
import type { AsyncTaskInfo, DeliveryStatus } from '../../../machines/records.js'
import { InvalidInputError } from '../../errors.js'
import { restorableRecordSchema, type RestorableRecord } from '../../protocol/record-fields.js'
import { parseInput } from '../../protocol/parse.js'
import { taskName } from '../task-name.js'
import { toOutput } from '../../protocol/outcomes.js'

/** The error code of a task whose run died with its process. */
export const INTERRUPTED = 'INTERRUPTED'

/** The error of a task that was active when its process ended. */
export const interruption = (task: Pick<AsyncTaskInfo, 'subagentName' | 'goalPrompt'>): string =>
  `The process that ran this task (${taskName(task)}) ended before the task did. Launch it again if its result is still needed.`

const recordsSchema = lazily(() => z.array(restorableRecordSchema()))

/** Validates and freezes the records. Returns them in the order in which the tasks ended. */
export function toRestoredRecords(records: readonly RestorableRecord[], now: number): AsyncTaskInfo[] {
  const checked = parseInput(recordsSchema(), records, 'records')
  const ids = new Set<string>()
  checked.forEach((record, index) => {
    if (ids.has(record.id)) {
      throw new InvalidInputError(`records[${index}].id`, record.id, 'an id that no earlier record has')
    }
    ids.add(record.id)
  })
  let seq = checked.reduce((highest, record) => Math.max(highest, record.seq ?? 0), 0)
  const ended = checked.filter((record) => hasEnded(record.status))
  const lost = checked.filter((record) => !hasEnded(record.status))
  const order = (record: (typeof checked)[number]): number => record.seq ?? record.completedAt ?? record.launchedAt
  return [...ended.sort((a, b) => order(a) - order(b)), ...lost].map((record) => {
    const { status, output, error, lateOutput, completedAt = now, delivery, seq: known, ...fields } = record
    const isLost = !hasEnded(status)
    const failure = {
      error: error ?? (isLost ? interruption(record) : 'The task failed.'),
      ...(isLost && { errorCode: INTERRUPTED }),
      ...(lateOutput !== undefined && { lateOutput: toOutput(lateOutput) }),
    }
    return Object.freeze({
      ...fields,
      status: isLost ? 'failed' : status,
      completedAt,
      seq: isLost || known === undefined ? ++seq : known,
      delivery: isLost ? 'owed' : restoredDelivery(status, delivery, fields.notifiedAt),
      ...(hasSucceeded(status) ? { output: toOutput(output) } : isLost || !wasStopped(status) ? failure : {}),
    })
  }) as AsyncTaskInfo[]
}

function restoredDelivery(
  status: TerminalStatus,
  delivery: DeliveryStatus | undefined,
  notifiedAt: number | undefined,
): DeliveryStatus {
  if (delivery === 'leased') return 'owed'
  if (delivery !== undefined) return delivery
  if (notifiedAt !== undefined) return 'delivered'
  return wasStopped(status) ? 'none' : 'owed'
}
