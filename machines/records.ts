/**
 * The plain types that the task charts share: what a task is, how it ended, and what is still owed for it.
 * No behaviour lives here.
 */

/** Where a task stands (seed 001). */
export type AsyncTaskStatus = 'running' | 'completed' | 'failed' | 'cancelled'

/** The three ways a task can end. */
export type TerminalStatus = Exclude<AsyncTaskStatus, 'running'>

/**
 * Where the message about a task's end stands.
 * `none`: nothing is owed (it runs, was cancelled, or its owner dropped it). `owed`: the owner has yet to be told.
 * `leased`: a message that carries it is on its way. `delivered`: such a message was accepted.
 */
export type DeliveryStatus = 'none' | 'owed' | 'leased' | 'delivered'

/** What a run returned. Unknown fields are kept as they came. */
export interface OutputObject {
  readonly emitted_vars?: Readonly<Record<string, unknown>>
  readonly terminate_reason?: string
  readonly final_message?: string
  readonly [field: string]: unknown
}

/** How far a run has come, in the shape MCP uses for `notifications/progress`. */
export interface TaskProgress {
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

interface TaskFields {
  readonly id: string
  readonly subagentName: string
  readonly goalPrompt: string
  /** Who is told of the end. */
  readonly owner: string
  /** Milliseconds since the epoch. */
  readonly launchedAt: number
  /** The number of the task's last change of status: later changes have greater numbers. */
  readonly seq: number
  readonly delivery: DeliveryStatus
  /** When a message that carried the end was accepted; milliseconds since the epoch. */
  readonly notifiedAt?: number
  /** The deadline, in milliseconds after the launch. */
  readonly timeoutMs?: number
  readonly progress?: TaskProgress
  readonly abortController?: AbortController
}

/** A task that has not ended. */
export interface RunningTaskInfo extends TaskFields {
  readonly status: 'running'
  readonly completedAt?: never
  readonly output?: never
  readonly error?: never
}

/** A task that ended with an output. */
export interface CompletedTaskInfo extends TaskFields {
  readonly status: 'completed'
  readonly completedAt: number
  readonly output: OutputObject
  readonly error?: never
}

/** A task that ended with an error. */
export interface FailedTaskInfo extends TaskFields {
  readonly status: 'failed'
  readonly completedAt: number
  readonly output?: never
  readonly error: string
}

/** A task that was cancelled. */
export interface CancelledTaskInfo extends TaskFields {
  readonly status: 'cancelled'
  readonly completedAt: number
  readonly output?: never
  readonly error?: never
}

/** A task that has ended, whichever way. */
export type SettledTaskInfo = CompletedTaskInfo | FailedTaskInfo | CancelledTaskInfo

/** A frozen snapshot of one task (seed 000); `status` tells which fields it has. */
export type AsyncTaskInfo = RunningTaskInfo | SettledTaskInfo

/** How a task's chart ended. */
export type Settlement =
  | { readonly status: 'completed'; readonly output: OutputObject }
  | { readonly status: 'failed'; readonly error: string }
  | { readonly status: 'cancelled' }

/** What the registry needs to know of a task before it admits it. */
export interface TaskAdmission {
  readonly id: string
  readonly subagentName: string
  readonly goalPrompt: string
  readonly owner: string
  readonly abortController?: AbortController
  /** Deadline in ms. */
  readonly timeoutMs?: number
  /** How long after its deadline the task may still wind down, in ms. */
  readonly graceMs: number
  /** Whoever launched it waits for it in place: it is no background task, so it takes no slot. */
  readonly isForeground?: boolean
}

interface TransitionFields {
  /** Strictly increasing: the order in which things happened. */
  readonly seq: number
  readonly taskId: string
  readonly owner: string
  /** Milliseconds since the epoch. */
  readonly at: number
  /** The record as it was right after this change. */
  readonly record: AsyncTaskInfo
}

/** A task was registered (`from` is null) or ended. */
export interface StatusTransition extends TransitionFields {
  readonly kind: 'status'
  readonly from: AsyncTaskStatus | null
  readonly to: AsyncTaskStatus
}

/** What is owed for a task changed. */
export interface DeliveryTransition extends TransitionFields {
  readonly kind: 'delivery'
  readonly from: DeliveryStatus
  readonly to: DeliveryStatus
  /** The lease that took, acknowledged or returned it, if one did. */
  readonly deliveryId?: string
}

/** A task, and what it owes, went over to another owner. */
export interface OwnerTransition extends TransitionFields {
  readonly kind: 'owner'
  readonly from: string
  readonly to: string
}

/** A record was dropped from the history. */
export interface HistoryTransition extends TransitionFields {
  readonly kind: 'history'
  readonly from: 'retained'
  readonly to: 'pruned'
}

/** One change of one task; the stream of them is enough to rebuild the registry. */
export type TaskTransition = StatusTransition | DeliveryTransition | OwnerTransition | HistoryTransition
