/** The records of a task. They are frozen, and each change creates a new record (promise A8). */
import type {
  ActiveTaskInfo,
  AsyncTaskInfo,
  DeliveryStatus,
  ProgramFacts,
  QueuedTaskInfo,
  RunningTaskInfo,
  SettledTaskInfo,
  Settlement,
  TaskAdmission,
  TaskAttempt,
  TaskProgress,
  TaskQuestion,
  TaskSession,
} from './records.js'

export function admittedRecord<S extends ActiveTaskInfo['status']>(
  admission: TaskAdmission,
  { status, seq, launchedAt }: { readonly status: S; readonly seq: number; readonly launchedAt: number },
): ActiveTaskInfo & { readonly status: S } {
  const {
    id,
    subagentName,
    goalPrompt,
    owner,
    timeoutMs,
    budget,
    parentId,
    depth,
    abortController,
    isForeground,
    isNote,
    kind,
    command = [],
    after,
    waitsFor,
    concurrencyKey,
    previous,
  } = admission
  return Object.freeze({
    id,
    subagentName,
    goalPrompt,
    owner,
    status,
    delivery: 'none',
    launchedAt,
    seq,
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(parentId !== undefined && { parentId, depth }),
    ...(budget !== undefined && { budget }),
    ...(after !== undefined && { after: Object.freeze([...after]) }),
    ...(waitsFor !== undefined && waitsFor.length > 0 && { waitsFor: Object.freeze([...waitsFor]) }),
    ...(concurrencyKey !== undefined && { concurrencyKey }),
    ...(previous !== undefined && { continues: previous.id }),
    ...(previous?.session !== undefined && { session: previous.session }),
    ...(abortController !== undefined && { abortController }),
    ...(isForeground === true && { isForeground }),
    ...(isNote === true && { isNote }),
    ...(kind !== undefined && { kind, command: Object.freeze([...command]) }),
  }) as ActiveTaskInfo & { readonly status: S }
}

export function startedRecord(record: AsyncTaskInfo, seq: number, startedAt: number): RunningTaskInfo {
  return Object.freeze({ ...record, status: 'running', seq, startedAt }) as RunningTaskInfo
}

/** Returns the record of a task that waits for the tasks with these ids. If there are none, the field `waitsFor` is absent. */
export function waitingRecord(record: AsyncTaskInfo, ids: readonly string[]): AsyncTaskInfo {
  const { waitsFor: _, ...fields } = record
  return Object.freeze(ids.length === 0 ? fields : { ...fields, waitsFor: Object.freeze([...ids]) })
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
  { seq, endedAt, error, abortController, questions }: RequeueChange,
): QueuedTaskInfo {
  const { startedAt = record.launchedAt, attempt = 1 } = record
  return Object.freeze({
    ...withoutRun(record),
    status: 'queued',
    seq,
    attempt: attempt + 1,
    attempts: withAttempt(record.attempts, { number: attempt, startedAt, endedAt, error }),
    ...(abortController !== undefined && { abortController }),
    ...(questions !== undefined && { questions }),
  }) as QueuedTaskInfo
}

interface RequeueChange {
  readonly seq: number
  readonly endedAt: number
  readonly error: string
  readonly abortController: AbortController | undefined
  /** The questions that stay open. */
  readonly questions?: AsyncTaskInfo['questions']
}

/** Fields that change while the task runs. No other field depends on them. */
export interface NotedFields extends ProgramFacts {
  readonly progress?: TaskProgress
  readonly messagesSent?: number
  readonly session?: TaskSession
}

/** Whether a field belongs to the task, or to one run. Fields of a run are removed before the next run. The record of an ended task keeps both. */
const NOTED = {
  progress: 'run',
  messagesSent: 'task',
  session: 'task',
  pid: 'task',
  exitCode: 'task',
  signal: 'task',
  endedProcesses: 'task',
} as const satisfies Record<keyof NotedFields, 'task' | 'run'>

const NOTED_FIELDS = Object.keys(NOTED) as (keyof NotedFields)[]

/** The fields of the current run. */
const OF_RUN: ReadonlySet<string> = new Set([
  'questions',
  'startedAt',
  ...NOTED_FIELDS.filter((name) => NOTED[name] === 'run'),
])

/** Returns a record (or its stored form) without the fields of the current run. */
export function withoutRun<T extends object>(record: T): Omit<T, 'questions' | 'startedAt' | 'progress'> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !OF_RUN.has(name))) as T
}

/** The record of a running task with changed fields. */
export function notedRecord(record: AsyncTaskInfo, fields: NotedFields): AsyncTaskInfo {
  return Object.freeze({ ...fields, ...record, ...fields })
}

/**
 * Returns the record of an ended task. To save memory, every field is listed here, and `changedRecord` puts new fields before the spread: an object
 * takes more memory if it gets fields later, and ten times as much if it gets them after a spread.
 */
export function endedRecord(
  running: AsyncTaskInfo,
  settlement: Settlement,
  {
    delivery,
    seq,
    completedAt,
    outputTail,
    runningChildren,
  }: {
    readonly delivery: DeliveryStatus
    readonly seq: number
    readonly completedAt: number
    readonly outputTail: string | undefined
    readonly runningChildren?: readonly string[] | undefined
  },
): SettledTaskInfo {
  const {
    id,
    subagentName,
    goalPrompt,
    owner,
    launchedAt,
    timeoutMs,
    parentId,
    depth,
    abortController,
    isNote,
    kind,
    command,
    continues,
  } = running
  const ended = endOf(settlement)
  if (isNote === true) Object.assign(ended, { isNote })
  if (continues !== undefined) Object.assign(ended, { continues })
  if (parentId !== undefined) Object.assign(ended, { parentId, depth })
  if (runningChildren !== undefined) Object.assign(ended, { runningChildren })
  if (kind !== undefined) Object.assign(ended, { kind, command })
  for (const name of NOTED_FIELDS) if (running[name] !== undefined) Object.assign(ended, { [name]: running[name] })
  const record = Object.assign(
    Object.assign(ended, historyOf(running)),
    timeoutMs !== undefined && { timeoutMs },
    abortController !== undefined && { abortController },
  )
  return frozenWithCause(settlement, outputTail === undefined ? record : Object.assign(record, { outputTail }))

  function endOf(end: Settlement): SettledTaskInfo {
    switch (end.status) {
      case 'completed': {
        const { status, output } = end
        return { id, subagentName, goalPrompt, owner, status, delivery, launchedAt, seq, completedAt, output }
      }
      case 'failed': {
        const { status, error, errorName, errorCode, lateOutput } = end
        return {
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
          ...(errorName !== undefined && { errorName }),
          ...(errorCode !== undefined && { errorCode }),
          ...(lateOutput !== undefined && { lateOutput }),
        }
      }
      case 'cancelled': {
        const { status, cancelReason } = end
        return {
          id,
          subagentName,
          goalPrompt,
          owner,
          status,
          delivery,
          launchedAt,
          seq,
          completedAt,
          ...(cancelReason !== undefined && { cancelReason }),
        }
      }
    }
  }
}

/** Returns the fields about the wait and the runs of an ended task. Returns undefined for most tasks, which have no such fields. */
function historyOf(record: AsyncTaskInfo): object | undefined {
  const { after, concurrencyKey, startedAt, attempt, attempts, budget, spent } = record
  if ([after, concurrencyKey, startedAt, attempt, budget, spent].every((field) => field === undefined)) return undefined
  return {
    ...(concurrencyKey !== undefined && { concurrencyKey }),
    ...(after !== undefined && { after }),
    ...(startedAt !== undefined && { startedAt }),
    ...(attempt !== undefined && { attempt }),
    ...(attempts !== undefined && { attempts }),
    ...(budget !== undefined && { budget }),
    ...(spent !== undefined && { spent }),
  }
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

/** Returns the record of an ended task whose result was delivered. */
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
  if (from.status === 'failed' && from.cause !== undefined) Object.defineProperty(to, 'cause', { value: from.cause })
  return Object.freeze(to)
}
