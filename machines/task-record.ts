/** The records of a task. They are frozen, and each change creates a new record (promise A8). */
import type {
  ActiveTaskInfo,
  AsyncTaskInfo,
  DeliveryStatus,
  QueuedTaskInfo,
  RunningTaskInfo,
  SettledTaskInfo,
  Settlement,
  TaskAttempt,
  TaskQuestion,
} from './records.js'
import type { FieldValue, LaunchTerms, NotedFields, RecordField } from './record-fields.js'
import { NOTED_FIELDS, RUN_FIELDS, TERM_FIELDS } from './record-fields.js'
import type { TaskAdmission } from './task-admission.js'
import { endedAs } from './task-status.js'

/** A record that is being made. Its fields are assigned one by one, because `Object.assign` doubles the cost of a record. */
type OpenRecord = { -readonly [F in RecordField]?: FieldValue<F> }

export function admittedRecord<S extends ActiveTaskInfo['status']>(
  admission: TaskAdmission,
  { status, seq, launchedAt }: { readonly status: S; readonly seq: number; readonly launchedAt: number },
): ActiveTaskInfo & { readonly status: S } {
  const { id, subagentName, goalPrompt, owner, parentId, depth, abortController } = admission
  const { after, waitsFor = [], previous, isForeground, isNote, kind, command = [] } = admission
  const record: OpenRecord = { id, subagentName, goalPrompt, owner, status, delivery: 'none', launchedAt, seq }
  if (admission.terms !== undefined) addTerms(record, admission.terms)
  if (parentId !== undefined) record.parentId = parentId
  if (depth !== undefined) record.depth = depth
  if (after !== undefined) record.after = Object.freeze([...after])
  if (waitsFor.length > 0) record.waitsFor = Object.freeze([...waitsFor])
  if (previous !== undefined) record.continues = previous.id
  if (previous?.session !== undefined) record.session = previous.session
  if (abortController !== undefined) record.abortController = abortController
  if (isForeground === true) record.isForeground = isForeground
  if (isNote === true) record.isNote = isNote
  if (kind !== undefined) {
    record.kind = kind
    record.command = Object.freeze([...command])
  }
  return Object.freeze(record) as ActiveTaskInfo & { readonly status: S }
}

function addTerms(record: OpenRecord, terms: LaunchTerms): LaunchTerms {
  for (const field of TERM_FIELDS) setField(record, field, terms[field])
  return record
}

function setField<F extends RecordField>(record: OpenRecord, field: F, value: OpenRecord[F] | undefined): void {
  if (value !== undefined) record[field] = value
}

/** Returns the terms of a task, for the launch of a task that continues or repeats it. */
export const termsOf = (record: AsyncTaskInfo): LaunchTerms => addTerms({}, record)

export function startedRecord(record: AsyncTaskInfo, seq: number, startedAt: number): RunningTaskInfo {
  return Object.freeze({ ...record, status: 'running', seq, startedAt }) as RunningTaskInfo
}

/** Returns the record of a task that waits for the tasks with these ids. If there are none, the field `waitsFor` is absent. */
export function waitingRecord(record: AsyncTaskInfo, ids: readonly string[]): AsyncTaskInfo {
  const { waitsFor: _, ...fields } = record
  return Object.freeze(ids.length === 0 ? fields : { ...fields, waitsFor: Object.freeze([...ids]) })
}

/** Returns the record of a task whose runs have another time limit, or no limit (undefined). */
export function limitedRecord(record: AsyncTaskInfo, limitMs: number | undefined): AsyncTaskInfo {
  const { timeoutMs: _, ...fields } = record
  return Object.freeze(limitMs === undefined ? fields : { ...fields, timeoutMs: limitMs })
}

/** How many earlier runs (`attempts`) a record keeps. */
const MAX_ATTEMPTS = 10

/** The maximum length of an earlier run's error, in characters. */
const ERROR_CHARS = 500

export function withAttempt(attempts: readonly TaskAttempt[] = [], attempt: TaskAttempt): readonly TaskAttempt[] {
  const error = attempt.error.slice(0, ERROR_CHARS)
  const all: readonly TaskAttempt[] = [...attempts, Object.freeze({ ...attempt, error })]
  return Object.freeze<TaskAttempt[]>(all.slice(-MAX_ATTEMPTS))
}

/** Returns the record of a task that waits for its next run because the last run has failed. */
export function requeuedRecord(
  record: AsyncTaskInfo,
  { seq, endedAt, error, abortController, questions, keepsAttempt = false }: RequeueChange,
): QueuedTaskInfo {
  const { startedAt = record.launchedAt, attempt = 1 } = record
  return Object.freeze({
    ...withoutFields(record, RUN_FIELDS),
    status: 'queued',
    seq,
    ...(!keepsAttempt && {
      attempt: attempt + 1,
      attempts: withAttempt(record.attempts, { number: attempt, startedAt, endedAt, error }),
    }),
    ...(abortController !== undefined && { abortController }),
    ...(questions !== undefined && { questions }),
  }) as QueuedTaskInfo
}

interface RequeueChange {
  readonly seq: number
  readonly endedAt: number
  readonly error: string
  readonly abortController: AbortController | undefined
  readonly keepsAttempt?: boolean
  /** The questions that stay open. */
  readonly questions?: AsyncTaskInfo['questions']
}

/** Returns a record (or its stored form) without these fields. */
export function withoutFields<T extends object, F extends string>(record: T, fields: ReadonlySet<F>): Omit<T, F> {
  const kept: Partial<T> = {}
  for (const name in record) if (!fields.has(name as never)) kept[name] = record[name]
  return kept as Omit<T, F>
}

export function notedRecord(record: AsyncTaskInfo, fields: NotedFields): AsyncTaskInfo {
  return Object.freeze({ ...fields, ...record, ...fields })
}

interface EndFacts {
  readonly delivery: DeliveryStatus
  readonly seq: number
  readonly completedAt: number
  readonly outputTail: string | undefined
  readonly runningChildren?: readonly string[] | undefined
}

/**
 * Returns the record of an ended task. To save memory, its fields are assigned one by one, and `changedRecord` puts new fields before the spread: an
 * object takes ten times as much memory if it gets fields after a spread.
 */
export function endedRecord(running: AsyncTaskInfo, settlement: Settlement, end: EndFacts): SettledTaskInfo {
  const { isNote, continues, parentId, depth, kind, command } = running
  const { after, startedAt, attempt, attempts, spent } = running
  const { runningChildren, outputTail } = end
  const record = settledFields(running, settlement, end)
  if (isNote !== undefined) record.isNote = isNote
  if (continues !== undefined) record.continues = continues
  if (parentId !== undefined) record.parentId = parentId
  if (depth !== undefined) record.depth = depth
  if (runningChildren !== undefined) record.runningChildren = runningChildren
  if (kind !== undefined) record.kind = kind
  if (command !== undefined) record.command = command
  for (const field of NOTED_FIELDS) setField(record, field, running[field])
  if (after !== undefined) record.after = after
  if (startedAt !== undefined) record.startedAt = startedAt
  if (attempt !== undefined) record.attempt = attempt
  if (attempts !== undefined) record.attempts = attempts
  addTerms(record, running)
  if (spent !== undefined) record.spent = spent
  if (outputTail !== undefined) record.outputTail = outputTail
  return frozenWithCause(settlement, record as SettledTaskInfo)
}

function settledFields(running: AsyncTaskInfo, end: Settlement, facts: EndFacts): OpenRecord {
  const { id, subagentName, goalPrompt, owner, launchedAt } = running
  const { delivery, seq, completedAt } = facts
  const { status } = end
  if (endedAs(end, 'succeeded')) {
    const { output } = end
    return { id, subagentName, goalPrompt, owner, status, delivery, launchedAt, seq, completedAt, output }
  }
  if (endedAs(end, 'failed')) {
    const { error, errorName, errorCode, lateOutput } = end
    const failed: OpenRecord = {
      id,
      subagentName,
      goalPrompt,
      owner,
      status,
      delivery,
      launchedAt,
      seq,
      completedAt,
      error,
    }
    if (errorName !== undefined) failed.errorName = errorName
    if (errorCode !== undefined) failed.errorCode = errorCode
    if (lateOutput !== undefined) failed.lateOutput = lateOutput
    return failed
  }
  const stopped: OpenRecord = { id, subagentName, goalPrompt, owner, status, delivery, launchedAt, seq, completedAt }
  if (end.cancelReason !== undefined) stopped.cancelReason = end.cancelReason
  return stopped
}

/** Returns a copy with another owner, delivery or usage, or marked as a possible repeat. */
export function changedRecord(
  record: AsyncTaskInfo,
  change: Partial<Pick<AsyncTaskInfo, 'owner' | 'delivery' | 'spent' | 'isRepeat'>>,
): AsyncTaskInfo {
  return frozenWithCause(
    record,
    'spent' in change || 'isRepeat' in change ? { ...change, ...record, ...change } : { ...record, ...change },
  )
}

export function deliveredRecord(record: AsyncTaskInfo, notifiedAt: number): AsyncTaskInfo {
  // If a result is delivered a second time, the record keeps the time of the first delivery.
  const again = record.isRepeat === true ? { notifiedAt } : undefined
  return frozenWithCause<AsyncTaskInfo>(record, { notifiedAt, ...record, ...again, delivery: 'delivered' })
}

/** Returns a copy with these open questions. If there are none, the field is absent. */
export function withQuestions(record: AsyncTaskInfo, questions: readonly TaskQuestion[]): AsyncTaskInfo {
  const { questions: _, ...fields } = record
  return Object.freeze(questions.length === 0 ? fields : { ...fields, questions }) as AsyncTaskInfo
}

export function backgroundRecord({ isForeground: _, ...record }: AsyncTaskInfo): AsyncTaskInfo {
  return Object.freeze(record)
}

/** Freezes a record. If the task has failed, the record keeps the thrown value in a property that is not enumerable. */
function frozenWithCause<T extends AsyncTaskInfo>(from: AsyncTaskInfo | Settlement, to: T): T {
  if (endedAs(from, 'failed') && from.cause !== undefined) Object.defineProperty(to, 'cause', { value: from.cause })
  return Object.freeze(to)
}
