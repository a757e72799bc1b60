/** The submission of a command task. It is the only schema of command tasks that the core imports, so it has a file of its own. */
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

/** A submission. Over HTTP it has no `type`. */
export const taskSubmitSchema = lazily(() =>
  strictObject({
    /** The type of the message. */
    type: z.literal('task_submit').default('task_submit'),
    /** The name of the task. */
    task_name: z.string().min(1).max(1000),
    /** The purpose of the task, in words. */
    task_intention: z.string().max(10_000).default(''),
    /**
     * The id of the instance that runs the task. Default: the first connected instance that has all tools of the task. An instance whose tools are
     * unknown counts as having them.
     */
    instanceId: z.string().min(1).max(256).optional(),
    /** The commands, in order. */
    commands: z.array(commandInputSchema()).max(MAX_COMMANDS),
    /** Data of the submitter. The server returns it with the task. */
    metadata: z.record(z.string(), z.unknown()).optional(),
  }),
)

/** A submission as a server receives it over WebSocket. Unknown fields are dropped, because the client may be newer than the server. */
export const receivedTaskSchema = lazily(() =>
  taskSubmitSchema()
    .extend({ commands: z.array(commandInputSchema().strip()).max(MAX_COMMANDS) })
    .strip(),
)

/**
 * A command task to submit, over WebSocket or HTTP.
 * @useDeclaredType
 */
export type TaskSubmitMessage = z.input<ReturnType<typeof taskSubmitSchema>>
