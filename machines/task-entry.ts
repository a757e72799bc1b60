/** A retained task as the registry keeps it. Only the registry and its parts change an entry. */
import type { AsyncTaskRef } from './async-task.js'
import type { AsyncTaskInfo, RunningTaskInfo, SettledTaskInfo } from './records.js'
import { hasEnded } from './task-status.js'

/** One retained task. */
export interface TaskEntry {
  /** The present frozen record. */
  record: AsyncTaskInfo
  /** The actor, while the task runs. */
  ref: AsyncTaskRef | undefined
  /** How long the run may take to stop after its deadline, in ms; undefined once the deadline has passed. */
  graceMs: number | undefined
  /** The number of the registration: it orders tasks and names the slot, and is never reused. */
  readonly serial: number
  /** The lease that the entry is in, or the last one that delivered it. */
  lease: Lease | undefined
  /** Leases of waits that take the entry when it is owed (again), first come first served. */
  claims: Set<Lease> | undefined
  /** Its owner was released without an heir: its end is owed to no one. */
  isDisowned: boolean
  /** A message that carried it was accepted after its lease had been released. */
  isAccepted: boolean
  /** Whether the handlers of its end have run, and whether it was offered for pruning. */
  pruning: 'unhandled' | 'handled' | 'offered'
  /** What features keep of it, by their `PerTask`. */
  kept: Map<object, unknown> | undefined
}

/** An open question, and whether its owner was told of it. */
export interface OwedQuestion {
  readonly entry: TaskEntry
  readonly id: string
  /** To whom it is delivered. */
  owner: string
  delivery: 'none' | 'owed' | 'leased' | 'delivered'
  /** The last message that carried it. */
  deliveryId: string | undefined
  /** A message that carried it was accepted after its lease had been released. */
  isAccepted: boolean
  /** It was delivered before, or may have been, and is owed again. */
  isRepeat: boolean
}

/** What is stored of the delivery of an open question. */
export interface QuestionStanding {
  /** The message that has delivered it. */
  readonly deliveredBy?: string | undefined
  readonly isRepeat?: boolean | undefined
}

/** Entries that one message carries. */
export interface Lease {
  /** The id of the delivery. */
  readonly id: string
  /** The owner, if this is the owner's exclusive delivery. */
  readonly exclusiveOwner: string | undefined
  /** The entries that the message carries. */
  readonly entries: Set<TaskEntry>
  /** Entries that the lease takes as soon as they are owed. */
  readonly claimed: Set<TaskEntry>
  /** The questions that the message carries; none when absent. */
  readonly questions?: readonly OwedQuestion[]
}

/** A lease that has ended, of which only the id matters. */
export const endedLease = (id: string): Lease => ({
  id,
  exclusiveOwner: undefined,
  entries: new Set(),
  claimed: new Set(),
})

/** Whether a record is that of a task whose run works. */
export const isRunning = (record: AsyncTaskInfo): record is RunningTaskInfo => record.status === 'running'

/** Whether a record is the record of an ended task. */
export const isTerminal = (record: AsyncTaskInfo): record is SettledTaskInfo => hasEnded(record.status)

/** Whether the end of a task has still to be delivered. */
export const isOutstanding = ({ record: { delivery } }: TaskEntry): boolean =>
  delivery === 'owed' || delivery === 'leased'

/** The order in which tasks ended. */
export const byEnd = (a: TaskEntry, b: TaskEntry): number => a.record.seq - b.record.seq

/** The order of registration. */
export const byRegistration = (a: TaskEntry, b: TaskEntry): number => a.serial - b.serial
