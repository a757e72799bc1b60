/** The types that the machines of tasks share: the record of a task, its end, and its delivery. No behaviour. */
import type { AsyncTaskStatus } from './task-status.js'

/**
 * The delivery of the result.
 * `none`: there is no message to deliver (the task runs, was cancelled, or its owner was released). `owed`: the message must be
 * delivered to the owner. `leased`: a message that carries it has been sent, but not accepted yet. `delivered`: it was accepted.
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
  /** Unique among all questions of the task. */
  readonly id: string
}

/** The answer to a question, with the fields of MCP's elicitation result. */
export interface TaskAnswer {
  /** `accept`: `content` has the answer. `decline`: the question was declined. `cancel`: it was dismissed without a choice. */
  readonly action: 'accept' | 'decline' | 'cancel'
  /** The answer; it matches the schema of the question. */
  readonly content?: Readonly<Record<string, unknown>>
}

/** What the record of a command has besides that of any task. */
export interface CommandFields {
  /** A program that was started as a command; absent for every other task. */
  readonly kind?: 'command'
  /** The program and its arguments, or the command line of a shell. */
  readonly command?: readonly string[]
  /** The id of its process, once it has started. */
  readonly pid?: number
  /** Its exit code; absent while it runs, and when a signal ended it. */
  readonly exitCode?: number
  /** The signal that ended it. */
  readonly signal?: string
  /** How many processes it had left in its process group, which were ended when it had; absent for none. */
  readonly endedProcesses?: number
}

/** How a program that runs as a command has started or ended. */
export type ProgramFacts = Omit<CommandFields, 'kind' | 'command'>

/** An earlier run of a task, which was repeated. */
export interface TaskAttempt {
  /** Which run it was, from 1. */
  readonly number: number
  /** When it started, in ms since the epoch. */
  readonly startedAt: number
  /** When it ended, in ms since the epoch; absent when its process died. */
  readonly endedAt?: number
  /** Why it was repeated, in words; at most 500 characters. */
  readonly error: string
}

/** What the runs of a task have used. */
export interface SpentTotals {
  /** Tokens of models. */
  readonly tokens?: number
  /** In the currency of the host. */
  readonly cost?: number
  /** Turns, calls, or whatever the host counts. */
  readonly steps?: number
  /** The time of all runs; counted where it is limited. */
  readonly seconds?: number
}

/** How much the runs of a task may use in all. */
export interface TaskBudget extends SpentTotals {
  /** How long a run may take to conclude once it has used more, in ms. Default 30000. */
  readonly wrapUpMs?: number
}

/** The conversation of a program or an agent, with which a task can be continued. */
export interface TaskSession {
  /** What the program or agent calls it. */
  readonly id: string
  /** The working directory that it belongs to. */
  readonly cwd?: string | undefined
}

interface TaskFields extends CommandFields {
  /** Unique among the retained records. */
  readonly id: string
  /** The name of the subagent that runs it. */
  readonly subagentName: string
  /** The goal of the task. */
  readonly goalPrompt: string
  /** The owner, to whom the end is delivered. */
  readonly owner: string
  /** When it was registered, in ms since the epoch. */
  readonly launchedAt: number
  /** The sequence number of the last change of its status: later changes have greater numbers. */
  readonly seq: number
  /** The state of the message about its end. */
  readonly delivery: DeliveryStatus
  /** When a message that carried the end was accepted, in ms since the epoch. */
  readonly notifiedAt?: number
  /** The result may have been delivered before: the process that did it died before it could know. */
  readonly isRepeat?: boolean
  /** When its run started, in ms since the epoch; absent when that was at its launch. */
  readonly startedAt?: number
  /** The deadline, in ms after the start of the run. */
  readonly timeoutMs?: number
  /** Which run of the task this is, from the second one on. */
  readonly attempt?: number
  /** The tasks that had to end before it could start; absent for none. */
  readonly after?: readonly string[]
  /** Those of `after` that have not ended yet; only while it waits for them. */
  readonly waitsFor?: readonly string[]
  /** The key that it was launched with: tasks with the same key run one at a time, unless `limits` allows more. */
  readonly concurrencyKey?: string
  /** The task that it continues, which has ended. */
  readonly continues?: string
  /** The session of its run; of a task that continues another one, at first that of the other one. */
  readonly session?: TaskSession
  /** How many messages to its run were accepted; absent when there were none. */
  readonly messagesSent?: number
  /** Its caller waits for it in the foreground; absent in the background, and when it has ended. */
  readonly isForeground?: true
  /** A text that no run has produced, such as that of a schedule: its output has it as `final_message`. Absent for every task that runs. */
  readonly isNote?: true
  /** The task whose run launched it; it may have ended. */
  readonly parentId?: string
  /** How many tasks are above it: 1 for a task that the run of another one launched. Absent for the others. */
  readonly depth?: number
  /** The last ten of its earlier runs. */
  readonly attempts?: readonly TaskAttempt[]
  /** What its runs may use in all. */
  readonly budget?: TaskBudget
  /** What its runs have used. */
  readonly spent?: SpentTotals
  /** The last progress that its run reported. */
  readonly progress?: TaskProgress
  /**
   * The end of what it wrote, at most 1000 characters: of a task that was cancelled or exceeded its deadline, and of a command whose result does not
   * end with it.
   */
  readonly outputTail?: string
  /** The controller that was registered with it: aborting it cancels the task. */
  readonly abortController?: AbortController
}

/** A task that waits for a slot: its run has not started. */
export interface QueuedTaskInfo extends TaskFields {
  /** Queued: it holds no slot. */
  readonly status: 'queued'
  /** The questions that the last run of a durable task has left open; absent when there are none. */
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

/** A task that runs. */
export interface RunningTaskInfo extends TaskFields {
  /** Running: it has not ended. */
  readonly status: 'running'
  /** The open questions of its run; absent when there are none. */
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
  /** The ids of the tasks that its run had launched and that had not ended when it did: they passed to its owner. */
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
  /** The name of the error that the run threw, such as `TypeError`; absent for a plain `Error`. */
  readonly errorName?: string
  /** The code of the error that the run threw, such as `ENOENT`, if it has one. */
  readonly errorCode?: string
  /**
   * What the run threw, as it was: with its stack and its own cause. Not enumerable: copies and JSON of the record, and so restored
   * records, do not have it.
   */
  readonly cause?: unknown
  /** The ids of the tasks that its run had launched and that had not ended when it did: they passed to its owner. */
  readonly runningChildren?: readonly string[]
  /** What its run returned after the deadline, within the grace period; absent when that was nothing. */
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
  /** Why it was cancelled, in words; absent when nobody said. At most 1000 characters. */
  readonly cancelReason?: string
}

/** A task that has ended. */
export type SettledTaskInfo = CompletedTaskInfo | FailedTaskInfo | CancelledTaskInfo

/** A task that has not ended. */
export type ActiveTaskInfo = QueuedTaskInfo | RunningTaskInfo

/**
 * A frozen snapshot of one task; `status` discriminates the union. Only its `abortController` is the live one that the task was registered with, and the
 * `cause` of a failed one is what was thrown.
 */
export type AsyncTaskInfo = ActiveTaskInfo | SettledTaskInfo

/** Why a task failed. */
export type TaskFailure = Pick<FailedTaskInfo, 'error' | 'errorName' | 'errorCode' | 'cause'>

/** The output of a task's machine. */
export type Settlement =
  | { readonly status: 'completed'; readonly output: OutputObject }
  | ({ readonly status: 'failed'; readonly lateOutput?: OutputObject } & TaskFailure)
  | { readonly status: 'cancelled'; readonly cancelReason?: string }

/** What a limit counts: tasks of the host, tasks that a run has launched, or programs as jobs. */
export type SlotPool = 'task' | 'child' | 'command'

/** How often the runs of a subagent may start: at most `limit` times in any `perMs` milliseconds. */
export interface StartRate {
  /** How many starts: an integer from 1 to 500. */
  readonly limit: number
  /** In how many ms. */
  readonly perMs: number
}

/** A slot that is known by its name: of a key, or of a subagent. */
export interface NamedSlot {
  /** Whether it is that of a `concurrencyKey`, or of a subagent with `maxConcurrent`. */
  readonly kind: 'key' | 'subagent'
  /** The key, or the name of the subagent. */
  readonly name: string
  /** How many tasks may hold it at once. */
  readonly max: number
}

/** What a task needs besides a slot of its pool. */
export interface TaskNeeds {
  /** The named slots, of which it takes all at once. */
  readonly slots: readonly NamedSlot[]
  /** The name of its subagent, and how often its runs may start. */
  readonly rate?: StartRate & { readonly name: string }
}

/** How a task waits for a slot. */
export interface QueueTicket {
  /** A higher one goes first. */
  readonly priority: number
  /** The bytes that are held for it. */
  readonly bytes: number
  /** Since when its priority rises, in ms on the clock of deadlines. Default 0. */
  readonly since?: number
  /** What it needs besides a slot of its pool. */
  readonly needs?: TaskNeeds
}

/** The data of a task that is to be registered. */
export interface TaskAdmission {
  /** No retained task may have it. */
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
  /** The caller waits for the task in place: it takes no slot, unless it is a command. */
  readonly isForeground?: boolean | undefined
  /** It is a note: it takes no slot. */
  readonly isNote?: true | undefined
  /** Its runs save their progress: the time in which they only wait does not count. */
  readonly isDurable?: boolean | undefined
  /** Whose slot it takes. Default: `task`. */
  readonly pool?: SlotPool | undefined
  /** The task whose run launches it. */
  readonly parentId?: string | undefined
  /** How many tasks are above it. */
  readonly depth?: number | undefined
  /** It waits when there is no slot. Default: it is refused. */
  readonly ticket?: QueueTicket | undefined
  /** The tasks that have to end before it starts. */
  readonly after?: readonly string[] | undefined
  /** Those of them that have not ended. Its place is held back while there is such a list, also an empty one: it needs a ticket then. */
  readonly waitsFor?: readonly string[] | undefined
  /** Its key; what that means is in the `needs` of its ticket. */
  readonly concurrencyKey?: string | undefined
  /** What its runs may use. */
  readonly budget?: TaskBudget | undefined
  /** The task that it continues. */
  readonly previous?: { readonly id: string; readonly session?: TaskSession } | undefined
  /** It runs a program. Default: a subagent. */
  readonly kind?: CommandFields['kind'] | undefined
  /** The program and its arguments. */
  readonly command?: CommandFields['command'] | undefined
  /** What a store keeps of its run; absent when the caller runs it. */
  readonly run?: Readonly<Record<string, unknown>> | undefined
}

interface TransitionFields {
  /** The sequence number of the change; strictly increasing. */
  readonly seq: number
  /** The task that changed. */
  readonly taskId: string
  /** The task's owner after the change. */
  readonly owner: string
  /** When it changed, in ms since the epoch. */
  readonly at: number
  /** The record as it was immediately after this change. */
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

/** The delivery of a task's end changed. */
export interface DeliveryTransition extends TransitionFields {
  /** Discriminates the union of transitions. */
  readonly kind: 'delivery'
  /** The state before. */
  readonly from: DeliveryStatus
  /** The state after. */
  readonly to: DeliveryStatus
  /** The lease that took, acknowledged or released it, if there was one. */
  readonly deliveryId?: string
}

/** A task was handed to another owner. */
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

/** One change of one task. The records of all changes are enough to rebuild the registry. */
export type TaskTransition = StatusTransition | DeliveryTransition | OwnerTransition | HistoryTransition
