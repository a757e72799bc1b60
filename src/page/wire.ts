/**
 * The protocol between the page and its server. Every text of a task is limited here; a separate request reads the whole text.
 *
 * `GET /api/events` is a stream of Server-Sent Events: `hello`, `tasks` (pieces of the snapshot), `ready`, and then `changes`. The id of an event is
 * `<run of the server>-<sequence number>`; a request with `Last-Event-ID` gets the changes since, or a new snapshot if they are no longer known. Only
 * `ready` and the `changes` after it have an id. A reader that is too slow gets `hello` again on the same stream, followed by a new snapshot. A comment
 * is sent each second.
 */
import type { AsyncTaskStatus } from '../../machines/task-status.js'
import type {
  DeliveryStatus,
  TaskAttempt,
  TaskBudget,
  TaskAnswer,
  TaskProgress,
  TaskQuestion,
  SpentTotals,
} from '../../machines/records.js'

/** The two systems: async tasks of an agent host, and command tasks of instances. */
export type PageTaskKind = 'async' | 'command'

export type PageTaskState = AsyncTaskStatus | 'asking' | 'wrapping' | 'stopping' | 'timed-out'

/** A moment on the timeline of a task. */
export interface TaskMark {
  readonly at: number
  readonly kind: 'question' | 'answer' | 'message' | 'attempt' | 'leased' | 'delivered' | 'owed'
}

/** A command of a command task on the timeline. */
export interface CommandBar {
  readonly tool: string
  /** `cancelled`: it was running when the task was cancelled; `skipped`: it never ran. */
  readonly state: 'waiting' | 'running' | 'completed' | 'failed' | 'cancelled' | 'skipped'
  readonly startedAt?: number
  readonly endedAt?: number
}

/** A row of the timeline and of the table. Times are in ms since the epoch, by the server's clock. */
export interface PageTask {
  /** `async:<id>` or `command:<id>`. It is unique on the page, and part of the task's address. */
  readonly key: string
  readonly kind: PageTaskKind
  readonly id: string
  /** The goal, or the first command; at most 200 characters. */
  readonly title: string
  /** The owner of an async task, or the instance of a command task. */
  readonly group: string
  /** The subagent of an async task. */
  readonly subagent?: string
  readonly state: PageTaskState
  readonly createdAt: number
  /** Absent while it is queued for its first run. */
  readonly startedAt?: number
  readonly endedAt?: number
  readonly parentKey?: string
  /** Present from the second run on. */
  readonly attempt?: number
  readonly progress?: TaskProgress
  readonly delivery?: DeliveryStatus
  /** The number of open questions. */
  readonly questions?: number
  /** The first 20 commands of a command task. */
  readonly commands?: readonly CommandBar[]
  readonly commandCount?: number
  /** The last 20. */
  readonly marks?: readonly TaskMark[]
  /** At most 200 characters. */
  readonly error?: string
  /** The sequence number of its last change. */
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
  /** Whether its subagent or instance exists. */
  readonly canRunAgain: boolean
}

/** `GET /api/history?kind=async&text=…&status=…&owner=…&subagent=…&before=…`, or `kind=command` with `instance=…`; the latest first. */
export interface PageHistory {
  readonly tasks: readonly PastTaskRow[]
  /** `before` of the next page. */
  readonly next?: string
}

/** An entry of the events of a task, in order. */
export interface TaskEvent {
  readonly at: number
  /** `queued`, `running`, `asked`, `answered`, `delivery leased`, … */
  readonly event: string
  /** The state after it. */
  readonly state: PageTaskState
  /** At most 200 characters. */
  readonly detail?: string
}

/** A value, whole or cut. A cut value has the first `text` of its JSON or text; the rest is read as `ValuePiece`s. */
export interface CutValue {
  readonly type: 'json' | 'text'
  readonly text: string
  /**
   * The size of the whole value in UTF-8. If the value is no longer kept whole, the size of what is kept; with `hasMore`, the size of the part that was
   * read.
   */
  readonly bytes: number
  readonly isCut: boolean
  /** Set if the value was not read to its end. */
  readonly hasMore?: true
}

/**
 * A piece of the first 8 MiB of a value: `GET /api/tasks/:key/value/:name?offset=`. Without `offset`, the response is the whole value as a file. The
 * names are `goal`, `result`, `error` and `cause`; for the command with this index, `args.<index>` and `result.<index>`.
 */
export interface ValuePiece {
  readonly text: string
  /** Its offset in the whole value, in bytes: the requested offset, or the start of the next whole character. */
  readonly offset: number
  /** The size of the whole value in UTF-8; with `hasMore`, the size of the part that was read. */
  readonly bytes: number
  /** Whether this is the last piece. */
  readonly isEnd: boolean
  /** Set if the value was not read to its end. */
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
  /** The whole goal of an async task. */
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
  readonly questions?: readonly TaskQuestion[]
  /** The last 20 questions that were answered or withdrawn, oldest first. */
  readonly answers?: readonly ClosedQuestion[]
  readonly attempts?: readonly TaskAttempt[]
  readonly budget?: TaskBudget
  readonly spent?: SpentTotals
  readonly timeoutMs?: number
  /** The address of its trace: http or https. */
  readonly traceUrl?: string
  readonly program?: {
    readonly command: readonly string[]
    readonly pid?: number
    readonly exitCode?: number
    readonly signal?: string
  }
  /** The last 200 events. */
  readonly events: readonly TaskEvent[]
  /** The children that its run has launched, by key. */
  readonly children?: readonly string[]
  /** The keys of the tasks that must end before it starts. */
  readonly after?: readonly string[]
  /** The keys of the first 200 tasks that wait for it, or have waited for it. */
  readonly neededBy?: readonly string[]
  readonly can: {
    readonly cancel: boolean
    /** Set if it is in the foreground and can move to the background. */
    readonly detach?: boolean
    readonly runAgain: boolean
    /** The reason why it cannot run again. */
    readonly whyNot?: string
  }
  /** Commands and code that create the same task. */
  readonly copyAs: { readonly curl?: string; readonly typescript: string }
}

/** A question that is no longer open. */
export interface ClosedQuestion {
  readonly id: string
  /** At most 2,000 characters. */
  readonly message: string
  readonly askedAt: number
  readonly closedAt: number
  /** `withdrawn`: the run no longer waits for an answer. */
  readonly action: TaskAnswer['action'] | 'withdrawn'
  /** `page`: a person answered on a page; `host`: the host or its agent answered. Absent for a withdrawn question. */
  readonly by?: 'page' | 'host'
  /** The content of an accepted answer, limited to what is kept of it. */
  readonly content?: CutValue
}

/** A piece of live output: `GET /api/tasks/:key/output?cursor=`. */
export interface PageOutput {
  readonly text: string
  readonly cursor: number
  /** Bytes before `text` that are no longer kept. */
  readonly dropped: number
  readonly isEnd: boolean
}

/** The state of the deliveries to an owner. */
export interface OwnerDelivery {
  readonly owner: string
  readonly owed: number
  readonly leased: number
  readonly delivered: number
  /** The state of its delivery machine; `none` if its results are not pushed. */
  readonly state: 'none' | 'idle' | 'gathering' | 'busy' | 'backing-off' | 'delivering'
  /** When the next attempt is due, in ms since the epoch. */
  readonly until?: number
  /** Why results still wait, and what to do. */
  readonly reason: string
  /** The last messages, newest first; at most 50, and 16 KiB in total. */
  readonly messages: readonly DeliveryMessage[]
  /** The keys of owed and leased tasks; at most 200, and 16 KiB in total. */
  readonly waiting: readonly string[]
}

/** A message that carried results. */
export interface DeliveryMessage {
  readonly deliveryId: string
  readonly at: number
  readonly endedAt?: number
  readonly outcome: 'open' | 'accepted' | 'released'
  /** The keys of its tasks; at most 50, and 4 KiB in total. */
  readonly tasks: readonly string[]
}

export interface PageInstance {
  readonly id: string
  readonly type: string
  readonly description?: string
  readonly state: 'connecting' | 'connected' | 'disconnected'
  readonly connectedAt?: number
  /** When it was paused, in ms since the epoch; absent if it is not paused. */
  readonly pausedSince?: number
  readonly queued: number
  /** The key of the running task, if there is one. */
  readonly running?: string
  readonly tools: readonly {
    readonly name: string
    readonly description?: string
    readonly inputSchema: Readonly<Record<string, unknown>>
  }[]
}

/** A pause, a schedule or a monitor. The list has at most 1,000 schedules, those that fire first, and 1,000 monitors. */
export interface HostRow {
  readonly kind: 'pauses' | 'schedules' | 'monitors'
  /** Its id; for a pause, `all` or `owner:` followed by the owner. */
  readonly id: string
  /** Empty for the pause of all owners. */
  readonly owner: string
  /** For a pause, who requested it; for a schedule, when it fires, its time zone and its action; for a monitor, its source and pattern. */
  readonly detail: string
  /** When the pause began, the schedule fires next, or the monitor ends at the latest, in ms since the epoch. */
  readonly at: number
}

/**
 * The number of actors in each state, by machine (`asyncTask`, `delivery`, `commandTask`, `lane`, `instance`) and state. A nested state is named by its
 * path, such as `holding.polling`. Tasks are counted by the name of their state alone, such as `stopping`, and ended tasks while the journal has them.
 */
export type MachineCounts = Readonly<Record<string, Readonly<Record<string, number>>>>

/** Ten seconds of the last hour. */
export interface HealthPoint {
  /** When the point began. */
  readonly at: number
  readonly started: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
  /** Of the tasks that ended, from creation to end, in ms; absent if none ended. */
  readonly p50?: number
  readonly p99?: number
  /** At the end of the point. */
  readonly running: number
  readonly queued: number
  readonly owed: number
}

/** A subagent that a person can launch. */
export interface PageSubagent {
  readonly name: string
  readonly description?: string
  /** JSON Schema of `context`; absent for a subagent without one. */
  readonly contextSchema?: Readonly<Record<string, unknown>>
}

/** `GET /api/subagents`. */
export interface PageSubagents {
  /** The owner of a launch that does not name one. */
  readonly owner: string
  readonly subagents: readonly PageSubagent[]
  /** JSON Schema of `options`. */
  readonly optionsSchema: Readonly<Record<string, unknown>>
}

/** The first event. */
export interface Hello {
  readonly version: string
  /** The server's clock, in ms since the epoch. */
  readonly now: number
  readonly hasAsync: boolean
  readonly hasCommands: boolean
  /** Whether the host has subagents that a person can launch. */
  readonly canLaunch: boolean
  /** How many tasks the journal keeps. */
  readonly maxTasks: number
  /** Whether the changes since `Last-Event-ID` follow, instead of a snapshot. */
  readonly resumed: boolean
  /** Whether an empty part suggests calls of this package, or prompts for the agent of an MCP client. */
  readonly hints: 'code' | 'mcp'
  /** The address of the task server's REST interface, for `Copy as`. */
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
  /** The number of further owners with owed results. */
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
  /** Keys that the journal no longer has. */
  readonly removed?: readonly string[]
  /** The changed owners, each complete and at most every 250 ms. */
  readonly owners?: readonly OwnerDelivery[]
  readonly ownersLeftOut?: number
  readonly removedOwners?: readonly string[]
  /** All rows, at most once a second. */
  readonly host?: readonly HostRow[]
  /** All instances. */
  readonly instances?: readonly PageInstance[]
  readonly machines?: MachineCounts
  /** The points that are new or have changed. */
  readonly health?: readonly HealthPoint[]
}

/**
 * Actions are POST requests with a JSON body. The response is `200` with `ActionDone`, or an `ActionError` (400, 404, 409, 413).
 * `/api/tasks/:key/cancel` (`CancelRequest`), `/api/tasks/:key/detach`, `/api/tasks/:key/run-again`, `/api/tasks/:key/answer` (`AnswerRequest`),
 * `/api/tasks/:key/message` (`MessageRequest`), `/api/subagents/:name/launch` (`LaunchRequest`), `/api/instances/:id/submit` (`SubmitRequest`),
 * `/api/instances/:id/pause`, `/api/instances/:id/resume`, `/api/schedules/:id/cancel`, `/api/monitors/:id/cancel`, `/api/pauses/:id/pause` (with `deliveries`), `/api/pauses/:id/resume`.
 */
export interface ActionDone {
  /** The key of the new task, for `launch`, `run-again` and `submit`. */
  readonly key?: string
}

/** The reason why a request was refused. Also used for 401 (no token) and 403 (a foreign host or origin). */
export interface ActionError {
  readonly error: string
  readonly code: string
  /** The invalid field of the request, such as `content.color` of an answer, or `commands.0.args`. */
  readonly field?: string
}

/** The maximum number of tasks in a `BulkRequest`. */
export const MAX_BULK = 200

/** Cancels tasks or runs them again, in order: `POST /api/bulk`. The response is a `BulkReport`. */
export interface BulkRequest {
  readonly action: 'cancel' | 'run-again'
  /** At most `MAX_BULK` keys. */
  readonly keys: readonly string[]
  /** The reason of a cancellation. */
  readonly reason?: string
}

export interface BulkReport {
  /** The number of tasks that were cancelled or run again. */
  readonly done: number
  /** The reasons why the others were not. */
  readonly refused: readonly {
    readonly error: string
    readonly code: string
    readonly count: number
    /** The first 10 of these tasks. */
    readonly keys: readonly string[]
  }[]
}

/** Cancels a task. */
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

/** Sends a message to a run. */
export interface MessageRequest {
  readonly message: string
}

/** Launches a task of a subagent: `POST /api/subagents/:name/launch`. */
export interface LaunchRequest {
  readonly goal: string
  /** Default: the owner of the host. */
  readonly owner?: string
  /** Must match `contextSchema` of the subagent. */
  readonly context?: Readonly<Record<string, unknown>>
  /** Must match `optionsSchema`. */
  readonly options?: Readonly<Record<string, unknown>>
}

/** Submits a command task. */
export interface SubmitRequest {
  /** The name of the task. Default: the names of its tools. */
  readonly name?: string
  readonly commands: readonly { readonly tool: string; readonly args: Readonly<Record<string, unknown>> }[]
}
