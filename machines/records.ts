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
  /** Variables that the subagent emitted, by name. */
  readonly emitted_vars?: Readonly<Record<string, unknown>>
  /** Why the subagent stopped. */
  readonly terminate_reason?: string
  /** What the subagent said last. */
  readonly final_message?: string
  readonly [field: string]: unknown
}

/** How far a run has come, in the shape MCP uses for `notifications/progress`. */
export interface TaskProgress {
  /** How far it is, in a unit of the run's own. */
  readonly progress: number
  /** Where it ends, in the same unit. */
  readonly total?: number
  /** What it is doing. */
  readonly message?: string
}

/** What a run asks whoever its task is for (MCP: a form elicitation). */
export interface AskedQuestion {
  /** In words, for a person or a model. */
  readonly message: string
  /** JSON Schema of the answer's content: an object whose properties are text, numbers, booleans or choices. */
  readonly schema: Readonly<Record<string, unknown>>
  /** Milliseconds since the epoch. */
  readonly askedAt: number
}

/** A question that waits for its answer. */
export interface TaskQuestion extends AskedQuestion {
  /** Unique among all questions that the task ever asks. */
  readonly id: string
}

/** What came of a question (MCP: the result of an elicitation). */
export interface TaskAnswer {
  /** `accept`: `content` has the answer. `decline`: somebody said no. `cancel`: nobody chose. */
  readonly action: 'accept' | 'decline' | 'cancel'
  /** What was answered; it fits the schema of the question. */
  readonly content?: Readonly<Record<string, unknown>>
}

interface TaskFields {
  /** Unique among the retained records. */
  readonly id: string
  /** The name of the subagent that runs it. */
  readonly subagentName: string
  /** What it is to achieve. */
  readonly goalPrompt: string
  /** Who is told of the end. */
  readonly owner: string
  /** Milliseconds since the epoch. */
  readonly launchedAt: number
  /** The number of the task's last change of status: later changes have greater numbers. */
  readonly seq: number
  /** Where the message about its end stands. */
  readonly delivery: DeliveryStatus
  /** When a message that carried the end was accepted; milliseconds since the epoch. */
  readonly notifiedAt?: number
  /** The deadline, in milliseconds after the launch. */
  readonly timeoutMs?: number
  /** How far it has come, if its run reported it. */
  readonly progress?: TaskProgress
  /** The controller that was registered with it: aborting it is a request to cancel (A8). */
  readonly abortController?: AbortController
}

/** A task that has not ended. */
export interface RunningTaskInfo extends TaskFields {
  /** It has not ended. */
  readonly status: 'running'
  /** What its run waits to be told; absent while it waits for nothing. */
  readonly questions?: readonly TaskQuestion[]
  /** None before the end. */
  readonly completedAt?: never
  /** None before the end. */
  readonly output?: never
  /** None before the end. */
  readonly error?: never
}

/** A task that ended with an output. */
export interface CompletedTaskInfo extends TaskFields {
  /** It ended with an output. */
  readonly status: 'completed'
  /** None: it has ended. */
  readonly questions?: never
  /** When it ended, in ms since the epoch. */
  readonly completedAt: number
  /** What its run returned. */
  readonly output: OutputObject
  /** None: it succeeded. */
  readonly error?: never
}

/** A task that ended with an error. */
export interface FailedTaskInfo extends TaskFields {
  /** It ended with an error. */
  readonly status: 'failed'
  /** None: it has ended. */
  readonly questions?: never
  /** When it ended, in ms since the epoch. */
  readonly completedAt: number
  /** None: it failed. */
  readonly output?: never
  /** What went wrong, in words. */
  readonly error: string
}

/** A task that was cancelled. */
export interface CancelledTaskInfo extends TaskFields {
  /** Someone called it off. */
  readonly status: 'cancelled'
  /** None: it has ended. */
  readonly questions?: never
  /** When it was called off, in ms since the epoch. */
  readonly completedAt: number
  /** None: it was called off. */
  readonly output?: never
  /** None: it was called off. */
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
  /** Must be free. */
  readonly id: string
  /** The name of the subagent that runs it. */
  readonly subagentName: string
  /** What it is to achieve. */
  readonly goalPrompt: string
  /** Who is told of the end. */
  readonly owner: string
  /** Aborting it is a request to cancel. */
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
  /** The task that changed. */
  readonly taskId: string
  /** The task's owner after the change. */
  readonly owner: string
  /** Milliseconds since the epoch. */
  readonly at: number
  /** The record as it was right after this change. */
  readonly record: AsyncTaskInfo
}

/** A task was registered (`from` is null) or ended. */
export interface StatusTransition extends TransitionFields {
  /** Tells it from the other transitions. */
  readonly kind: 'status'
  /** The status before; null for a registration. */
  readonly from: AsyncTaskStatus | null
  /** The status after. */
  readonly to: AsyncTaskStatus
}

/** What is owed for a task changed. */
export interface DeliveryTransition extends TransitionFields {
  /** Tells it from the other transitions. */
  readonly kind: 'delivery'
  /** Where the message stood before. */
  readonly from: DeliveryStatus
  /** Where it stands after. */
  readonly to: DeliveryStatus
  /** The lease that took, acknowledged or returned it, if one did. */
  readonly deliveryId?: string
}

/** A task, and what it owes, went over to another owner. */
export interface OwnerTransition extends TransitionFields {
  /** Tells it from the other transitions. */
  readonly kind: 'owner'
  /** The owner before. */
  readonly from: string
  /** The owner after. */
  readonly to: string
}

/** A record was dropped from the history. */
export interface HistoryTransition extends TransitionFields {
  /** Tells it from the other transitions. */
  readonly kind: 'history'
  /** It was in the history. */
  readonly from: 'retained'
  /** It is there no longer. */
  readonly to: 'pruned'
}

/** One change of one task; the stream of them is enough to rebuild the registry. */
export type TaskTransition = StatusTransition | DeliveryTransition | OwnerTransition | HistoryTransition
