/**
 * Command tasks on the wire: tasks, commands and events. The TypeScript types, the OpenAPI document and the validation are derived
 * from these schemas.
 */
import { z } from 'zod'

export const taskStatusSchema = z.enum(['queued', 'running', 'completed', 'failed', 'cancelled'])
/** Selects the tasks of a list. */
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
  /** The command that failed, if one did. */
  commandId: z.string().optional(),
})

/** The status of a command, for people and models: `cancelled` for a command that was running when its task was cancelled. */
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
  /** The path of the REST route that sends it. */
  path: z.string(),
  /** Its size, in bytes of JSON. */
  bytes: z.number().int(),
})

/** Refers to a result that is too large for a message. */
export type ResultReference = z.infer<typeof resultReferenceSchema>

const resultRef = resultReferenceSchema.optional()

/** A command of a task. */
export const taskCommandSchema = z.object({
  /** The id of the command. */
  id: z.string(),
  /** The tool it calls. */
  tool_name: z.string(),
  /** Its purpose, in words. */
  intention: z.string(),
  /** The arguments of the tool. */
  args: json,
  /** Its timeout, in ms. */
  timeout: z.number().optional(),
  /** Its status. */
  status: commandStatusSchema,
  /** When it started, in ms since the epoch. */
  startedAt: timestamp.optional(),
  /** When it ended, in ms since the epoch. */
  completedAt: timestamp.optional(),
  /** The result of the tool. */
  result: z.unknown().optional(),
  /** Replaces `result` in messages of a server, if the result is too large. */
  resultRef,
  /** Why it failed. */
  error: commandErrorSchema.optional(),
})

/**
 * A command of a task and its state.
 * @useDeclaredType
 */
export type TaskCommand = z.infer<typeof taskCommandSchema>

/**
 * Why a task failed or was cancelled. `commandId` is the command that failed, if any.
 * @useDeclaredType
 */
export type TaskError = z.infer<typeof taskErrorSchema>

const taskFieldsSchema = z.object({
  /** The id of the task. */
  id: z.string(),
  /** The instance that runs it. */
  instanceId: z.string(),
  /** Its name. */
  name: z.string(),
  /** Its purpose, in words. */
  intention: z.string(),
  /** Its commands, in order. */
  commands: z.array(taskCommandSchema),
  /** Its status. */
  status: taskStatusSchema,
  /** The index of the running or next command, from 0. */
  currentCommandIndex: z.number().int(),
  /** When it was submitted, in ms since the epoch. */
  createdAt: timestamp,
  /** When its first command started, in ms since the epoch. */
  startedAt: timestamp.optional(),
  /** When it ended, in ms since the epoch. */
  completedAt: timestamp.optional(),
  /** How long it ran, in ms, on a monotonic clock; 0 if it never started. */
  duration: z.number().optional(),
  /** Why it failed or was cancelled. */
  error: taskErrorSchema.optional(),
  /** Data of the submitter. */
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

/** A task. The schema does not check that the fields match the status, so that clients accept every task the server sends. */
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
    /** The number of its commands. */
    totalCommands: z.number().int(),
    /** The number of its commands that have succeeded or failed. Earlier servers do not send it. */
    finishedCommands: z.number().int().optional(),
  })

/** The number of commands that have succeeded or failed; skipped ones have not been finished. */
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
  /** The instance that runs it. */
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
  /** The tool it calls. */
  tool_name: z.string(),
  /** Its purpose, in words. */
  intention: z.string(),
  /** The result of the tool. */
  result: z.unknown().optional(),
  /** Replaces `result` in messages of a server, if the result is too large. */
  resultRef,
  /** Why it failed. */
  error: commandErrorSchema.optional(),
  /** The progress, in a unit chosen by the tool. */
  progress: z.number().optional(),
  /** The expected end of the progress, in the same unit. */
  total: z.number().optional(),
  /** A message about the progress. */
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
  /** The time of the pause; absent if it was resumed. */
  pausedSince: timestamp.optional(),
  /** The time of the event, in ms since the epoch. */
  timestamp,
})

/** An instance was paused or resumed. */
export type InstancePauseMessage = z.infer<typeof instancePauseSchema>

/** Sent once, when a task has ended. It is the last event of the task. The schema is as lenient as `taskSchema`. */
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
