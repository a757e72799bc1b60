/** A kept task in the registry. Only the registry and its parts change an entry. */
import type { AsyncTaskRef } from './async-task.js'
import type { AsyncTaskInfo, RunningTaskInfo, SettledTaskInfo } from './records.js'
import { hasEnded } from './task-status.js'

export interface TaskEntry {
  /** The current frozen record. */
  record: AsyncTaskInfo
  /** The actor, until the task ends. */
  ref: AsyncTaskRef | undefined
  /** How long the run may take to stop after its deadline, in ms; undefined once the deadline has passed. */
  graceMs: number | undefined
  /** The number of the registration. It orders tasks, names the slot, and is never reused. */
  readonly serial: number
  /** The lease of the entry, or the last one that delivered it. */
  lease: Lease | undefined
  /** Leases of waits that take the entry when it becomes owed, in order. */
  claims: Set<Lease> | undefined
  /** Its owner was released without an heir, so nobody receives its result. */
  isDisowned: boolean
  /** Whether a message that carried it was accepted after its lease was released. */
  isAccepted: boolean
  /** Whether the handlers of its end have run, and whether it was queued for pruning. */
  pruning: 'unhandled' | 'handled' | 'offered'
  /** The values of features, by `PerTask`. */
  kept: Map<object, unknown> | undefined
}

/** An open question and its delivery state. */
export interface OwedQuestion {
  readonly entry: TaskEntry
  readonly id: string
  owner: string
  delivery: 'none' | 'owed' | 'leased' | 'delivered'
  /** The last message that carried it. */
  deliveryId: string | undefined
  /** Whether a message that carried it was accepted after its lease was released. */
  isAccepted: boolean
  /** Whether it is owed again and may have been delivered before. */
  isRepeat: boolean
}

/** The stored delivery state of an open question. */
export interface QuestionStanding {
  readonly deliveredBy?: string | undefined
  readonly isRepeat?: boolean | undefined
}

/** The entries that one message carries. */
export interface Lease {
  readonly id: string
  /** The owner, if this is its exclusive delivery. */
  readonly exclusiveOwner: string | undefined
  readonly entries: Set<TaskEntry>
  /** Entries that the lease takes when they become owed. */
  readonly claimed: Set<TaskEntry>
  /** The questions that the message carries, if any. */
  readonly questions?: readonly OwedQuestion[]
}

/** A lease that has ended. Only its id matters. */
export const endedLease = (id: string): Lease => ({
  id,
  exclusiveOwner: undefined,
  entries: new Set(),
  claimed: new Set(),
})

export const isRunning = (record: AsyncTaskInfo): record is RunningTaskInfo => record.status === 'running'

export const isTerminal = (record: AsyncTaskInfo): record is SettledTaskInfo => hasEnded(record.status)

/** Whether the result of a task is owed or in a message. */
export const isUndelivered = ({ delivery }: Pick<AsyncTaskInfo, 'delivery'>): boolean =>
  delivery === 'owed' || delivery === 'leased'

/** Whether the result of a task is still to be delivered. */
export const isOutstanding = ({ record }: TaskEntry): boolean => isUndelivered(record)

/** Compares by the order of ends. */
export const byEnd = (a: TaskEntry, b: TaskEntry): number => a.record.seq - b.record.seq

/** Compares by the order of registration. */
export const byRegistration = (a: TaskEntry, b: TaskEntry): number => a.serial - b.serial
