/**
 * What can be done to a task manager and its instances, as data: the model of `lane-model.ts` and the real thing of
 * `lane-host.ts` take the same actions, those of the commands and those that a listener takes when it is told.
 */
import { InstanceError, ToolCallError } from '../errors.js'
import type { SubmitErrorCode, TaskStatus, TaskSubmitMessage } from '../protocol/command-tasks.js'
import type { TaskProgress } from '../../machines/records.js'
import type { ToolCallResult } from '../protocol/tool-result.js'

/** The limits of a task manager under test. All times in ms. */
export interface LaneSettings {
  /** The longest a command may take, in ms. */
  readonly commandTimeout: number
  /** The most tasks of one instance that have not ended. */
  readonly maxQueueSize: number
  /** How long an aborted command holds its lane, in ms. */
  readonly abortGraceMs: number
  /** How long an ended task is kept, in ms. */
  readonly retentionMs: number
  /** How many ended tasks are kept. */
  readonly maxRetained: number
}

/** An instance that the actions may connect. A `websocket` one is connected when its connection is opened, not when it is taken in. */
export interface LaneInstance {
  /** The instance's id. */
  readonly id: string
  /** How it behaves. */
  readonly kind: 'local' | 'websocket'
  /** How long it may stay without a connection, in ms. */
  readonly connectTimeoutMs?: number
}

/** Two sets of functions and a remote worker. */
export const laneInstances: readonly LaneInstance[] = [
  { id: 'x', kind: 'local' },
  { id: 'y', kind: 'local' },
  { id: 'w', kind: 'websocket', connectTimeoutMs: 300 },
]

/** Counts back from the latest of its kind, and around. */
export type Nth = number

/**
 * How a tool behaves: `waits` until an `answer` and does not heed its abort, `stops` when it is aborted, `returns` at once.
 */
export type PlayedTool = 'waits' | 'stops' | 'returns'

/** A command of a task to submit. */
export interface PlannedCommand {
  /** How its tool behaves. */
  readonly tool: PlayedTool
  /** The longest it may take, in ms. */
  readonly timeout?: number
}

/** A task: one that has not ended, or any that was accepted, or whatever bears an id. */
export type TaskTarget = { readonly of: 'live' | 'all'; readonly nth: Nth } | { readonly id: string }

/** Something to do. What a listener does when it is told may be anything but `advance`. */
export type LaneAction =
  | { readonly do: 'submit'; readonly to?: string; readonly commands: readonly PlannedCommand[] }
  | { readonly do: 'submitInvalid'; readonly input: InvalidSubmission }
  | { readonly do: 'cancel'; readonly task: TaskTarget }
  /** Ends a call that has had no answer, in time or late. */
  | { readonly do: 'answer'; readonly call: Nth; readonly how: PlayedAnswer }
  /** A call says how far it has come; it may be over. */
  | { readonly do: 'report'; readonly call: Nth; readonly progress: TaskProgress }
  | { readonly do: 'connect'; readonly instance: string }
  | { readonly do: 'open'; readonly instance: string }
  | { readonly do: 'takeOver'; readonly instance: string }
  | { readonly do: 'disconnect'; readonly instance: string }
  /** A connection of the instance ends by itself: its present one, or one that it had before. */
  | { readonly do: 'lose'; readonly instance: string; readonly connection: Nth }
  /** Fails the tasks of an instance that stays connected. */
  | { readonly do: 'dropTasks'; readonly instance: string }
  | { readonly do: 'listen'; readonly to: 'progress' | 'complete'; readonly by: ListenerKind; readonly script: Script }
  | { readonly do: 'unlisten'; readonly listener: Nth }
  | { readonly do: 'prune'; readonly maxAge?: number }
  | { readonly do: 'look'; readonly task: TaskTarget; readonly instance?: string; readonly status?: TaskStatus }
  | { readonly do: 'dispose' }
  | { readonly do: 'throw' }
  | { readonly do: 'advance'; readonly ms: number }

/** How a listener is told: by a handler, or by a stream. */
export type ListenerKind = 'handler' | 'stream'

/** What a listener does, in this order, each time it is told. */
export type Script = readonly Exclude<LaneAction, { readonly do: 'advance' }>[]

/** How often the script of one listener runs; later it only listens. */
export const SCRIPT_USES = 3

/** How many actions scripts may take in one step: two listeners may set each other off. */
export const SCRIPT_FUEL = 20

/** The message that a submission sends. */
export function submissionOf({ to, commands }: Extract<LaneAction, { do: 'submit' }>): TaskSubmitMessage {
  return {
    task_name: 'a task',
    task_intention: 'to see it run',
    commands: commands.map(({ tool, timeout }, index) => ({
      tool_name: tool,
      intention: `step ${index}`,
      args: { index },
      ...(timeout !== undefined && { timeout }),
    })),
    ...(to !== undefined && { instanceId: to }),
  }
}

/** Submissions that are refused whatever the instances do, and the field that the refusal must name. */
export const invalidSubmissions = {
  'no commands': { message: { task_name: 't', commands: [] }, refused: { code: 'NO_COMMANDS' } },
  'no message': { message: undefined, refused: { code: 'INVALID_TASK', names: 'task' } },
  'no name': {
    message: { commands: [{ tool_name: 'waits' }] },
    refused: { code: 'INVALID_TASK', names: 'task.task_name' },
  },
  'an empty tool name': {
    message: { task_name: 't', commands: [{ tool_name: 'waits' }, { tool_name: '' }] },
    refused: { code: 'INVALID_TASK', names: 'task.commands[1].tool_name' },
  },
  'a time-out of nothing': {
    message: { task_name: 't', commands: [{ tool_name: 'waits', timeout: 0 }] },
    refused: { code: 'INVALID_TASK', names: 'task.commands[0].timeout' },
  },
  'an instance that is none': {
    message: { task_name: 't', instanceId: '', commands: [{ tool_name: 'waits' }] },
    refused: { code: 'INVALID_TASK', names: 'task.instanceId' },
  },
  'a thousand and one commands': {
    message: { task_name: 't', commands: Array.from({ length: 1001 }, () => ({ tool_name: 'waits' })) },
    refused: { code: 'INVALID_TASK', names: 'task.commands' },
  },
} as const satisfies Record<
  string,
  { readonly message: unknown; readonly refused: { readonly code: SubmitErrorCode; readonly names?: string } }
>

/**
 * A submit that is refused, by what is wrong with it.
 * @useDeclaredType
 */
export type InvalidSubmission = keyof typeof invalidSubmissions

/** What a tool answers, and what becomes of its command. */
export interface AnswerDefinition {
  readonly settle: { readonly returns: ToolCallResult } | { readonly throws: () => Error }
  /** Of the command; without one it is a success. */
  readonly error?: { readonly code: string; readonly message: string }
}

const text = (value: string): ToolCallResult['content'] => [{ type: 'text', text: value }]

/** Every way in which a call may end by its tool. */
export const playedAnswers = {
  text: { settle: { returns: { content: text('done') } } },
  structured: { settle: { returns: { content: text('{"n":1}'), structuredContent: { n: 1 } } } },
  isError: {
    settle: { returns: { content: text('no such button'), isError: true } },
    error: { code: 'EXECUTION_ERROR', message: 'no such button' },
  },
  'isError with a code': {
    settle: { returns: { content: text('gone'), isError: true, _meta: { code: 'NOT_FOUND' } } },
    error: { code: 'NOT_FOUND', message: 'gone' },
  },
  'isError without words': {
    settle: { returns: { content: [], isError: true } },
    error: { code: 'EXECUTION_ERROR', message: 'The tool reported an error without saying which.' },
  },
  throws: {
    settle: { throws: () => new Error('it broke') },
    error: { code: 'EXECUTION_ERROR', message: 'it broke' },
  },
  'JSON-RPC error': {
    settle: { throws: () => new ToolCallError(-32602, 'which tool?') },
    error: { code: '-32602', message: 'which tool?' },
  },
  'error with a code': {
    settle: { throws: () => new ToolCallError('OUT_OF_PAPER', 'no paper') },
    error: { code: 'OUT_OF_PAPER', message: 'no paper' },
  },
  'connection lost': {
    settle: { throws: () => new InstanceError('INSTANCE_DISCONNECTED', 'w', 'it is gone') },
    error: { code: 'INSTANCE_DISCONNECTED', message: 'it is gone' },
  },
} as const satisfies Record<string, AnswerDefinition>

/**
 * How a call ends by its tool.
 * @useDeclaredType
 */
export type PlayedAnswer = keyof typeof playedAnswers

/** What an answer does to its command. */
export const answerOf = (how: PlayedAnswer): AnswerDefinition => playedAnswers[how]

/** What an action answered, or the code of the error it threw. */
export type Answer = { readonly returned: unknown } | { readonly threw: string }

/** Whether a task of that status has not ended. */
export const isLive = (status: TaskStatus | undefined): boolean => status === 'queued' || status === 'running'

/** The `nth` of a list, counted back from its end and around; undefined of an empty one. */
export function nthLast<T>(list: readonly T[], nth: Nth): T | undefined {
  return list[list.length - 1 - (nth % list.length)]
}
