/** How the record and the run of a task are stored. */
import type { AsyncTaskInfo } from '../../../machines/records.js'
import { defined } from '../../defined.js'
import { cutText } from '../../text/cut-text.js'
import { jsonBytes } from '../../json/json-size.js'
import type { StoredJson, StoredTask } from '../../store/store.js'

/** The maximum size of a record, in bytes of JSON. A larger record is stored without its output. */
const MAX_RECORD_BYTES = 64 * 1024 * 1024

const TOO_LARGE = `The output was too large to be stored: more than ${MAX_RECORD_BYTES} bytes.`

const UNSTORABLE = 'The output was lost, because the store could not hold it.'

/**
 * Returns what is stored of the run of an ended task: its program, which the next process may have to end, and the params, so that a person can
 * launch the task again.
 */
export function endedRun({ program, params }: StoredJson, isReduced: boolean): Pick<StoredTask, 'run'> {
  const hasParams = params !== undefined && JSON.stringify(params) !== '{}'
  const run = { ...defined({ program }), ...(hasParams && { params: isReduced ? null : params }) }
  return Object.keys(run).length === 0 ? {} : { run }
}

/**
 * Returns the record for the store. It lacks the parts that end with this process, such as the controller. If it is larger than `MAX_RECORD_BYTES`, a
 * remark takes the place of the output, because the write would never succeed.
 */
export function storedRecord({ abortController: _, isForeground: _place, ...record }: AsyncTaskInfo): StoredJson {
  if (jsonBytes(record, MAX_RECORD_BYTES) <= MAX_RECORD_BYTES) return record
  const { output, lateOutput: _late, ...fields }: StoredJson = record
  return output === undefined ? fields : { ...fields, output: { final_message: TOO_LARGE } }
}

/** The maximum length of a text in a reduced record, in UTF-16 units. */
const REDUCED_CHARS = 1000

/** The fields by which other records refer to a record. These fields are not shortened. */
const NAMES: ReadonlySet<string> = new Set(['id', 'owner', 'parentId', 'subagentName'])

/** Returns the numbers and short texts of a record that cannot be stored in full. A remark takes the place of the output. */
export function reducedRecord({ status, isForeground: _, ...record }: AsyncTaskInfo): StoredJson {
  const fields = Object.entries(record).flatMap(([name, value]: [string, unknown]) => {
    if (typeof value === 'string') return [[name, NAMES.has(name) ? value : cutText(value, REDUCED_CHARS)]]
    return (typeof value === 'number' && Number.isFinite(value)) || typeof value === 'boolean' ? [[name, value]] : []
  })
  return {
    ...(Object.fromEntries(fields) as StoredJson),
    status,
    ...(status === 'completed' && { output: { final_message: UNSTORABLE } }),
  }
}

/** The maximum size of a task in the history, in bytes of JSON. Of a larger task, only `resultChars` UTF-16 units of the result are kept. */
const PAST = { bytes: 256 * 1024, resultChars: 50_000 } as const

/** Returns the params that the history keeps with a record; null if both together are too large. */
export function pastParams(record: StoredJson, params: StoredJson | null | undefined): StoredJson | null | undefined {
  if (params === undefined || params === null) return params
  return jsonBytes([record, params], PAST.bytes) <= PAST.bytes ? params : null
}

/** Returns the record for the history. */
export function pastRecord(record: AsyncTaskInfo): StoredJson {
  const whole = storedRecord(record)
  if (jsonBytes(whole, PAST.bytes) <= PAST.bytes) return whole
  const message = record.status === 'completed' ? record.output.final_message : undefined
  return {
    ...reducedRecord(record),
    ...(typeof message === 'string' && { output: { final_message: cutText(message, PAST.resultChars) } }),
  }
}
