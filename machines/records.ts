/** The types that the machines of tasks share: records, ends and deliveries. */
import type { AsyncTaskStatus, StatusOf } from './task-status.js'

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
  /** How long a run may be without output and progress, in ms. */
  readonly idleMs?: number
  /** What the runs have used in total. */
  readonly spent?: SpentTotals
  /** The last progress that the run reported. */
  readonly progress?: TaskProgress
  /**
   * The end of the output, in at most 1000 characters. Set for a task that was cancelled or overdue, and for a command. Absent if the result ends with
   * the same text.
   */
  readonly outputTail?: string
  /** The path of the file with the whole output (option `outputFiles`). Absent if the task has written nothing, or the file could not be made. */
  readonly outputFile?: string
}

/** A task that waits for a slot, for other tasks or for its next run. */
export interface QueuedTaskInfo extends TaskFields {
  /** Queued: it holds no slot. */
  readonly status: 'queued'
  /** The controller of the task. Aborting it cancels the task. */
  readonly abortController?: AbortController
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
  /** The controller of the task. Aborting it cancels the task. */
  readonly abortController?: AbortController
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
  readonly status: StatusOf<'succeeded'>
  /** Never set: the task has ended. */
  readonly abortController?: never
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
  readonly status: StatusOf<'failed'>
  /** Never set: the task has ended. */
  readonly abortController?: never
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
  readonly status: StatusOf<'stopped'>
  /** Never set: the task has ended. */
  readonly abortController?: never
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

/**
 * A frozen snapshot of one task: the record of a task with one of these statuses, by default any. `AsyncTaskInfo<'failed'>` has an `error`, and
 * `AsyncTaskInfo<TerminalStatus>` has ended. Only `abortController` and `cause` are the original objects and not copies.
 */
export type AsyncTaskInfo<Status extends AsyncTaskStatus = AsyncTaskStatus> = Extract<
  ActiveTaskInfo | SettledTaskInfo,
  { readonly status: Status }
>

/** The error of a failed task. */
export type TaskFailure = Pick<FailedTaskInfo, 'error' | 'errorName' | 'errorCode' | 'cause'>

/** How a task ended. */
export type Settlement =
  | { readonly status: StatusOf<'succeeded'>; readonly output: OutputObject }
  | ({ readonly status: StatusOf<'failed'>; readonly lateOutput?: OutputObject } & TaskFailure)
  | { readonly status: StatusOf<'stopped'>; readonly cancelReason?: string }
