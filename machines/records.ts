/** The types that the machines of tasks share: records, ends and deliveries. */
import type { AsyncTaskStatus } from './task-status.js'

/**
 * The delivery of the result. `none`: there is no message to deliver (the task is active, was cancelled, or its owner was released). `owed`: the
 * message must still be delivered to the owner. `leased`: a message with the result was sent but not yet accepted. `delivered`: the message was
 * accepted.
 */
export type DeliveryStatus = 'none' | 'owed' | 'leased' | 'delivered'

/** The output of a run. Other fields are kept as well. */
export interface OutputObject {
  /** Variables that the subagent emitted, by name. */
  readonly emitted_vars?: Readonly<Record<string, unknown>>
  /** Why the subagent stopped. */
  readonly terminate_reason?: string
  /** The last message of the subagent. */
  readonly final_message?: string
  readonly [field: string]: unknown
}

/** The progress of a run, with the fields of MCP's `notifications/progress`. */
export interface TaskProgress {
  /** The progress so far, in any unit. */
  readonly progress: number
  /** The total, in the same unit. */
  readonly total?: number
  /** The current step, in words. */
  readonly message?: string
}

/** A question of a run to the owner of its task, with the fields of MCP's form elicitation. */
export interface AskedQuestion {
  /** The question, in words. */
  readonly message: string
  /** JSON Schema of the answer's content: an object whose properties are strings, numbers, booleans or enums. */
  readonly schema: Readonly<Record<string, unknown>>
  /** Milliseconds since the epoch. */
  readonly askedAt: number
}

/** An open question. */
export interface TaskQuestion extends AskedQuestion {
  /** Unique within the task. */
  readonly id: string
}

/** The answer to a question, with the fields of MCP's elicitation result. */
export interface TaskAnswer {
  /** `accept`: `content` has the answer. `decline`: the question was declined. `cancel`: it was dismissed without a choice. */
  readonly action: 'accept' | 'decline' | 'cancel'
  /** The answer, which matches the schema of the question. */
  readonly content?: Readonly<Record<string, unknown>>
}

/** The additional fields in the record of a command. */
export interface CommandFields {
  /** Set for a program that was started as a command. */
  readonly kind?: 'command'
  /** The program and its arguments, or the command line of a shell. */
  readonly command?: readonly string[]
  /** Its process id, once it has started. */
  readonly pid?: number
  /** Its exit code. Absent while it runs, or if a signal ended it. */
  readonly exitCode?: number
  /** The signal that ended it. */
  readonly signal?: string
  /** How many remaining processes of its process group were ended after it. Absent if there were none. */
  readonly endedProcesses?: number
}

/** How a command's program has started or ended. */
export type ProgramFacts = Omit<CommandFields, 'kind' | 'command'>

/** An earlier run of a task that was retried. */
export interface TaskAttempt {
  /** The number of the run, from 1. */
  readonly number: number
  /** When it started, in ms since the epoch. */
  readonly startedAt: number
  /** When it ended, in ms since the epoch. Absent if its process died. */
  readonly endedAt?: number
  /** Why the task was retried, in at most 500 characters. */
  readonly error: string
}

/** What the runs of a task have used. */
export interface SpentTotals {
  /** Model tokens. */
  readonly tokens?: number
  /** In the currency of the host. */
  readonly cost?: number
  /** Turns, calls, or another unit of the host. */
  readonly steps?: number
  /** The time of all runs, counted if it is limited. */
  readonly seconds?: number
}

/** The maximum that the runs of a task may use in total. */
export interface TaskBudget extends SpentTotals {
  /** How long a run may take to conclude after exceeding the budget, in ms. Default 30000. */
  readonly wrapUpMs?: number
}

/** A conversation of a program or agent, with which a task can be continued. */
export interface TaskSession {
  /** The id given by the program or agent. */
  readonly id: string
  /** The working directory of the session. */
  readonly cwd?: string | undefined
}

interface TaskFields extends CommandFields {
  /** Unique among the kept records. */
  readonly id: string
  /** The name of the subagent that runs it. */
  readonly subagentName: string
  /** What to achieve. */
  readonly goalPrompt: string
  /** The owner, who receives the result. */
  readonly owner: string
  /** When it was registered, in ms since the epoch. */
  readonly launchedAt: number
  /** The sequence number of the last status change. Later changes have greater numbers. */
  readonly seq: number
  /** The delivery state of the result. */
  readonly delivery: DeliveryStatus
  /** When the message with the result was accepted, in ms since the epoch. */
  readonly notifiedAt?: number
  /** The result may have been delivered before, by a process that died before the delivery was confirmed. */
  readonly isRepeat?: boolean
  /** When its run started, in ms since the epoch. Absent if it started at launch. */
  readonly startedAt?: number
  /** The deadline, in ms after the start of the run. */
  readonly timeoutMs?: number
  /** The number of the run, from the second run on. */
  readonly attempt?: number
  /** The tasks that it had to wait for. Absent if there were none. */
  readonly after?: readonly string[]
  /** The tasks of `after` that have not ended yet. Only while it waits for them. */
  readonly waitsFor?: readonly string[]
  /** Its concurrency key. Tasks with the same key run one at a time, unless `limits` allows more. */
  readonly concurrencyKey?: string
  /** The ended task that it continues. */
  readonly continues?: string
  /** The session of its run. Initially the session of the task that it continues. */
  readonly session?: TaskSession
  /** How many messages to its run were accepted. Absent if there were none. */
  readonly messagesSent?: number
  /** Whether a caller waits for it in the foreground. Absent in the background and after it has ended. */
  readonly isForeground?: true
  /** Whether it is a text rather than the result of a run, such as a scheduled message. The text is `final_message` of its output. */
  readonly isNote?: true
  /** The task whose run launched it. That task may have ended. */
  readonly parentId?: string
  /** How many tasks are above it: 1 for a task launched by the run of another one. Absent if there are none. */
  readonly depth?: number
  /** Its earlier runs, at most ten. */
  readonly attempts?: readonly TaskAttempt[]
  /** What its runs may use in all. */
  readonly budget?: TaskBudget
  /** What its runs have used. */
  readonly spent?: SpentTotals
  /** The last progress that its run reported. */
  readonly progress?: TaskProgress
  /**
   * The end of its output, at most 1000 characters. Set for a task that was cancelled or overdue, and for a command whose result does not end with
   * it.
   */
  readonly outputTail?: string
  /** The controller that it was registered with. Aborting it cancels the task. */
  readonly abortController?: AbortController
}

/** A task that waits and has no current run. */
export interface QueuedTaskInfo extends TaskFields {
  /** Queued: it holds no slot. */
  readonly status: 'queued'
  /** The questions that the last run of a durable task has left open. Absent if there are none. */
  readonly questions?: readonly TaskQuestion[]
  /** Set only when the task has ended. */
  readonly completedAt?: never
  /** Set only when the task has ended. */
  readonly output?: never
  /** Set only when the task has ended. */
  readonly error?: never
  /** Set only when the task was cancelled. */
  readonly cancelReason?: never
}

/** A running task. */
export interface RunningTaskInfo extends TaskFields {
  /** Running: it has not ended. */
  readonly status: 'running'
  /** The open questions of its run. Absent if there are none. */
  readonly questions?: readonly TaskQuestion[]
  /** Set only when the task has ended. */
  readonly completedAt?: never
  /** Set only when the task has ended. */
  readonly output?: never
  /** Set only when the task has ended. */
  readonly error?: never
  /** Set only when the task was cancelled. */
  readonly cancelReason?: never
}

/** A task that ended with an output. */
export interface CompletedTaskInfo extends TaskFields {
  /** Completed: it ended with an output. */
  readonly status: 'completed'
  /** Never set on an ended task. */
  readonly questions?: never
  /** When it ended, in ms since the epoch. */
  readonly completedAt: number
  /** The output of its run. */
  readonly output: OutputObject
  /** The ids of its child tasks that were still active when it ended. They passed to its owner. */
  readonly runningChildren?: readonly string[]
  /** None: it succeeded. */
  readonly error?: never
  /** None: it was not cancelled. */
  readonly cancelReason?: never
}

/** A task that ended with an error. */
export interface FailedTaskInfo extends TaskFields {
  /** Failed: it ended with an error. */
  readonly status: 'failed'
  /** Never set on an ended task. */
  readonly questions?: never
  /** When it ended, in ms since the epoch. */
  readonly completedAt: number
  /** None: it failed. */
  readonly output?: never
  /** The error, in words. */
  readonly error: string
  /** The name of the error that the run threw, such as `TypeError`. Absent for a plain `Error`. */
  readonly errorName?: string
  /** The code of the error that the run threw, such as `ENOENT`, if any. */
  readonly errorCode?: string
  /** The value that the run threw, with its stack and cause. Not enumerable, so copies, JSON and restored records do not have it. */
  readonly cause?: unknown
  /** The ids of its child tasks that were still active when it ended. They passed to its owner. */
  readonly runningChildren?: readonly string[]
  /** What its run returned after the deadline, within the grace period, if anything. */
  readonly lateOutput?: OutputObject
  /** None: it was not cancelled. */
  readonly cancelReason?: never
}

/** A task that was cancelled. */
export interface CancelledTaskInfo extends TaskFields {
  /** Cancelled: it ended without an output or an error. */
  readonly status: 'cancelled'
  /** Never set on an ended task. */
  readonly questions?: never
  /** When it was cancelled, in ms since the epoch. */
  readonly completedAt: number
  /** None: it was cancelled. */
  readonly output?: never
  /** None: it was cancelled. */
  readonly error?: never
  /** The reason of the cancellation, if one was given. At most 1000 characters. */
  readonly cancelReason?: string
}

/** A task that has ended. */
export type SettledTaskInfo = CompletedTaskInfo | FailedTaskInfo | CancelledTaskInfo

/** A task that has not ended. */
export type ActiveTaskInfo = QueuedTaskInfo | RunningTaskInfo

/** A frozen snapshot of one task, discriminated by `status`. Only `abortController` and `cause` are the original objects. */
export type AsyncTaskInfo = ActiveTaskInfo | SettledTaskInfo

/** The error of a failed task. */
export type TaskFailure = Pick<FailedTaskInfo, 'error' | 'errorName' | 'errorCode' | 'cause'>

/** How a task ended. */
export type Settlement =
  | { readonly status: 'completed'; readonly output: OutputObject }
  | ({ readonly status: 'failed'; readonly lateOutput?: OutputObject } & TaskFailure)
  | { readonly status: 'cancelled'; readonly cancelReason?: string }

/** The pool that a limit applies to: tasks of the host, tasks launched by runs, or commands. */
export type SlotPool = 'task' | 'child' | 'command'

/** How often the runs of a subagent may start: at most `limit` times in any `perMs` milliseconds. */
export interface StartRate {
  /** The number of starts, an integer from 1 to 500. */
  readonly limit: number
  /** The period in ms. */
  readonly perMs: number
}

/** A named slot, of a concurrency key or of a subagent. */
export interface NamedSlot {
  /** Whether it belongs to a `concurrencyKey` or to a subagent with `maxConcurrent`. */
  readonly kind: 'key' | 'subagent'
  /** The key, or the name of the subagent. */
  readonly name: string
  /** How many tasks may hold it at once. */
  readonly max: number
}

/** What a task needs in addition to a slot of its pool. */
export interface TaskNeeds {
  /** The named slots. A task takes all of them at once. */
  readonly slots: readonly NamedSlot[]
  /** The name of its subagent, and how often its runs may start. */
  readonly rate?: StartRate & { readonly name: string }
}

/** How a task waits for a slot. */
export interface QueueTicket {
  /** Higher priorities go first. */
  readonly priority: number
  /** The bytes that are held for it. */
  readonly bytes: number
  /** When its priority began to rise, in ms on the clock of deadlines. Default 0. */
  readonly since?: number
  /** What it needs in addition to a slot of its pool. */
  readonly needs?: TaskNeeds
}

/** The data of a task to register. */
export interface TaskAdmission {
  /** Must not be the id of a kept task. */
  readonly id: string
  /** The name of the subagent that runs it. */
  readonly subagentName: string
  /** The goal of the task. */
  readonly goalPrompt: string
  /** The owner, to whom the end is delivered. */
  readonly owner: string
  /** Aborting it cancels the task. */
  readonly abortController?: AbortController | undefined
  /** The deadline, in ms after the start of the run. */
  readonly timeoutMs?: number | undefined
  /** How long the run may take to stop after the deadline, in ms. */
  readonly graceMs: number
  /** Whether the caller waits for the task in the foreground. It then takes no slot, unless it is a command. */
  readonly isForeground?: boolean | undefined
  /** Whether it is a note, which takes no slot. */
  readonly isNote?: true | undefined
  /** Whether its runs save their progress. Time in which they only wait does not count. */
  readonly isDurable?: boolean | undefined
  /** The pool of its slot. Default: `task`. */
  readonly pool?: SlotPool | undefined
  /** The task whose run launches it. */
  readonly parentId?: string | undefined
  /** How many tasks are above it. */
  readonly depth?: number | undefined
  /** How it waits if there is no slot. Default: it is refused. */
  readonly ticket?: QueueTicket | undefined
  /** The tasks that must end before it starts. */
  readonly after?: readonly string[] | undefined
  /** The tasks of `after` that have not ended. While this list is set, even if it is empty, the task is held in the queue and needs a ticket. */
  readonly waitsFor?: readonly string[] | undefined
  /** Its concurrency key. The `needs` of its ticket give the meaning. */
  readonly concurrencyKey?: string | undefined
  /** What its runs may use. */
  readonly budget?: TaskBudget | undefined
  /** The task that it continues. */
  readonly previous?: { readonly id: string; readonly session?: TaskSession } | undefined
  /** Set for a command. Default: a subagent. */
  readonly kind?: CommandFields['kind'] | undefined
  /** The program and its arguments. */
  readonly command?: CommandFields['command'] | undefined
  /** What a store keeps of its run. Absent if the caller runs it. */
  readonly run?: Readonly<Record<string, unknown>> | undefined
}

interface TransitionFields {
  /** The sequence number of the change, strictly increasing. */
  readonly seq: number
  /** The task that changed. */
  readonly taskId: string
  /** The task's owner after the change. */
  readonly owner: string
  /** When it changed, in ms since the epoch. */
  readonly at: number
  /** The record immediately after this change. */
  readonly record: AsyncTaskInfo
}

/** A task was registered (`from` is null), has started, waits for its next run, or has ended. */
export interface StatusTransition extends TransitionFields {
  /** Discriminates the union of transitions. */
  readonly kind: 'status'
  /** The status before; null for a registration. */
  readonly from: AsyncTaskStatus | null
  /** The status after. */
  readonly to: AsyncTaskStatus
}

/** The delivery state of a result changed. */
export interface DeliveryTransition extends TransitionFields {
  /** Discriminates the union of transitions. */
  readonly kind: 'delivery'
  /** The state before. */
  readonly from: DeliveryStatus
  /** The state after. */
  readonly to: DeliveryStatus
  /** The lease that took, acknowledged or released the result, if any. */
  readonly deliveryId?: string
}

/** A task was transferred to another owner. */
export interface OwnerTransition extends TransitionFields {
  /** Discriminates the union of transitions. */
  readonly kind: 'owner'
  /** The owner before. */
  readonly from: string
  /** The owner after. */
  readonly to: string
}

/** A record was removed from the history. */
export interface HistoryTransition extends TransitionFields {
  /** Discriminates the union of transitions. */
  readonly kind: 'history'
  /** The record was in the history. */
  readonly from: 'retained'
  /** The record was removed. */
  readonly to: 'pruned'
}

/** One change of one task. The records of all changes are sufficient to rebuild the registry. */
export type TaskTransition = StatusTransition | DeliveryTransition | OwnerTransition | HistoryTransition
