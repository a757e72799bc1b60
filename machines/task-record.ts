/** The frozen records of a task: each change makes a new one (A8). */
import type {
  AsyncTaskInfo,
  DeliveryStatus,
  RunningTaskInfo,
  SettledTaskInfo,
  Settlement,
  TaskAdmission,
  TaskQuestion,
} from './records.js'

/** The record of a task that has just been registered. */
export function runningRecord(admission: TaskAdmission, seq: number, launchedAt: number): RunningTaskInfo {
  const { id, subagentName, goalPrompt, owner, timeoutMs, parentId, depth, abortController } = admission
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
    ...(parentId !== undefined && { parentId, depth }),
    ...(abortController !== undefined && { abortController }),
  })
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
    runningChildren,
  }: {
    readonly delivery: DeliveryStatus
    readonly seq: number
    readonly completedAt: number
    readonly runningChildren?: readonly string[] | undefined
  },
): SettledTaskInfo {
  const { id, subagentName, goalPrompt, owner, launchedAt, timeoutMs, attempt, parentId, depth, progress } = running
  const { abortController } = running
  const ended = endOf(settlement)
  if (attempt !== undefined) Object.assign(ended, { attempt })
  if (parentId !== undefined) Object.assign(ended, { parentId, depth })
  if (runningChildren !== undefined) Object.assign(ended, { runningChildren })
  return frozenWithCause(
    settlement,
    Object.assign(
      ended,
      timeoutMs !== undefined && { timeoutMs },
      progress !== undefined && { progress },
      abortController !== undefined && { abortController },
    ),
  )

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
        const { status, cancelReason } = end
        return {
          ...{ id, subagentName, goalPrompt, owner, status, delivery, launchedAt, seq, completedAt },
          ...(cancelReason !== undefined && { cancelReason }),
        }
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
