/** How the record of a task is stored. */
import { RECORD_FIELDS, UNPRUNED_FIELDS, UNSTORED_FIELDS, type RecordField } from '../../../machines/record-fields.js'
import type { AsyncTaskInfo } from '../../../machines/records.js'
import { withoutFields } from '../../../machines/task-record.js'
import { cutText } from '../../data/cut-text.js'
import { jsonBytes } from '../../data/json-size.js'
import type { StoredJson } from '../../store/store.js'
import { hasSucceeded } from '../../../machines/task-status.js'

/** The maximum size of a record, in bytes of JSON. A larger record is stored without its output. */
const MAX_RECORD_BYTES = 64 * 1024 * 1024

const TOO_LARGE = `The output was too large to be stored: more than ${MAX_RECORD_BYTES} bytes.`

const UNSTORABLE = 'The output was lost, because the store could not hold it.'

/**
 * Returns the record for the store. It lacks the parts that end with this process, such as the controller. If it is larger than `MAX_RECORD_BYTES`, a
 * remark takes the place of the output, because the write would never succeed.
 */
export function storedRecord(task: AsyncTaskInfo): StoredJson {
  const record: StoredJson = withoutFields(task, UNSTORED_FIELDS)
  if (jsonBytes(record, MAX_RECORD_BYTES) <= MAX_RECORD_BYTES) return record
  const { output, lateOutput: _late, ...fields } = record
  return output === undefined ? fields : { ...fields, output: { final_message: TOO_LARGE } }
}

/** The maximum length of a text in a reduced record, in UTF-16 units. */
const REDUCED_CHARS = 1000

/** Returns the numbers and short texts of a record that cannot be stored in full. A remark takes the place of the output. */
export function reducedRecord(record: AsyncTaskInfo): StoredJson {
  const { status } = record
  const fields = Object.entries(withoutFields(record, UNSTORED_FIELDS)).flatMap(([name, value]: [string, unknown]) => {
    if (typeof value === 'string') return [[name, isName(name) ? value : cutText(value, REDUCED_CHARS)]]
    return (typeof value === 'number' && Number.isFinite(value)) || typeof value === 'boolean' ? [[name, value]] : []
  })
  return {
    ...(Object.fromEntries(fields) as StoredJson),
    ...(hasSucceeded(status) && { output: { final_message: UNSTORABLE } }),
  }
}

/** Whether other records refer to a task by this field. Such a field is not shortened. */
const isName = (name: string): boolean => ['name', 'owner'].includes(RECORD_FIELDS[name as RecordField].kind)

/** The maximum size of a task in the history, in bytes of JSON. Of a larger task, only `resultChars` UTF-16 units of the result are kept. */
const PAST = { bytes: 256 * 1024, resultChars: 50_000 } as const

/** Returns the params that the history keeps with a record; null if both together are too large. */
export function pastParams(record: StoredJson, params: StoredJson | null | undefined): StoredJson | null | undefined {
  if (params === undefined || params === null) return params
  return jsonBytes([record, params], PAST.bytes) <= PAST.bytes ? params : null
}

/** Returns the record for the history. */
export function pastRecord(task: AsyncTaskInfo): StoredJson {
  const record = withoutFields(task, UNPRUNED_FIELDS) as AsyncTaskInfo
  const whole = storedRecord(record)
  if (jsonBytes(whole, PAST.bytes) <= PAST.bytes) return whole
  const message: unknown = record.output?.final_message
  return {
    ...reducedRecord(record),
    ...(typeof message === 'string' && { output: { final_message: cutText(message, PAST.resultChars) } }),
  }
}
