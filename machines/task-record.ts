/** The frozen records of a task: each change makes a new one (A8). */
import type {
  AsyncTaskInfo,
  CommandFields,
  DeliveryStatus,
  ProgramFacts,
  RunningTaskInfo,
  SettledTaskInfo,
  Settlement,
  TaskAdmission,
  TaskQuestion,
} from './records.js'

/** The record of a task that has just been registered. */
export function runningRecord(admission: TaskAdmission, seq: number, launchedAt: number): RunningTaskInfo {
  const { id, subagentName, goalPrompt, owner, timeoutMs, abortController, kind, command = [] } = admission
  return Object.freeze({
    id,
    subagentName,
    goalPrompt,
    owner,
    status: 'running',
    delivery: 'none',
    launchedAt,
    seq,
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(abortController !== undefined && { abortController }),
    ...(kind !== undefined && { kind, command: Object.freeze([...command]) }),
  })
}

/** The record of a command whose program has started or ended. */
export function withProgram(record: RunningTaskInfo, program: ProgramFacts): RunningTaskInfo {
  return Object.freeze<RunningTaskInfo>({ ...record, ...program })
}

function commandFields({ kind, command = [], pid, exitCode, signal }: CommandFields): CommandFields {
  return {
    ...(kind !== undefined && { kind, command }),
    ...(pid !== undefined && { pid }),
    ...(exitCode !== undefined && { exitCode }),
    ...(signal !== undefined && { signal }),
  }
}

/**
 * The record of a task that has ended. Its fields are listed, and in changedRecord a new field comes before the spread: an object that
 * gets more fields later takes more memory, and after a spread ten times as long.
 */
export function endedRecord(
  running: AsyncTaskInfo,
  settlement: Settlement,
  {
    delivery,
    seq,
    completedAt,
    outputTail,
  }: {
    readonly delivery: DeliveryStatus
    readonly seq: number
    readonly completedAt: number
    readonly outputTail: string | undefined
  },
): SettledTaskInfo {
  const { id, subagentName, goalPrompt, owner, launchedAt, timeoutMs, attempt, progress, abortController } = running
  const ended = endOf(settlement)
  const record = Object.assign(
    attempt === undefined ? ended : Object.assign(ended, { attempt }),
    timeoutMs !== undefined && { timeoutMs },
    progress !== undefined && { progress },
    abortController !== undefined && { abortController },
  )
  if (running.kind !== undefined) Object.assign(record, commandFields(running))
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
          ...{ id, subagentName, goalPrompt, owner, status, delivery, launchedAt, seq, completedAt, error },
          ...(errorName !== undefined && { errorName }),
          ...(errorCode !== undefined && { errorCode }),
          ...(lateOutput !== undefined && { lateOutput }),
        }
      }
      case 'cancelled': {
        const { status } = end
        return { id, subagentName, goalPrompt, owner, status, delivery, launchedAt, seq, completedAt }
      }
    }
  }
}

/** A copy with another owner, delivery or progress, or marked as a possible repeat. */
export function changedRecord(
  record: AsyncTaskInfo,
  change: Partial<Pick<AsyncTaskInfo, 'owner' | 'delivery' | 'progress' | 'isRepeat'>>,
): AsyncTaskInfo {
  return frozenWithCause(
    record,
    'progress' in change || 'isRepeat' in change ? { ...change, ...record, ...change } : { ...record, ...change },
  )
}

/** The record of an ended task whose end was delivered. */
export function deliveredRecord(record: AsyncTaskInfo, notifiedAt: number): AsyncTaskInfo {
  return frozenWithCause(record, { notifiedAt, ...record, delivery: 'delivered' })
}

/** A copy with the open questions; without any, the field is absent. */
export function withQuestions(record: RunningTaskInfo, questions: readonly TaskQuestion[]): RunningTaskInfo {
  const { questions: _, ...fields } = record
  return Object.freeze(questions.length === 0 ? fields : { ...fields, questions })
}

/** Freezes a record. A failed one keeps what its run threw, which copies of its fields do not have. */
function frozenWithCause<T extends AsyncTaskInfo>(from: AsyncTaskInfo | Settlement, to: T): T {
  if (from.status === 'failed' && from.cause !== undefined) Object.defineProperty(to, 'cause', { value: from.cause })
  return Object.freeze(to)
}
