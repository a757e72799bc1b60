/**
 * Command tasks as they cross the wire (seed 004): tasks, commands, and what is told of them. The TypeScript types, the OpenAPI document and the
 * checks at the boundary are all derived from these schemas.
 */
import { z } from 'zod'

export const taskStatusSchema = z.enum(['queued', 'running', 'completed', 'failed', 'cancelled'])
export const commandStatusSchema = z.enum(['pending', 'running', 'success', 'error', 'skipped'])
export const endStatusSchema = z.enum(['completed', 'failed', 'cancelled'])

/**
 * Where a task stands.
 * @useDeclaredType
 */
export type TaskStatus = z.infer<typeof taskStatusSchema>
/**
 * Where a command stands.
 * @useDeclaredType
 */
export type CommandStatus = z.infer<typeof commandStatusSchema>
/**
 * The ways in which a task can end.
 * @useDeclaredType
 */
export type EndStatus = z.infer<typeof endStatusSchema>

export const commandErrorSchema = z.object({
  /** What kind of failure it is. */
  code: z.string(),
  /** The same in words. */
  message: z.string(),
})
export const taskErrorSchema = commandErrorSchema.extend({
  /** The command that failed, if one did. */
  commandId: z.string().optional(),
})

/**
 * What a command or a task failed with.
 * @useDeclaredType
 */
export type CommandError = z.infer<typeof commandErrorSchema>

const timestamp = z.number().describe('Milliseconds since the epoch.')
const json = z.record(z.string(), z.unknown())

/** A command of a task. */
export const taskCommandSchema = z.object({
  /** Names the command. */
  id: z.string(),
  /** The tool that it calls. */
  tool_name: z.string(),
  /** What it is for, in words. */
  intention: z.string(),
  /** What the tool is called with. */
  args: json,
  /** The longest it may take, in ms. */
  timeout: z.number().optional(),
  /** Where it stands. */
  status: commandStatusSchema,
  /** When it started, in ms since the epoch. */
  startedAt: timestamp.optional(),
  /** When it ended, in ms since the epoch. */
  completedAt: timestamp.optional(),
  /** What the tool gave back. */
  result: z.unknown().optional(),
  /** Why it failed. */
  error: commandErrorSchema.optional(),
})

/**
 * A command of a task, and how far it is (seed 004).
 * @useDeclaredType
 */
export type TaskCommand = z.infer<typeof taskCommandSchema>

/**
 * Why a task failed or was cancelled; `commandId` names the command that failed, if one did.
 * @useDeclaredType
 */
export type TaskError = z.infer<typeof taskErrorSchema>

const taskFieldsSchema = z.object({
  /** Names the task. */
  id: z.string(),
  /** What runs it. */
  instanceId: z.string(),
  /** What it is called. */
  name: z.string(),
  /** What it is for, in words. */
  intention: z.string(),
  /** What it does, in order. */
  commands: z.array(taskCommandSchema),
  /** Where it stands. */
  status: taskStatusSchema,
  /** The command that is next or runs, from 0. */
  currentCommandIndex: z.number().int(),
  /** When it was submitted, in ms since the epoch. */
  createdAt: timestamp,
  /** When its first command started, in ms since the epoch. */
  startedAt: timestamp.optional(),
  /** When it ended, in ms since the epoch. */
  completedAt: timestamp.optional(),
  /** Why it failed or was cancelled. */
  error: taskErrorSchema.optional(),
  /** What the submitter keeps with it. */
  metadata: json.optional(),
})

type WithoutEnd<Fields> = Omit<Fields, 'status' | 'completedAt' | 'error'>

/**
 * A task, whole (seed 004); `status` tells which fields it has.
 * @useDeclaredType
 */
export type Task = WithoutEnd<z.infer<typeof taskFieldsSchema>> &
  (
    | { status: 'queued' | 'running'; completedAt?: never; error?: never }
    | { status: 'completed'; completedAt: number; error?: never }
    | { status: 'failed' | 'cancelled'; completedAt: number; error: TaskError }
  )

/** A task, whole. What its status promises is the server's to keep: no reader drops a task over a missing reason. */
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
    /** How many commands it has. */
    totalCommands: z.number().int(),
  })

/**
 * A task in a list: without its commands.
 * @useDeclaredType
 */
export type TaskSummary = z.infer<typeof taskSummarySchema>

export type { TaskSubmitMessage } from './task-submission.js'

/** Why a submit was refused. */
export const submitErrorCodes = [
  'NO_COMMANDS',
  'NO_INSTANCE',
  'INVALID_INSTANCE',
  'NOT_CONNECTED',
  'QUEUE_FULL',
  'INVALID_TASK',
] as const
/**
 * Why a submit was refused.
 * @useDeclaredType
 */
export type SubmitErrorCode = (typeof submitErrorCodes)[number]

/** Told as each command starts and ends, and as a running one reports its progress. */
export const taskProgressSchema = z.object({
  /** What kind of message this is. */
  type: z.literal('task_progress'),
  /** The task. */
  taskId: z.string(),
  /** What runs it. */
  instanceId: z.string(),
  /** The command. */
  commandId: z.string(),
  /** Its place in the task, from 0. */
  commandIndex: z.number().int(),
  /** How many commands the task has. */
  totalCommands: z.number().int(),
  /** Where the command stands. */
  status: commandStatusSchema,
  /** When, in ms since the epoch. */
  timestamp,
  /** The tool that it calls. */
  tool_name: z.string(),
  /** What it is for, in words. */
  intention: z.string(),
  /** What the tool gave back. */
  result: z.unknown().optional(),
  /** Why it failed. */
  error: commandErrorSchema.optional(),
  /** How far it is, in a unit of the tool's own. */
  progress: z.number().optional(),
  /** Where it ends, in the same unit. */
  total: z.number().optional(),
  /** What it is doing. */
  message: z.string().optional(),
})

/**
 * A step of a command (seed 004).
 * @useDeclaredType
 */
export type TaskProgressMessage = z.infer<typeof taskProgressSchema>

/** Told once, when a task has ended; nothing about the task follows. Read as leniently as a task. */
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
      error: commandErrorSchema.optional(),
    }),
  ),
})

/**
 * The end of a task; one that failed or was cancelled says why.
 * @useDeclaredType
 */
export type TaskCompleteMessage = WithoutEnd<z.infer<typeof taskCompleteSchema>> &
  ({ status: 'completed'; error?: never } | { status: 'failed' | 'cancelled'; error: TaskError })
