/** The changes of tasks. */
import type { AsyncTaskInfo, DeliveryStatus } from './records.js'
import type { AsyncTaskStatus } from './task-status.js'

interface TransitionFields {
  /** The sequence number of the change. A later change has a greater number. */
  readonly seq: number
  readonly taskId: string
  /** The owner of the task after the change. */
  readonly owner: string
  /** The time of the change, in ms since the epoch. */
  readonly at: number
  /** The record immediately after this change. */
  readonly record: AsyncTaskInfo
}

/** A task was registered (`from` is null), has started, waits for its next run, or has ended. */
export interface StatusTransition extends TransitionFields {
  /** The type of the change. */
  readonly kind: 'status'
  /** The status before the change; null for a registration. */
  readonly from: AsyncTaskStatus | null
  /** The status after the change. */
  readonly to: AsyncTaskStatus
}

/** The delivery state of a result has changed. */
export interface DeliveryTransition extends TransitionFields {
  /** The type of the change. */
  readonly kind: 'delivery'
  /** The state before the change. */
  readonly from: DeliveryStatus
  /** The state after the change. */
  readonly to: DeliveryStatus
  /** The id of the message that took, acknowledged or released the result, if any. */
  readonly deliveryId?: string
}

/** A task was transferred to another owner. */
export interface OwnerTransition extends TransitionFields {
  /** The type of the change. */
  readonly kind: 'owner'
  /** The owner before the change. */
  readonly from: string
  /** The owner after the change. */
  readonly to: string
}

/** A record was removed from the history. */
export interface HistoryTransition extends TransitionFields {
  /** The type of the change. */
  readonly kind: 'history'
  /** Before the change, the record was in the history. */
  readonly from: 'retained'
  /** After the change, the record is no longer in the history. */
  readonly to: 'pruned'
}

/** One change of one task. The registry can be rebuilt from the records of all changes. */
export type TaskTransition = StatusTransition | DeliveryTransition | OwnerTransition | HistoryTransition
