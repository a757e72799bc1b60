/** The types that the machines of tasks share: records, ends and deliveries. */
import type { AsyncTaskStatus } from './task-status.js'

/**
 * The delivery of the result. `none`: there is no message to deliver (the task is active, was cancelled, or its owner was released). `owed`: the
 * result must still be delivered to the owner. `leased`: a message contains the result, and is not accepted yet. `delivered`: that message was
 * accepted.
 */
export type DeliveryStatus = 'none' | 'owed' | 'leased' | 'delivered'

/** The output of a run. It may have other fields, which are kept as well. */
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
  /** The JSON Schema of the answer's content: an object whose properties are strings, numbers, booleans or enums. */
  readonly schema: Readonly<Record<string, unknown>>
  /** When the question was asked, in ms since the epoch. */
  readonly askedAt: number
}

/** An open question. */
export interface TaskQuestion extends AskedQuestion {
  /** The id of the question. Unique within the task. */
  readonly id: string
}

/** The answer to a question, with the fields of MCP's elicitation result. */
export interface TaskAnswer {
  /** `accept`: `content` has the answer. `decline`: the person or agent refuses to answer. `cancel`: the question was dismissed without a choice. */
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
  /** The process id of the program, once it has started. */
  readonly pid?: number
  /** The exit code of the program. Absent while the program runs, and if a signal ended it. */
  readonly exitCode?: number
  /** The signal that ended the program. */
  readonly signal?: string
  /** How many other processes of its process group were still running when the program ended. They were ended too. Absent if there were none. */
  readonly endedProcesses?: number
}

/** How a command's program has started or ended. */
export type ProgramFacts = Omit<CommandFields, 'kind' | 'command'>

/** An earlier run of a task that was retried. */
export interface TaskAttempt {
  /** The number of the run, from 1. */
  readonly number: number
  /** When the run started, in ms since the epoch. */
  readonly startedAt: number
  /** When the run ended, in ms since the epoch. Absent if its process died. */
  readonly endedAt?: number
  /** Why the task was retried, in at most 500 characters. */
  readonly error: string
}

/** What the runs of a task have used in total. */
export interface SpentTotals {
  /** The number of model tokens. */
  readonly tokens?: number
  /** The cost, in the currency of the host. */
  readonly cost?: number
  /** The number of turns, calls, or other units of the host. */
  readonly steps?: number
  /** The duration of all runs, in seconds. Only measured if the budget limits it. */
  readonly seconds?: number
}

/** The maximum that the runs of a task may use in total. */
export interface TaskBudget extends SpentTotals {
  /** How long a run may take to conclude after a budget is exceeded, in ms. Default 30000. */
  readonly wrapUpMs?: number
}

/** A conversation of a program or agent. Another task can continue it. */
export interface TaskSession {
  /** The id of the session, given by the program or agent. */
  readonly id: string
  /** The working directory of the session. */
  readonly cwd?: string | undefined
}

interface TaskFields extends CommandFields {
  /** The id of the task. Unique among the kept records. */
  readonly id: string
  /** The name of the subagent that runs the task. */
  readonly subagentName: string
  /** What the task must achieve. */
  readonly goalPrompt: string
  /** The owner, to whom the result is delivered. */
  readonly owner: string
  /** When the task was registered, in ms since the epoch. */
  readonly launchedAt: number
  /** The sequence number of the last status change. Later changes have greater numbers. */
  readonly seq: number
  /** The delivery state of the result. */
  readonly delivery: DeliveryStatus
  /** When the message with the result was accepted, in ms since the epoch. */
  readonly notifiedAt?: number
  /** Whether the result may have been delivered before, or is delivered again at the host's request (`redeliver`). */
  readonly isRepeat?: boolean
  /** When the current or last run started, in ms since the epoch. Absent if the first run started at launch. */
  readonly startedAt?: number
  /** The time limit of a run, in ms after its start. */
  readonly timeoutMs?: number
  /** The number of the current or last run. Absent for the first run. */
  readonly attempt?: number
  /** The ids of the tasks for which it had to wait before its start. Absent if there were none. */
  readonly after?: readonly string[]
  /** The ids of those tasks of `after` that have not ended yet. Set only while the task waits for them. */
  readonly waitsFor?: readonly string[]
  /** The concurrency key of the task. Tasks with the same key run one at a time, unless `limits` allows more. */
  readonly concurrencyKey?: string
  /** The id of the ended task that this task continues. */
  readonly continues?: string
  /** The session of the run. At first it is the session of the task that this task continues. */
  readonly session?: TaskSession
  /** How many messages to the run were accepted (`sendToTask`). Absent if there were none. */
  readonly messagesSent?: number
  /** Whether a caller waits for the task in the foreground. Absent in the background and after the task has ended. */
  readonly isForeground?: true
  /** Whether the task is a note: a text such as a scheduled message, rather than the result of a run. The text is `final_message` of its output. */
  readonly isNote?: true
  /** The id of the task whose run launched this task. That task may have ended. */
  readonly parentId?: string
  /** How deep the task is nested: 1 if the run of another task launched it, 2 if that task was launched in the same way. Absent for other tasks. */
  readonly depth?: number
  /** The earlier runs of the task, at most the last ten. */
  readonly attempts?: readonly TaskAttempt[]
  /** The maximum that the runs may use in total. */
  readonly budget?: TaskBudget
  /** What the runs have used in total. */
  readonly spent?: SpentTotals
  /** The last progress that the run reported. */
  readonly progress?: TaskProgress
  /**
   * The end of the output, in at most 1000 characters. Set for a task that was cancelled or overdue, and for a command. Absent if the result ends with
   * the same text.
   */
  readonly outputTail?: string
  /** The controller of the task. Aborting it cancels the task. */
  readonly abortController?: AbortController
}

/** A task that waits for a slot, for other tasks or for its next run. */
export interface QueuedTaskInfo extends TaskFields {
  /** Queued: it holds no slot. */
  readonly status: 'queued'
  /** The questions that the last run of a durable task has left open. Absent if there are none. */
  readonly questions?: readonly TaskQuestion[]
  /** Never set: the task has not ended. */
  readonly completedAt?: never
  /** Never set: the task has not ended. */
  readonly output?: never
  /** Never set: the task has not failed. */
  readonly error?: never
  /** Never set: the task was not cancelled. */
  readonly cancelReason?: never
}

/** A running task. */
export interface RunningTaskInfo extends TaskFields {
  /** Running: its run is under way. */
  readonly status: 'running'
  /** The open questions of the run. Absent if there are none. */
  readonly questions?: readonly TaskQuestion[]
  /** Never set: the task has not ended. */
  readonly completedAt?: never
  /** Never set: the task has not ended. */
  readonly output?: never
  /** Never set: the task has not failed. */
  readonly error?: never
  /** Never set: the task was not cancelled. */
  readonly cancelReason?: never
}

/** A task that ended with an output. */
export interface CompletedTaskInfo extends TaskFields {
  /** Completed: it ended with an output. */
  readonly status: 'completed'
  /** Never set: the questions of an ended task are withdrawn. */
  readonly questions?: never
  /** When the task ended, in ms since the epoch. */
  readonly completedAt: number
  /** The output of its run. */
  readonly output: OutputObject
  /** The ids of child tasks that were still active when the task ended. The owner of the task now owns them. */
  readonly runningChildren?: readonly string[]
  /** Never set: the task did not fail. */
  readonly error?: never
  /** Never set: the task was not cancelled. */
  readonly cancelReason?: never
}

/** A task that ended with an error. */
export interface FailedTaskInfo extends TaskFields {
  /** Failed: it ended with an error. */
  readonly status: 'failed'
  /** Never set: the questions of an ended task are withdrawn. */
  readonly questions?: never
  /** When the task ended, in ms since the epoch. */
  readonly completedAt: number
  /** Never set: a failed task has no output. See `lateOutput`. */
  readonly output?: never
  /** The error, in words. */
  readonly error: string
  /** The name of the error that the run threw, such as `TypeError`. Absent for a plain `Error`. */
  readonly errorName?: string
  /** The code of the error that the run threw, such as `ENOENT`, if any. */
  readonly errorCode?: string
  /** The value that the run threw, with its stack and cause. Not enumerable, so copies, JSON and restored records lack it. */
  readonly cause?: unknown
  /** The ids of child tasks that were still active when the task ended. The owner of the task now owns them. */
  readonly runningChildren?: readonly string[]
  /** What the run returned too late: after its deadline, but within the grace period. */
  readonly lateOutput?: OutputObject
  /** Never set: the task was not cancelled. */
  readonly cancelReason?: never
}

/** A task that was cancelled. */
export interface CancelledTaskInfo extends TaskFields {
  /** Cancelled: it ended without an output or an error. */
  readonly status: 'cancelled'
  /** Never set: the questions of an ended task are withdrawn. */
  readonly questions?: never
  /** When it was cancelled, in ms since the epoch. */
  readonly completedAt: number
  /** Never set: a cancelled task has no output. */
  readonly output?: never
  /** Never set: a cancelled task has no error. */
  readonly error?: never
  /** The reason of the cancellation, if one was given. At most 1000 characters. */
  readonly cancelReason?: string
}

/** A task that has ended. */
export type SettledTaskInfo = CompletedTaskInfo | FailedTaskInfo | CancelledTaskInfo

/** A task that has not ended. */
export type ActiveTaskInfo = QueuedTaskInfo | RunningTaskInfo

/** A frozen snapshot of one task. `status` distinguishes the variants. Only `abortController` and `cause` are the original objects and not copies. */
export type AsyncTaskInfo = ActiveTaskInfo | SettledTaskInfo

/** The error of a failed task. */
export type TaskFailure = Pick<FailedTaskInfo, 'error' | 'errorName' | 'errorCode' | 'cause'>

/** How a task ended. */
export type Settlement =
  | { readonly status: 'completed'; readonly output: OutputObject }
  | ({ readonly status: 'failed'; readonly lateOutput?: OutputObject } & TaskFailure)
  | { readonly status: 'cancelled'; readonly cancelReason?: string }

/** The pool of slots that a task uses. `task`: for tasks of the host. `child`: for tasks launched by runs. `command`: for commands. */
export type SlotPool = 'task' | 'child' | 'command'

/** How often the runs of a subagent may start: at most `limit` times in any `perMs` milliseconds. */
export interface StartRate {
  /** The number of starts, an integer from 1 to 500. */
  readonly limit: number
  /** The period in ms. */
  readonly perMs: number
}

/** A slot of a concurrency key or of a subagent, which a task may need in addition to a slot of its pool. */
export interface NamedSlot {
  /** Whether the slot belongs to a `concurrencyKey`, or to a subagent with `maxConcurrent`. */
  readonly kind: 'key' | 'subagent'
  /** The concurrency key, or the name of the subagent. */
  readonly name: string
  /** How many tasks may hold such a slot at once. */
  readonly max: number
}

/** What a task needs in addition to a slot of its pool. */
export interface TaskNeeds {
  /** The slots of the key and subagent of the task. The task takes all of them at once. */
  readonly slots: readonly NamedSlot[]
  /** How often runs of the subagent may start, with the name of the subagent. */
  readonly rate?: StartRate & { readonly name: string }
}

/** The conditions under which a task waits for a slot. */
export interface QueueTicket {
  /** The priority. Tasks with a higher priority start first. */
  readonly priority: number
  /** The size of the goal and params that are held for the task, in bytes. */
  readonly bytes: number
  /** When the priority began to rise, in ms on the monotonic clock that deadlines use. Default 0. */
  readonly since?: number
  /** What the task needs in addition to a slot of its pool. */
  readonly needs?: TaskNeeds
}

/** What the registry needs to register a task. */
export interface TaskAdmission {
  /** The id of the task. No kept task may have the same id. */
  readonly id: string
  /** The name of the subagent that runs the task. */
  readonly subagentName: string
  /** The goal of the task. */
  readonly goalPrompt: string
  /** The owner, to whom the result is delivered. */
  readonly owner: string
  /** The controller of the task. Aborting it cancels the task. */
  readonly abortController?: AbortController | undefined
  /** The time limit of a run, in ms after its start. */
  readonly timeoutMs?: number | undefined
  /** How long the run may take to stop after the deadline, in ms. */
  readonly graceMs: number
  /** Whether the caller waits for the task in the foreground. The task then takes no slot of its pool, unless it is a command. */
  readonly isForeground?: boolean | undefined
  /** Whether the task is a note, which takes no slot. */
  readonly isNote?: true | undefined
  /** Whether the runs save their progress. Time in which a durable run only waits does not count. */
  readonly isDurable?: boolean | undefined
  /** The pool whose slot the task needs. Default: `task`. */
  readonly pool?: SlotPool | undefined
  /** The id of the task whose run launches this task. */
  readonly parentId?: string | undefined
  /** How deep the task is nested below other tasks. */
  readonly depth?: number | undefined
  /** How the task waits if there is no slot. Without a ticket it is refused. */
  readonly ticket?: QueueTicket | undefined
  /** The ids of the tasks that must end before this task starts. */
  readonly after?: readonly string[] | undefined
  /**
   * The ids of those tasks of `after` that have not ended. While this list is set, even if it is empty, the task is held in the queue. The task then
   * needs a ticket.
   */
  readonly waitsFor?: readonly string[] | undefined
  /** The concurrency key of the task. Its limit is in the `needs` of the ticket. */
  readonly concurrencyKey?: string | undefined
  /** The maximum that the runs may use in total. */
  readonly budget?: TaskBudget | undefined
  /** The task that this task continues. */
  readonly previous?: { readonly id: string; readonly session?: TaskSession } | undefined
  /** Set for a command. Absent for the run of a subagent. */
  readonly kind?: CommandFields['kind'] | undefined
  /** The program and its arguments. */
  readonly command?: CommandFields['command'] | undefined
  /** What a store keeps about the run. Absent if the caller runs the task itself. */
  readonly run?: Readonly<Record<string, unknown>> | undefined
}

interface TransitionFields {
  /** The sequence number of the change. A later change has a greater number. */
  readonly seq: number
  /** The id of the task. */
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
