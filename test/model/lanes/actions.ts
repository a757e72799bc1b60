/**
 * The actions on a task manager and its instances, as data. The model (`model.ts`) and the real task manager (`host.ts`) take the same
 * actions: those of the commands, and those of the scripts that listeners run when they get an event.
 */
import { InstanceError, ToolCallError } from '../../../src/errors.js'
import type { SubmitErrorCode, TaskStatus, TaskSubmitMessage } from '../../../src/protocol/command-tasks.js'
import type { TaskProgress } from '../../../machines/records.js'
import type { ToolCallResult } from '../../../src/protocol/tool-result.js'
import type { Nth } from '../drawing.js'

/** The limits of a task manager. */
export interface LaneSettings {
  /** The time limit of a command, in ms. */
  readonly commandTimeout: number
  /** The most live tasks of one instance. */
  readonly maxQueueSize: number
  /** How long an aborted call may hold its lane, in ms. */
  readonly abortGraceMs: number
  /** How long an ended task is kept, in ms. */
  readonly retentionMs: number
  /** How many ended tasks are kept. */
  readonly maxRetained: number
}

/** An instance that the actions may connect. A `websocket` instance is connected only after `open`. */
export interface LaneInstance {
  readonly id: string
  readonly kind: 'local' | 'websocket'
  /** How long it may stay `connecting`, in ms. */
  readonly connectTimeoutMs?: number
}

/** Two sets of functions and a remote worker. */
export const laneInstances: readonly LaneInstance[] = [
  { id: 'x', kind: 'local' },
  { id: 'y', kind: 'local' },
  { id: 'w', kind: 'websocket', connectTimeoutMs: 300 },
]

/** A tool: `waits` for the action `answer` and ignores its abort, `stops` when it is aborted, `returns` at once. */
export type PlayedTool = 'waits' | 'stops' | 'returns'

/** A command of a task to submit. */
export interface PlannedCommand {
  readonly tool: PlayedTool
  /** Its time limit, in ms. */
  readonly timeout?: number
}

/** A live task or any accepted task, counted back from the latest, or the task with an id. */
export type TaskTarget = { readonly of: 'live' | 'all'; readonly nth: Nth } | { readonly id: string }

/** An action. A script may contain any but `advance`. */
export type LaneAction =
  | { readonly do: 'submit'; readonly to?: string; readonly commands: readonly PlannedCommand[] }
  | { readonly do: 'submitInvalid'; readonly input: InvalidSubmission }
  | { readonly do: 'cancel'; readonly task: TaskTarget }
  /** Answers a call that has no answer yet, in time or late. */
  | { readonly do: 'answer'; readonly call: Nth; readonly how: PlayedAnswer }
  /** A call reports progress; it may be over. */
  | { readonly do: 'report'; readonly call: Nth; readonly progress: TaskProgress }
  | { readonly do: 'connect'; readonly instance: string }
  | { readonly do: 'open'; readonly instance: string }
  | { readonly do: 'takeOver'; readonly instance: string }
  | { readonly do: 'disconnect'; readonly instance: string }
  /** A connection of the instance is lost: the current one, or an earlier one. */
  | { readonly do: 'lose'; readonly instance: string; readonly connection: Nth }
  /** Fails the tasks of an instance that stays connected. */
  | { readonly do: 'dropTasks'; readonly instance: string }
  | { readonly do: 'listen'; readonly to: 'progress' | 'complete'; readonly by: ListenerKind; readonly script: Script }
  | { readonly do: 'unlisten'; readonly listener: Nth }
  | { readonly do: 'prune'; readonly maxAge?: number }
  | { readonly do: 'look'; readonly task: TaskTarget; readonly instance?: string; readonly status?: TaskStatus }
  | { readonly do: 'dispose' }
  | { readonly do: 'throw' }
  /** Somebody sets the clock, on or back. */
  | { readonly do: 'jump'; readonly ms: number }
  | { readonly do: 'advance'; readonly ms: number }

/** How a listener gets events. */
export type ListenerKind = 'handler' | 'stream'

/** The actions of a listener, each time it gets an event. */
export type Script = readonly Exclude<LaneAction, { readonly do: 'advance' }>[]

/** How often the script of a listener runs; later events are only logged. */
export const SCRIPT_USES = 3

/** How many actions all scripts may take in one step, because listeners may set each other off. */
export const SCRIPT_FUEL = 20

/** The message of a submit. */
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

/** Submits that are always refused, with the code and the field that the refusal must name. */
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

export type InvalidSubmission = keyof typeof invalidSubmissions

/** What a tool answers, and the error of its command. */
export interface AnswerDefinition {
  readonly settle: { readonly returns: ToolCallResult } | { readonly throws: () => Error }
  /** Without an error the command succeeds. */
  readonly error?: { readonly code: string; readonly message: string }
}

const text = (value: string): ToolCallResult['content'] => [{ type: 'text', text: value }]

/** Every kind of answer. */
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

export type PlayedAnswer = keyof typeof playedAnswers

export const answerOf = (how: PlayedAnswer): AnswerDefinition => playedAnswers[how]

export const isLive = (status: TaskStatus | undefined): boolean => status === 'queued' || status === 'running'
