/**
 * Command tasks as they cross the wire (seed 004): tasks, commands, and what is told of them. The TypeScript types, the OpenAPI document and the
 * checks at the boundary are all derived from these schemas.
 */
import { z } from 'zod'

export const taskStatusSchema = z.enum(['queued', 'running', 'completed', 'failed', 'cancelled'])
export const commandStatusSchema = z.enum(['pending', 'running', 'success', 'error', 'skipped'])
export const endStatusSchema = z.enum(['completed', 'failed', 'cancelled'])

/** Where a task stands. */
export type TaskStatus = z.infer<typeof taskStatusSchema>
/** Where a command stands. */
export type CommandStatus = z.infer<typeof commandStatusSchema>
/** The ways in which a task can end. */
export type EndStatus = z.infer<typeof endStatusSchema>

/** The most commands a task may have. */
export const MAX_COMMANDS = 1000

export const commandErrorSchema = z.object({ code: z.string(), message: z.string() })
export const taskErrorSchema = commandErrorSchema.extend({ commandId: z.string().optional() })

/** What a command or a task failed with. */
export type CommandError = z.infer<typeof commandErrorSchema>

const timestamp = z.number().describe('Milliseconds since the epoch.')
const id = z.string().min(1).max(256)
const json = z.record(z.string(), z.unknown())

/** One command as it is submitted. */
export const commandInputSchema = z.object({
  tool_name: z.string().min(1).max(256),
  intention: z.string().max(10_000).default(''),
  args: json.default({}),
  timeout: z.number().int().min(1).optional().describe('The longest it may take, in ms; capped by the server.'),
})

/** A command of a task. */
export const taskCommandSchema = z.object({
  id: z.string(),
  tool_name: z.string(),
  intention: z.string(),
  args: json,
  timeout: z.number().optional(),
  status: commandStatusSchema,
  startedAt: timestamp.optional(),
  completedAt: timestamp.optional(),
  result: z.unknown().optional(),
  error: commandErrorSchema.optional(),
})

/** A command of a task, and how far it is (seed 004). */
export type TaskCommand = z.infer<typeof taskCommandSchema>

/** Why a task failed or was cancelled; `commandId` names the command that failed, if one did. */
export type TaskError = z.infer<typeof taskErrorSchema>

const taskFieldsSchema = z.object({
  id: z.string(),
  instanceId: z.string(),
  name: z.string(),
  intention: z.string(),
  commands: z.array(taskCommandSchema),
  status: taskStatusSchema,
  currentCommandIndex: z.number().int(),
  createdAt: timestamp,
  startedAt: timestamp.optional(),
  completedAt: timestamp.optional(),
  error: taskErrorSchema.optional(),
  metadata: json.optional(),
})

type WithoutEnd<Fields> = Omit<Fields, 'status' | 'completedAt' | 'error'>

/** A task, whole (seed 004); `status` tells which fields it has. */
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
  .extend({ totalCommands: z.number().int() })

/** A task in a list: without its commands. */
export type TaskSummary = z.infer<typeof taskSummarySchema>

/** What a client submits, over HTTP without `type`. */
export const taskSubmitSchema = z.object({
  type: z.literal('task_submit').default('task_submit'),
  task_name: z.string().min(1).max(1000),
  task_intention: z.string().max(10_000).default(''),
  instanceId: id.optional(),
  commands: z.array(commandInputSchema).max(MAX_COMMANDS),
  metadata: json.optional(),
})

/** What a client submits (seed 004). */
export type TaskSubmitMessage = z.input<typeof taskSubmitSchema>

/** Why a submit was refused. */
export const submitErrorCodes = [
  'NO_COMMANDS',
  'NO_INSTANCE',
  'INVALID_INSTANCE',
  'NOT_CONNECTED',
  'QUEUE_FULL',
  'INVALID_TASK',
] as const
export type SubmitErrorCode = (typeof submitErrorCodes)[number]

/** Told as each command starts and ends, and as a running one reports its progress. */
export const taskProgressSchema = z.object({
  type: z.literal('task_progress'),
  taskId: z.string(),
  instanceId: z.string(),
  commandId: z.string(),
  commandIndex: z.number().int(),
  totalCommands: z.number().int(),
  status: commandStatusSchema,
  timestamp,
  tool_name: z.string(),
  intention: z.string(),
  result: z.unknown().optional(),
  error: commandErrorSchema.optional(),
  progress: z.number().optional(),
  total: z.number().optional(),
  message: z.string().optional(),
})

/** A step of a command (seed 004). */
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

/** The end of a task; one that failed or was cancelled says why. */
export type TaskCompleteMessage = WithoutEnd<z.infer<typeof taskCompleteSchema>> &
  ({ status: 'completed'; error?: never } | { status: 'failed' | 'cancelled'; error: TaskError })
