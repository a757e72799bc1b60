/**
 * The protocol between the page in the browser and its server. Texts of tasks are sent up to a maximum length. Separate requests read whole values.
 *
 * `GET /api/events` is a stream of Server-Sent Events. Its events are `hello`, `tasks` (pieces of the snapshot), `ready`, and then `changes`. A comment
 * each second shows that the connection is alive.
 *
 * Only `ready` and the `changes` after it have an id: `<random id of the server process>-<sequence number>`. A page that reconnects sends the last id as
 * `Last-Event-ID` and gets the changes since then. If the server no longer knows those changes, it sends a new snapshot. A reader that is too slow gets
 * `hello` again on the same stream, followed by a new snapshot.
 */
import type { AsyncTaskStatus, TerminalStatus } from '../../machines/task-status.js'
import type {
  DeliveryStatus,
  TaskAttempt,
  TaskBudget,
  TaskAnswer,
  TaskProgress,
  TaskQuestion,
  SpentTotals,
} from '../../machines/records.js'

/** The two kinds of task: async tasks of an agent host, and command tasks of instances. */
export type PageTaskKind = 'async' | 'command'

/** The state of a task that has ended. */
export type PageTaskEnd = TerminalStatus

export type PageTaskState = AsyncTaskStatus | 'asking' | 'wrapping' | 'stopping' | 'timed-out'

/** A moment that the timeline marks on the bar of a task. */
export interface TaskMark {
  readonly at: number
  readonly kind: 'question' | 'answer' | 'message' | 'attempt' | 'leased' | 'delivered' | 'owed'
}

/** A command on the timeline, drawn in the bar of its command task. */
export interface CommandBar {
  readonly tool: string
  /** `cancelled`: the command was running when its task was cancelled. `skipped`: the command never ran. */
  readonly state: 'waiting' | 'running' | 'completed' | 'failed' | 'cancelled' | 'skipped'
  readonly startedAt?: number
  readonly endedAt?: number
}

/** A task as a row of the timeline and of the table. Times are in ms since the epoch, by the server's clock. */
export interface PageTask {
  /** `async:<id>` or `command:<id>`. The key is unique on the page and part of the address of the task. */
  readonly key: string
  readonly kind: PageTaskKind
  readonly id: string
  /** The goal or command line of an async task, or the name of a command task; at most 200 characters. */
  readonly title: string
  /** The owner of an async task, or the instance of a command task. */
  readonly group: string
  /** The subagent of an async task. */
  readonly subagent?: string
  readonly state: PageTaskState
  readonly createdAt: number
  /** Absent until the task has started for the first time. */
  readonly startedAt?: number
  readonly endedAt?: number
  readonly parentKey?: string
  /** The number of the run, from the second run on. */
  readonly attempt?: number
  readonly progress?: TaskProgress
  readonly delivery?: DeliveryStatus
  /** The number of open questions. */
  readonly questions?: number
  /** The first 20 commands of a command task. */
  readonly commands?: readonly CommandBar[]
  readonly commandCount?: number
  /** The last 20 marks. */
  readonly marks?: readonly TaskMark[]
  /** At most 200 characters. */
  readonly error?: string
  /** How long the program of an ended task may take to end, in ms, while it is being stopped. */
  readonly stopsWithinMs?: number
  /** The sequence number of the last change of this row. */
  readonly seq: number
}

export interface PastTaskRow extends Pick<
  PageTask,
  'key' | 'kind' | 'id' | 'title' | 'group' | 'subagent' | 'state' | 'createdAt'
> {
  readonly endedAt: number
  /** At most 20,000 characters. */
  readonly result?: string
  /** At most 2000 characters. */
  readonly error?: string
  /** Whether the subagent or the instance of the task still exists. */
  readonly canRunAgain: boolean
}

/**
 * A page of the history, the latest task first: `GET /api/history?kind=async&text=…&status=…&owner=…&subagent=…&before=…`. For command tasks,
 * `kind=command` with `instance=…` instead of `owner` and `subagent`.
 */
export interface PageHistory {
  readonly tasks: readonly PastTaskRow[]
  /** The value of `before` for the next page; absent on the last page. */
  readonly next?: string
}

/** An event in the history of one task. */
export interface TaskEvent {
  readonly at: number
  /** `queued`, `started`, `asked`, `answered`, `leased`, … */
  readonly event: string
  /** The state of the task after the event. */
  readonly state: PageTaskState
  /** At most 200 characters. */
  readonly detail?: string
}

/** A value of a task as JSON or text. If `isCut` is true, `text` has only the beginning of the value, and further requests read the rest as `ValuePiece`s. */
export interface CutValue {
  readonly type: 'json' | 'text'
  readonly text: string
  /**
   * The size of the whole value in UTF-8, in bytes. If only a part of the value was kept, the size of that part. With `hasMore`, the size of the part
   * that the server has read.
   */
  readonly bytes: number
  readonly isCut: boolean
  /** Set if the server has not read the value to its end, so that the size of the whole value is unknown. */
  readonly hasMore?: true
}

/**
 * A piece of the first 8 MiB of a value: `GET /api/tasks/:key/value/:name?offset=`. Without `offset`, the response is the whole value as a file. The
 * values of an async task are `goal`, `result`, `error` and `cause`. Each command of a command task has `args.<index>` and `result.<index>`.
 */
export interface ValuePiece {
  readonly text: string
  /** The offset of `text` in the whole value, in bytes. If the requested offset is inside a character, this is the start of the next character. */
  readonly offset: number
  /** The size of the whole value in UTF-8, in bytes. With `hasMore`, the size of the part that the server has read. */
  readonly bytes: number
  /** Whether this is the last piece. */
  readonly isEnd: boolean
  /** Set if the server has not read the value to its end, so that the size of the whole value is unknown. */
  readonly hasMore?: true
}

/** An image in a result; `GET /api/tasks/:key/image/:index` returns its bytes. */
export interface ResultImage {
  readonly index: number
  readonly mimeType: string
  readonly bytes: number
}

/** The details of a task: `GET /api/tasks/:key`. */
export interface PageTaskDetail {
  readonly task: PageTask
  /** The goal of an async task. */
  readonly goal?: CutValue
  /** The commands of a command task with their arguments, results and errors. */
  readonly commands?: readonly (CommandBar & {
    readonly args: CutValue
    readonly result?: CutValue
    readonly error?: string
  })[]
  readonly result?: CutValue
  readonly images?: readonly ResultImage[]
  readonly error?: {
    readonly message: CutValue
    readonly name?: string
    readonly code?: string
    readonly cause?: CutValue
  }
  readonly cancelReason?: string
  /** The fields of the record that are shown as they are. */
  readonly facts?: readonly { readonly name: string; readonly text: string }[]
  readonly questions?: readonly TaskQuestion[]
  /** The last 20 questions of the task that are no longer open, oldest first. */
  readonly answers?: readonly ClosedQuestion[]
  readonly attempts?: readonly TaskAttempt[]
  readonly budget?: TaskBudget
  readonly spent?: SpentTotals
  readonly timeoutMs?: number
  /** The http or https address of the task's trace. */
  readonly traceUrl?: string
  readonly program?: {
    readonly command: readonly string[]
    readonly pid?: number
    readonly exitCode?: number
    readonly signal?: string
  }
  /** The last 200 events. */
  readonly events: readonly TaskEvent[]
  /** The keys of the first 200 tasks that runs of this task have launched. */
  readonly children?: readonly string[]
  /** The keys of the tasks that must end before this task starts. */
  readonly after?: readonly string[]
  /** The keys of the first 200 tasks that wait, or have waited, for this task to end. */
  readonly neededBy?: readonly string[]
  readonly can: {
    readonly cancel: boolean
    /** Set if a caller waits for the task in the foreground, and the task can move to the background. */
    readonly detach?: boolean
    /** Set if the task runs, and can be asked to conclude. */
    readonly conclude?: boolean
    readonly runAgain: boolean
    /** The reason why the task cannot run again. */
    readonly whyNot?: string
  }
  /** A shell command and code that create a similar task. */
  readonly copyAs: { readonly curl?: string; readonly typescript: string }
}

/** A question that is no longer open. */
export interface ClosedQuestion {
  readonly id: string
  /** At most 2,000 characters. */
  readonly message: string
  readonly askedAt: number
  readonly closedAt: number
  /** `withdrawn`: the run stopped waiting before an answer came. */
  readonly action: TaskAnswer['action'] | 'withdrawn'
  /** `page`: a person answered on a page. `host`: the host or its agent answered. Absent for a withdrawn question. */
  readonly by?: 'page' | 'host'
  /** The content of an accepted answer; at most the first 4000 characters of its JSON. */
  readonly content?: CutValue
}

/** A piece of live output: `GET /api/tasks/:key/output?cursor=`. */
export interface PageOutput {
  readonly text: string
  readonly cursor: number
  /** The number of bytes between the requested cursor and `text` that are no longer kept. */
  readonly dropped: number
  readonly isEnd: boolean
}

/**
 * The state of the deliveries to an owner. A result is owed until a message carries it, leased while that message is being delivered, and then
 * delivered.
 */
export interface OwnerDelivery {
  readonly owner: string
  readonly owed: number
  readonly leased: number
  readonly delivered: number
  /** The state of the owner's delivery machine; `none` if no auto-trigger starts turns with the owner's results. */
  readonly state: 'none' | 'idle' | 'gathering' | 'busy' | 'backing-off' | 'delivering'
  /** When the next attempt to deliver is due, in ms since the epoch. */
  readonly until?: number
  /** Why results still wait, and what to do. */
  readonly reason: string
  /** The last messages, newest first; at most 50, and 16 KiB in total. */
  readonly messages: readonly DeliveryMessage[]
  /** The keys of tasks whose results are owed or leased; at most 200, and 16 KiB in total. */
  readonly waiting: readonly string[]
}

/** A message that carried results. `released`: the agent did not accept the message, so its results are owed again. */
export interface DeliveryMessage {
  readonly deliveryId: string
  readonly at: number
  readonly endedAt?: number
  readonly outcome: 'open' | 'accepted' | 'released'
  /** The keys of the tasks whose results the message carried; at most 50, and 4 KiB in total. */
  readonly tasks: readonly string[]
}

export interface PageInstance {
  readonly id: string
  readonly type: string
  readonly description?: string
  readonly state: 'connecting' | 'connected' | 'disconnected'
  readonly connectedAt?: number
  /** When the instance was paused, in ms since the epoch; absent if the instance is not paused. */
  readonly pausedSince?: number
  readonly queued: number
  /** The key of the running task; absent if none runs. */
  readonly running?: string
  readonly tools: readonly {
    readonly name: string
    readonly description?: string
    readonly inputSchema: Readonly<Record<string, unknown>>
  }[]
}

/** A pause, a schedule or a monitor. At most 1000 schedules are listed, those that fire first, and at most 1000 monitors. */
export interface HostRow {
  readonly kind: 'pauses' | 'schedules' | 'monitors'
  /** The id of the schedule or monitor. For a pause, `all` or `owner:` followed by the owner. */
  readonly id: string
  /** Empty for a pause of all owners. */
  readonly owner: string
  /** For a pause, who requested it. For a schedule, when it fires, its time zone and its action. For a monitor, its source and pattern. */
  readonly detail: string
  /** When the pause began, when the schedule fires next, or when the monitor ends at the latest, in ms since the epoch. */
  readonly at: number
}

/**
 * The number of actors in each state, by the id of their state machine and by state. The machines are `asyncTask`, `delivery`, `commandTask`, `lane` and `instance`. A nested
 * state is named by its path, such as `holding.polling`. The state of a task is only the last name of its path, such as `stopping`. Ended tasks count as long as the
 * journal has them.
 */
export type MachineCounts = Readonly<Record<string, Readonly<Record<string, number>>>>

/** What was measured in ten seconds. */
export interface HealthPoint {
  /** When the ten seconds began, in ms since the epoch. */
  readonly at: number
  readonly started: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
  /** The median (`p50`) and the 99th percentile of the durations of tasks that ended, from creation to end, in ms. Absent if no task ended. */
  readonly p50?: number
  readonly p99?: number
  /** How many tasks ran, how many were queued, and how many results were not delivered, at the end of the ten seconds. */
  readonly running: number
  readonly queued: number
  readonly owed: number
}

/** A subagent that a person can launch. */
export interface PageSubagent {
  readonly name: string
  readonly description?: string
  /** The JSON Schema of `context` in a `LaunchRequest`; absent if the subagent has no schema, or the schema is too large to send. */
  readonly contextSchema?: Readonly<Record<string, unknown>>
}

/** `GET /api/subagents`. */
export interface PageSubagents {
  /** The owner of a launched task if the request names none. */
  readonly owner: string
  readonly subagents: readonly PageSubagent[]
  /** The JSON Schema of `options` in a `LaunchRequest`. */
  readonly optionsSchema: Readonly<Record<string, unknown>>
}

/** The first event of a stream and of a new snapshot. */
export interface Hello {
  readonly version: string
  /** The server's clock, in ms since the epoch. */
  readonly now: number
  readonly hasAsync: boolean
  readonly hasCommands: boolean
  /** Whether the host has subagents that a person can launch. */
  readonly canLaunch: boolean
  /** The maximum number of tasks that the journal keeps. */
  readonly maxTasks: number
  /** Whether the changes since `Last-Event-ID` follow instead of a snapshot. */
  readonly resumed: boolean
  /** What an empty list suggests: calls of this package (`code`), or prompts for the agent of an MCP client (`mcp`). */
  readonly hints: 'code' | 'mcp'
  /** The address of the task server's REST interface, for the code under `Copy as`. */
  readonly restUrl?: string
}

/** A part of the snapshot: at most 500 tasks, newest first. */
export interface TasksEvent {
  readonly tasks: readonly PageTask[]
}

/** The end of the snapshot, or of the changes since `Last-Event-ID`. */
export interface ReadyEvent {
  /** At most 1,000. */
  readonly owners: readonly OwnerDelivery[]
  /** The number of owners with owed results beyond those in `owners`. */
  readonly ownersLeftOut: number
  readonly host: readonly HostRow[]
  readonly instances: readonly PageInstance[]
  readonly machines: MachineCounts
  readonly health: readonly HealthPoint[]
}

/** The changes of the last 50 ms. Unchanged parts are absent. */
export interface ChangesEvent {
  readonly now: number
  readonly tasks?: readonly PageTask[]
  /** The keys of tasks that the journal no longer has. */
  readonly removed?: readonly string[]
  /** The owners that have changed, each as a whole. The same owner is sent at most every 250 ms. */
  readonly owners?: readonly OwnerDelivery[]
  readonly ownersLeftOut?: number
  readonly removedOwners?: readonly string[]
  /** All rows of the host; absent if no row has changed. Sent at most once a second. */
  readonly host?: readonly HostRow[]
  /** All instances; absent if no instance has changed. */
  readonly instances?: readonly PageInstance[]
  readonly machines?: MachineCounts
  /** The points that are new or have changed. */
  readonly health?: readonly HealthPoint[]
}

/**
 * Actions are POST requests with a JSON body. The response is `200` with `ActionDone`, or an `ActionError` with 400, 404, 409, 413 or 503.
 * - `/api/tasks/:key/cancel` (`CancelRequest`), `/api/tasks/:key/detach`, `/api/tasks/:key/run-again`, `/api/history/:key/run-again`
 * - `/api/tasks/:key/answer` (`AnswerRequest`), `/api/tasks/:key/message` (`MessageRequest`)
 * - `/api/subagents/:name/launch` (`LaunchRequest`), `/api/instances/:id/submit` (`SubmitRequest`)
 * - `/api/instances/:id/pause`, `/api/instances/:id/resume`, `/api/schedules/:id/cancel`, `/api/monitors/:id/cancel`
 * - `/api/pauses/:id/pause` (with the optional field `deliveries`: `hold` or `send`), `/api/pauses/:id/resume`
 */
export interface ActionDone {
  /** The key of the new task, for `launch`, `run-again` and `submit`. */
  readonly key?: string
  /** How long the program of the cancelled task may take to end, in ms, for `cancel`. */
  readonly stopsWithinMs?: number
}

/** The reason why a request was refused. Also used for 401 (no valid token) and 403 (a foreign host or origin). */
export interface ActionError {
  readonly error: string
  readonly code: string
  /** The wrong field of the request, such as `content.color` of an answer, or `commands.0.args`. */
  readonly field?: string
}

/** The maximum number of tasks in a `BulkRequest`. */
export const MAX_BULK = 200

/** Cancels tasks or runs them again, in order: `POST /api/bulk`. The response is a `BulkReport`. */
export interface BulkRequest {
  readonly action: 'cancel' | 'run-again'
  /** At most `MAX_BULK` keys. */
  readonly keys: readonly string[]
  /** The reason for a cancellation. */
  readonly reason?: string
}

export interface BulkReport {
  /** The number of tasks that were cancelled or run again. */
  readonly done: number
  /** Why the other tasks were refused, one entry for each reason. */
  readonly refused: readonly {
    readonly error: string
    readonly code: string
    readonly count: number
    /** The keys of the first 10 tasks with this reason. */
    readonly keys: readonly string[]
  }[]
}

export interface CancelRequest {
  readonly reason?: string | undefined
}

export interface AnswerRequest {
  readonly questionId: string
  readonly answer: {
    readonly action: 'accept' | 'decline' | 'cancel'
    readonly content?: Readonly<Record<string, unknown>>
  }
}

/** Sends a message to the run of a task. */
export interface MessageRequest {
  readonly message: string
}

/** Launches a task of a subagent: `POST /api/subagents/:name/launch`. */
export interface LaunchRequest {
  readonly goal: string
  /** Default: the owner of the host. */
  readonly owner?: string
  /** An object that matches `contextSchema` of the subagent. */
  readonly context?: Readonly<Record<string, unknown>>
  /** An object that matches `optionsSchema` of `PageSubagents`. */
  readonly options?: Readonly<Record<string, unknown>>
}

/** Submits a command task. */
export interface SubmitRequest {
  /** The name of the task. Default: the names of its tools. */
  readonly name?: string
  readonly commands: readonly { readonly tool: string; readonly args: Readonly<Record<string, unknown>> }[]
}
