/** The entry of a kept task in the registry. Only the registry and its parts change it. */
import type { AsyncTaskRef } from './async-task.js'
import type { AsyncTaskInfo, RunningTaskInfo, SettledTaskInfo } from './records.js'
import { hasEnded, holdsSlot } from './task-status.js'

export interface TaskEntry {
  /** The current record, which is frozen. */
  record: AsyncTaskInfo
  /** The actor of the task; undefined once the task has ended. */
  ref: AsyncTaskRef | undefined
  /** How long the run may take to stop after its deadline, in ms; undefined once the deadline has passed. */
  graceMs: number | undefined
  /** The number of the registration, which is never reused. It orders tasks, and identifies the slot. */
  readonly serial: number
  /** The open lease on the result. */
  lease: Lease | undefined
  /** The id of the message that has delivered the result. */
  deliveredBy: string | undefined
  /** The leases that want the result when it becomes owed, in order. The first of them takes it. */
  claims: Set<Lease> | undefined
  /** Whether the owner was released without an heir, so that nobody receives the result. */
  isDisowned: boolean
  /**
   * Whether a message with the result was accepted late: its lease was already released, and another message may contain the result now. The result
   * counts as delivered even if that other message is not accepted.
   */
  isAccepted: boolean
  /** The id of the last message that may have delivered the result. The message that repeats it has the same id, and the same results. */
  repeatOf: string | undefined
  /** Whether the host's handlers for the end have run. Before that, the record is not pruned. */
  isHandled: boolean
  /** The values that features keep for the task (`TaskData`). */
  data: Map<object, unknown> | undefined
}

export interface OwedQuestion {
  readonly entry: TaskEntry
  readonly id: string
  owner: string
  delivery: 'none' | 'owed' | 'leased' | 'delivered'
  /** The id of the last message that contained the question. */
  deliveryId: string | undefined
  /** Whether a message with the question was accepted late, after the lease of that message was released (see `TaskEntry.isAccepted`). */
  isAccepted: boolean
  /** Whether the question is owed again although it may have been delivered before. */
  isRepeat: boolean
  /** See `TaskEntry.repeatOf`. */
  repeatOf: string | undefined
}

/** The stored form of the delivery state of an open question. */
export interface QuestionStanding {
  readonly deliveredBy?: string | undefined
  readonly isRepeat?: boolean | undefined
  readonly repeatOf?: string | undefined
}

/** The results that one message contains. */
export interface Lease {
  readonly id: string
  /** The owner, if the lease is exclusive: the owner can have no second exclusive lease at the same time. */
  readonly exclusiveOwner: string | undefined
  readonly entries: Set<TaskEntry>
  /** The entries that the lease takes as soon as their results become owed. */
  readonly claimed: Set<TaskEntry>
  /** The questions in the message, if there are any. */
  readonly questions?: readonly OwedQuestion[]
}

export const isRunning = (record: AsyncTaskInfo): record is RunningTaskInfo => holdsSlot(record.status)

export const isTerminal = (record: AsyncTaskInfo): record is SettledTaskInfo => hasEnded(record.status)

/** Whether the result of a task must be delivered: it is owed, or in a message that is not accepted yet. */
export const isUndelivered = ({ delivery }: Pick<AsyncTaskInfo, 'delivery'>): boolean =>
  delivery === 'owed' || delivery === 'leased'

/** Whether the result of an entry must be delivered. */
export const isOutstanding = ({ record }: TaskEntry): boolean => isUndelivered(record)

export const byEnd = (a: TaskEntry, b: TaskEntry): number => a.record.seq - b.record.seq

export const byRegistration = (a: TaskEntry, b: TaskEntry): number => a.serial - b.serial
