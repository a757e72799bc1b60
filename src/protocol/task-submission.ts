/** The submission of a command task. It has its own file, because the core imports only this schema of command tasks. */
import { z } from 'zod'
import { lazily } from './lazily.js'
import { strictObject } from './strict-object.js'

/** The maximum number of commands of a task. */
export const MAX_COMMANDS = 1000

/** One command of a submission. */
export const commandInputSchema = lazily(() =>
  strictObject({
    tool_name: z.string().min(1).max(256),
    intention: z.string().max(10_000).default(''),
    args: z.record(z.string(), z.unknown()).default({}),
    timeout: z.number().int().min(1).optional().describe('The timeout, in ms; limited by that of the server.'),
  }),
)

/** A submission; over HTTP without `type`. */
export const taskSubmitSchema = lazily(() =>
  strictObject({
    /** The type of the message. */
    type: z.literal('task_submit').default('task_submit'),
    /** The name of the task. */
    task_name: z.string().min(1).max(1000),
    /** Its purpose, in words. */
    task_intention: z.string().max(10_000).default(''),
    /** The instance that runs it. Default: the first connected one that has all tools of the task, as far as tools are known. */
    instanceId: z.string().min(1).max(256).optional(),
    /** Its commands, in order. */
    commands: z.array(commandInputSchema()).max(MAX_COMMANDS),
    /** Data of the submitter, returned with the task. */
    metadata: z.record(z.string(), z.unknown()).optional(),
  }),
)

/** A submission as a server receives it. Unknown fields are dropped, because a client may be newer. */
export const receivedTaskSchema = lazily(() =>
  taskSubmitSchema()
    .extend({ commands: z.array(commandInputSchema().strip()).max(MAX_COMMANDS) })
    .strip(),
)

/**
 * A task to submit.
 * @useDeclaredType
 */
export type TaskSubmitMessage = z.input<ReturnType<typeof taskSubmitSchema>>
