/**
 * Command tasks as they are sent: tasks, commands and events. The TypeScript types, the OpenAPI document and the validation are derived from
 * these schemas.
 */
import { z } from 'zod'

export const taskStatusSchema = z.enum(['queued', 'running', 'completed', 'failed', 'cancelled'])
/** The value of the filter `status` of a list. */
export const taskStatusFilterSchema = z.enum([...taskStatusSchema.options, 'all'])
export const commandStatusSchema = z.enum(['pending', 'running', 'success', 'error', 'skipped'])
export const endStatusSchema = taskStatusSchema.exclude(['queued', 'running'])

/**
 * The status of a task.
 * @useDeclaredType
 */
export type TaskStatus = z.infer<typeof taskStatusSchema>
/**
 * The status of a command.
 * @useDeclaredType
 */
export type CommandStatus = z.infer<typeof commandStatusSchema>
/**
 * The status of an ended task.
 * @useDeclaredType
 */
export type EndStatus = z.infer<typeof endStatusSchema>

export const commandErrorSchema = z.object({
  /** Identifies the kind of error. */
  code: z.string(),
  /** The error in words. */
  message: z.string(),
})
export const taskErrorSchema = commandErrorSchema.extend({
  /** The id of the command that failed, if one did. */
  commandId: z.string().optional(),
})

/** The status of a command as text. A command that was running when its task was cancelled has the status `skipped`, but the text is `cancelled`. */
export const statusText = (status: CommandStatus, error: { readonly code: string } | undefined): string =>
  status === 'skipped' && error?.code === 'CANCELLED' ? 'cancelled' : status

/**
 * The error of a command or a task.
 * @useDeclaredType
 */
export type CommandError = z.infer<typeof commandErrorSchema>

const timestamp = z.number().describe('Milliseconds since the epoch.')
const json = z.record(z.string(), z.unknown())

/** Refers to a result that is too large for a message. */
export const resultReferenceSchema = z.object({
  /** The path of the REST route that returns the result. */
  path: z.string(),
  /** The size of the result, in bytes of JSON. */
  bytes: z.number().int(),
})

/** Refers to a result that is too large for a message. */
export type ResultReference = z.infer<typeof resultReferenceSchema>

const resultRef = resultReferenceSchema.optional()

/** A command of a task. */
export const taskCommandSchema = z.object({
  /** The id of the command. */
  id: z.string(),
  /** The tool that the command calls. */
  tool_name: z.string(),
  /** The purpose of the command, in words. */
  intention: z.string(),
  /** The arguments of the tool. */
  args: json,
  /** The time limit of the command, in ms. */
  timeout: z.number().optional(),
  /** The status of the command. */
  status: commandStatusSchema,
  /** When the command started, in ms since the epoch. */
  startedAt: timestamp.optional(),
  /** When the command ended, in ms since the epoch. */
  completedAt: timestamp.optional(),
  /** The result of the tool. */
  result: z.unknown().optional(),
  /** Replaces `result` in messages of a server when the result is too large for a message. */
  resultRef,
  /** Why the command failed. */
  error: commandErrorSchema.optional(),
})

/**
 * A command of a task, with its status and result.
 * @useDeclaredType
 */
export type TaskCommand = z.infer<typeof taskCommandSchema>

/**
 * Why a task failed or was cancelled. `commandId` is the command that failed, if one did.
 * @useDeclaredType
 */
export type TaskError = z.infer<typeof taskErrorSchema>

const taskFieldsSchema = z.object({
  /** The id of the task. */
  id: z.string(),
  /** The id of the instance that runs the task. */
  instanceId: z.string(),
  /** The name of the task. */
  name: z.string(),
  /** The purpose of the task, in words. */
  intention: z.string(),
  /** The commands of the task, in order. */
  commands: z.array(taskCommandSchema),
  /** The status of the task. */
  status: taskStatusSchema,
  /** The index of the running or next command, from 0. */
  currentCommandIndex: z.number().int(),
  /** When the task was submitted, in ms since the epoch. */
  createdAt: timestamp,
  /** When the first command started, in ms since the epoch. */
  startedAt: timestamp.optional(),
  /** When the task ended, in ms since the epoch. */
  completedAt: timestamp.optional(),
  /** How long the task ran, in ms, measured with a monotonic clock; 0 if it never started. */
  duration: z.number().optional(),
  /** Why the task failed or was cancelled. */
  error: taskErrorSchema.optional(),
  /** Data that the submitter attached to the task. */
  metadata: json.optional(),
})

type WithoutEnd<Fields> = Omit<Fields, 'status' | 'completedAt' | 'duration' | 'error'>

/**
 * A task. `status` determines which fields it has.
 * @useDeclaredType
 */
export type Task = WithoutEnd<z.infer<typeof taskFieldsSchema>> &
  (
    | { status: 'queued' | 'running'; completedAt?: never; duration?: never; error?: never }
    | { status: 'completed'; completedAt: number; duration: number; error?: never }
    | { status: 'failed' | 'cancelled'; completedAt: number; duration: number; error: TaskError }
  )

/** The schema of a task. It does not check that the fields match the status, so that a client accepts tasks of a newer server. */
export const taskSchema = taskFieldsSchema as unknown as z.ZodType<Task, Task>

/** A task in a list. */
export const taskSummarySchema = taskFieldsSchema
  .pick({
    id: true,
    name: true,
    intention: true,
    status: true,
    instanceId: true,
    currentCommandIndex: true,
    createdAt: true,
    startedAt: true,
    completedAt: true,
  })
  .extend({
    /** The number of commands of the task. */
    totalCommands: z.number().int(),
    /** The number of commands that have succeeded or failed. Servers of earlier versions do not send it. */
    finishedCommands: z.number().int().optional(),
  })

/** Returns the number of commands that have succeeded or failed. A skipped command is not counted. */
export const countFinished = (commands: readonly { readonly status?: string }[]): number =>
  commands.filter(({ status }) => status === 'success' || status === 'error').length

/**
 * A task in a list, without its commands.
 * @useDeclaredType
 */
export type TaskSummary = z.infer<typeof taskSummarySchema>

export type { TaskSubmitMessage } from './task-submission.js'

/** The error codes of `submitTask`. */
export const submitErrorCodes = [
  /** The task has no commands. */
  'NO_COMMANDS',
  /** No instance is connected. */
  'NO_INSTANCE',
  /** The named instance does not exist. */
  'INVALID_INSTANCE',
  /** The instance is known, but not connected. */
  'NOT_CONNECTED',
  /** The instance has as many queued and running tasks as `tasks.maxQueueSize` allows. */
  'QUEUE_FULL',
  /** A field is missing or invalid, or the task is larger than the limit. The message names the field. */
  'INVALID_TASK',
  /** The store cannot write the task. */
  'NOT_STORED',
  /** The idempotency key belongs to a task with different content. */
  'IDEMPOTENCY_KEY_REUSED',
] as const
/**
 * The error codes of `submitTask`.
 * @useDeclaredType
 */
export type SubmitErrorCode = (typeof submitErrorCodes)[number]

/** Sent when a command starts, reports progress, or ends. */
export const taskProgressSchema = z.object({
  /** The type of the message. */
  type: z.literal('task_progress'),
  /** The id of the task. */
  taskId: z.string(),
  /** The id of the instance that runs the task. */
  instanceId: z.string(),
  /** The id of the command. */
  commandId: z.string(),
  /** The index of the command, from 0. */
  commandIndex: z.number().int(),
  /** The number of commands of the task. */
  totalCommands: z.number().int(),
  /** The status of the command. */
  status: commandStatusSchema,
  /** The time of the event, in ms since the epoch. */
  timestamp,
  /** The tool that the command calls. */
  tool_name: z.string(),
  /** The purpose of the command, in words. */
  intention: z.string(),
  /** The result of the tool. */
  result: z.unknown().optional(),
  /** Replaces `result` in messages of a server when the result is too large for a message. */
  resultRef,
  /** Why the command failed. */
  error: commandErrorSchema.optional(),
  /** How far the tool is, in a unit that the tool chooses. */
  progress: z.number().optional(),
  /** The value of `progress` at the end of the work. */
  total: z.number().optional(),
  /** A message of the tool about its progress. */
  message: z.string().optional(),
})

/**
 * A command has started, reported progress, or ended.
 * @useDeclaredType
 */
export type TaskProgressMessage = z.infer<typeof taskProgressSchema>

/** Sent when an instance was paused or resumed. */
export const instancePauseSchema = z.object({
  /** The type of the message. */
  type: z.literal('instance_pause'),
  /** The id of the instance. */
  instanceId: z.string(),
  /** When the instance was paused, in ms since the epoch; absent when it was resumed. */
  pausedSince: timestamp.optional(),
  /** The time of the event, in ms since the epoch. */
  timestamp,
})

/** An instance was paused or resumed. */
export type InstancePauseMessage = z.infer<typeof instancePauseSchema>

/** Sent once, when a task has ended, as the last event of the task. The schema is as lenient as `taskSchema`. */
export const taskCompleteSchema = z.object({
  type: z.literal('task_complete'),
  taskId: z.string(),
  instanceId: z.string(),
  status: endStatusSchema,
  timestamp,
  summary: z.object({
    totalCommands: z.number().int(),
    successfulCommands: z.number().int(),
    failedCommandIndex: z.number().int().optional(),
    duration: z.number().min(0).describe('Milliseconds; 0 for a task that never started.'),
  }),
  error: taskErrorSchema.optional(),
  results: z.array(
    z.object({
      commandId: z.string(),
      status: commandStatusSchema,
      result: z.unknown().optional(),
      resultRef,
      error: commandErrorSchema.optional(),
    }),
  ),
})

/**
 * A task has ended. `error` is the reason if it failed or was cancelled.
 * @useDeclaredType
 */
export type TaskCompleteMessage = WithoutEnd<z.infer<typeof taskCompleteSchema>> &
  ({ status: 'completed'; error?: never } | { status: 'failed' | 'cancelled'; error: TaskError })
