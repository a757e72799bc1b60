/**
 * What the server of the page and the page exchange. Every text of a task is bounded here; the whole of it is read by its own request.
 *
 * `GET /api/events` is a stream of Server-Sent Events: `hello`, `tasks` (pieces of the snapshot), `ready`, and then `changes`. The id of an event is
 * `<run of the server>-<sequence number>`; a request with `Last-Event-ID` gets the changes since, or a new snapshot when those are gone. Only `ready`
 * and the `changes` after it have an id. A reader that was too slow gets `hello` again on the same stream: a new snapshot follows. A comment comes
 * each second.
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
  /** `cancelled`: it ran when its task was; `skipped`: it has not run. */
  readonly state: 'waiting' | 'running' | 'completed' | 'failed' | 'cancelled' | 'skipped'
  readonly startedAt?: number
  readonly endedAt?: number
}

/** A row of the timeline and of the table. Times are in ms since the epoch, by the server's clock. */
export interface PageTask {
  /** `async:<id>` or `command:<id>`: unique on the page, and its address. */
  readonly key: string
  readonly kind: PageTaskKind
  readonly id: string
  /** The goal, or the first command; at most 200 characters. */
  readonly title: string
  /** The owner of an async task, the instance of a command task. */
  readonly group: string
  /** The subagent of an async task. */
  readonly subagent?: string
  readonly state: PageTaskState
  readonly createdAt: number
  /** Absent while it is queued for its first run. */
  readonly startedAt?: number
  readonly endedAt?: number
  readonly parentKey?: string
  /** From the second run on. */
  readonly attempt?: number
  readonly progress?: TaskProgress
  readonly delivery?: DeliveryStatus
  /** Open questions. */
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
  /** Whether its subagent, or its instance, is there. */
  readonly canRunAgain: boolean
}

/** `GET /api/history?kind=async&text=…&status=…&owner=…&subagent=…&before=…`, or `kind=command` with `instance=…`: the latest first. */
export interface PageHistory {
  readonly tasks: readonly PastTaskRow[]
  /** `before` of the next page. */
  readonly next?: string
}

/** An entry of the events of a task, in order. */
export interface TaskEvent {
  readonly at: number
  /** In words: `queued`, `running`, `asked`, `answered`, `delivery leased`, … */
  readonly event: string
  /** The state after it. */
  readonly state: PageTaskState
  /** At most 200 characters. */
  readonly detail?: string
}

/** A value, whole or cut. A cut one has the first `text` of `bytes` of its JSON or text; the rest is read as `ValuePiece`s. */
export interface CutValue {
  readonly type: 'json' | 'text'
  readonly text: string
  /** Of the whole, in UTF-8; of what is left of it, when it is no longer kept whole; with `hasMore`, of what was read of it. */
  readonly bytes: number
  readonly isCut: boolean
  /** It was not read to its end. */
  readonly hasMore?: true
}

/**
 * A piece of the first 8 MiB of a value: `GET /api/tasks/:key/value/:name?offset=`; without `offset` the whole comes as a file. The names are `goal`, `result`, `error` and
 * `cause`, and of the command with this index `args.<index>` and `result.<index>`.
 */
export interface ValuePiece {
  readonly text: string
  /** Where it begins, in bytes of the whole: at the offset that was asked for, or the next whole character. */
  readonly offset: number
  /** Of the whole, in UTF-8; with `hasMore`, of what was read of it. */
  readonly bytes: number
  /** Whether no piece follows. */
  readonly isEnd: boolean
  /** It was not read to its end. */
  readonly hasMore?: true
}

/** An image in a result; `GET /api/tasks/:key/image/:index` returns its bytes. */
export interface ResultImage {
  readonly index: number
  readonly mimeType: string
  readonly bytes: number
}

/** What `Task` shows: `GET /api/tasks/:key`. */
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
  /** The last 20 that were answered or withdrawn, oldest first. */
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
  /** The tasks that have to end before it starts, by key. */
  readonly after?: readonly string[]
  /** The tasks that wait for it, or have waited for it, by key: the first 200. */
  readonly neededBy?: readonly string[]
  readonly can: {
    readonly cancel: boolean
    /** It is in the foreground, and can move to the background. */
    readonly detach?: boolean
    readonly runAgain: boolean
    /** Why it cannot be run again, in words. */
    readonly whyNot?: string
  }
  /** The same task from a terminal and from code. */
  readonly copyAs: { readonly curl?: string; readonly typescript: string }
}

/** A question that is no longer open. */
export interface ClosedQuestion {
  readonly id: string
  /** At most 2,000 characters. */
  readonly message: string
  readonly askedAt: number
  readonly closedAt: number
  /** `withdrawn`: its run does not wait for it any more. */
  readonly action: TaskAnswer['action'] | 'withdrawn'
  /** `page`: a person has answered it on a page; `host`: the host has, or its agent. Absent for one that was withdrawn. */
  readonly by?: 'page' | 'host'
  /** What an accepted answer says. There is no more of it than this. */
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

/** Why a result still waits, or how the deliveries of an owner stand. */
export interface OwnerDelivery {
  readonly owner: string
  readonly owed: number
  readonly leased: number
  readonly delivered: number
  /** The state of its delivery machine; `none` when nothing delivers to it. */
  readonly state: 'none' | 'idle' | 'gathering' | 'busy' | 'backing-off' | 'delivering'
  /** When the next attempt is due, in ms since the epoch. */
  readonly until?: number
  /** In words, with what to do next. */
  readonly reason: string
  /** The last messages, newest first: at most 50, and 16 KiB. */
  readonly messages: readonly DeliveryMessage[]
  /** The keys of what is owed or leased: at most 200, and 16 KiB. */
  readonly waiting: readonly string[]
}

/** A message that carried results. */
export interface DeliveryMessage {
  readonly deliveryId: string
  readonly at: number
  readonly endedAt?: number
  readonly outcome: 'open' | 'accepted' | 'released'
  /** Keys: at most 50, and 4 KiB. */
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
  /** The key of the task that runs, if one does. */
  readonly running?: string
  readonly tools: readonly {
    readonly name: string
    readonly description?: string
    readonly inputSchema: Readonly<Record<string, unknown>>
  }[]
}

/** A pause, a schedule or a monitor. There are at most 1,000 schedules, those that fire first, and 1,000 monitors. */
export interface HostRow {
  readonly kind: 'pauses' | 'schedules' | 'monitors'
  /** Its id; of a pause `all`, or `owner:` and the owner. */
  readonly id: string
  /** Empty for the pause of all. */
  readonly owner: string
  /** Who has paused; when it fires, in its zone, and what it does; or what it reads and looks for. */
  readonly detail: string
  /** When it began, fires next, or ends at the latest, in ms since the epoch. */
  readonly at: number
}

/**
 * How many actors are in each state, by machine (`asyncTask`, `delivery`, `commandTask`, `lane`, `instance`) and state; the states inside others by their
 * paths, such as `holding.polling`. Tasks count by the name of their state alone, such as `stopping`; ended tasks as long as the journal has them.
 */
export type MachineCounts = Readonly<Record<string, Readonly<Record<string, number>>>>

/** Ten seconds of the last hour. */
export interface HealthPoint {
  /** When it began. */
  readonly at: number
  readonly started: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
  /** Of the tasks that ended, from creation to end, in ms; absent when none did. */
  readonly p50?: number
  readonly p99?: number
  /** At its end. */
  readonly running: number
  readonly queued: number
  readonly owed: number
}

/** A subagent that a person can launch. */
export interface PageSubagent {
  readonly name: string
  readonly description?: string
  /** JSON Schema of `context`; absent for a subagent that has none. */
  readonly contextSchema?: Readonly<Record<string, unknown>>
}

/** `GET /api/subagents`. */
export interface PageSubagents {
  /** The owner of a task whose launch names none. */
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
  /** What an empty part suggests: calls of the package, or what to ask the agent of an MCP client. */
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
  /** How many more owners are owed something. */
  readonly ownersLeftOut: number
  readonly host: readonly HostRow[]
  readonly instances: readonly PageInstance[]
  readonly machines: MachineCounts
  readonly health: readonly HealthPoint[]
}

/** What has changed in the last 50 ms; absent parts have not. */
export interface ChangesEvent {
  readonly now: number
  readonly tasks?: readonly PageTask[]
  /** Keys that the journal no longer has. */
  readonly removed?: readonly string[]
  /** Those that have changed, whole: each at most every 250 ms. */
  readonly owners?: readonly OwnerDelivery[]
  readonly ownersLeftOut?: number
  readonly removedOwners?: readonly string[]
  /** All of them, at most once a second. */
  readonly host?: readonly HostRow[]
  /** All of them. */
  readonly instances?: readonly PageInstance[]
  readonly machines?: MachineCounts
  /** The points that are new or have changed. */
  readonly health?: readonly HealthPoint[]
}

/**
 * Actions, each a POST with JSON, `200` with `ActionDone` or an `ActionError` (400, 404, 409, 413).
 * `/api/tasks/:key/cancel` (`CancelRequest`), `/api/tasks/:key/detach`, `/api/tasks/:key/run-again`, `/api/tasks/:key/answer` (`AnswerRequest`), `/api/tasks/:key/message`
 * (`MessageRequest`), `/api/subagents/:name/launch` (`LaunchRequest`), `/api/instances/:id/submit` (`SubmitRequest`), `/api/instances/:id/pause`, `/api/instances/:id/resume`,
 * `/api/schedules/:id/cancel`, `/api/monitors/:id/cancel`, `/api/pauses/:id/pause` (with `deliveries`), `/api/pauses/:id/resume`.
 */
export interface ActionDone {
  /** The key of the task that was made, for `launch`, `run-again` and `submit`. */
  readonly key?: string
}

/** Why nothing was done. Every other refusal is one, too: 401 without the token, 403 for a foreign host or origin. */
export interface ActionError {
  readonly error: string
  readonly code: string
  /** The part of the request that is wrong, such as `content.color` of an answer, or `commands.0.args`. */
  readonly field?: string
}

/** The most tasks of a `BulkRequest`. */
export const MAX_BULK = 200

/** Cancels tasks, or runs them again, in their order: `POST /api/bulk`, answered with a `BulkReport`. */
export interface BulkRequest {
  readonly action: 'cancel' | 'run-again'
  /** At most `MAX_BULK`. */
  readonly keys: readonly string[]
  /** Of a cancellation. */
  readonly reason?: string
}

export interface BulkReport {
  /** How many tasks were cancelled, or run again. */
  readonly done: number
  /** Why others were not, by reason. */
  readonly refused: readonly {
    readonly error: string
    readonly code: string
    readonly count: number
    /** The first 10 of them. */
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
  /** Default: that of the host. */
  readonly owner?: string
  /** Fits `contextSchema` of the subagent. */
  readonly context?: Readonly<Record<string, unknown>>
  /** Fits `optionsSchema`. */
  readonly options?: Readonly<Record<string, unknown>>
}

/** Submits a command task. */
export interface SubmitRequest {
  /** Of the task. Default: its tools. */
  readonly name?: string
  readonly commands: readonly { readonly tool: string; readonly args: Readonly<Record<string, unknown>> }[]
}
