/** What a client submits (seed 004). By itself, since the core needs no more of command tasks than this. */
import { z } from 'zod'
import { lazily } from './lazily.js'

/** The most commands a task may have. */
export const MAX_COMMANDS = 1000

/** One command as it is submitted. */
export const commandInputSchema = lazily(() =>
  z.object({
    tool_name: z.string().min(1).max(256),
    intention: z.string().max(10_000).default(''),
    args: z.record(z.string(), z.unknown()).default({}),
    timeout: z.number().int().min(1).optional().describe('The longest it may take, in ms; capped by the server.'),
  }),
)

/** What a client submits, over HTTP without `type`. */
export const taskSubmitSchema = lazily(() =>
  z.object({
    /** What kind of message this is. */
    type: z.literal('task_submit').default('task_submit'),
    /** What the task is called. */
    task_name: z.string().min(1).max(1000),
    /** What it is for, in words. */
    task_intention: z.string().max(10_000).default(''),
    /** What runs it; the first that is connected if it is absent. */
    instanceId: z.string().min(1).max(256).optional(),
    /** What it does, in order. */
    commands: z.array(commandInputSchema()).max(MAX_COMMANDS),
    /** What the submitter keeps with it. */
    metadata: z.record(z.string(), z.unknown()).optional(),
  }),
)

/**
 * What a client submits (seed 004).
 * @useDeclaredType
 */
export type TaskSubmitMessage = z.input<ReturnType<typeof taskSubmitSchema>>
