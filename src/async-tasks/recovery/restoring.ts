/** Converts the records of an earlier process to records for a new registry. */
import { hasEnded } from '../../../machines/task-status.js'
import { z } from 'zod'
import { defined } from '../../defined.js'
import { lazily } from '../../protocol/lazily.js'
import type { AsyncTaskInfo, DeliveryStatus } from '../../../machines/records.js'

import { InvalidInputError } from '../../errors.js'
import { restorableRecordSchema, type RestorableRecord } from '../../protocol/async-tasks.js'
import { parseInput } from '../../protocol/parse.js'
import { taskName } from '../task-name.js'
import { toOutput } from '../../protocol/outcomes.js'

/** The error code of a task whose run died with its process. */
const INTERRUPTED = 'INTERRUPTED'

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
    const {
      status,
      output,
      error,
      lateOutput,
      completedAt = now,
      delivery,
      notifiedAt,
      progress,
      seq: known,
      ...fields
    } = record
    const isLost = !hasEnded(status)
    const common = {
      ...fields,
      completedAt,
      seq: isLost || known === undefined ? ++seq : known,
      delivery: isLost ? 'owed' : restoredDelivery(status, delivery, notifiedAt),
      ...defined({ notifiedAt }),
      ...(progress !== undefined && { progress: Object.freeze(progress) }),
    }
    if (status === 'completed') return Object.freeze({ ...common, status, output: toOutput(output) })
    if (status === 'cancelled') return Object.freeze({ ...common, status })
    return Object.freeze({
      ...common,
      status: 'failed' as const,
      error: error ?? (isLost ? interruption(record) : 'The task failed.'),
      ...(isLost && { errorCode: INTERRUPTED }),
      ...(lateOutput !== undefined && { lateOutput: toOutput(lateOutput) }),
    })
  }) as AsyncTaskInfo[]
}

function restoredDelivery(
  status: string,
  delivery: DeliveryStatus | undefined,
  notifiedAt: number | undefined,
): DeliveryStatus {
  if (delivery === 'leased') return 'owed'
  if (delivery !== undefined) return delivery
  if (notifiedAt !== undefined) return 'delivered'
  return status === 'cancelled' ? 'none' : 'owed'
}
