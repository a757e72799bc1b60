/** The tool task: runs a subagent, in place or in the background (seed 001). */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import { checkMaxMessageChars, previewText } from '../async-tasks/bounded-text.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { preview } from '../preview.js'
import { orAborted } from './abortable.js'
import { CHECK_FOLLOW_UPS, type FollowUps } from './follow-ups.js'
import { buildInvocation, type ToolInvocation } from './invocation.js'
import { bindSubagent, type ResolveSubagent, type SubagentParams } from './subagents.js'
import { runInBackground, runInPlace } from './task-runs.js'
import { timeoutPolicy, timeoutSecondsSchema, type TimeoutSettings } from './task-timeout.js'
import { defineTool, errorResult, type Tool, type ToolResult } from './tool.js'

const notBlank = (text: string): boolean => text.trim() !== ''

export const taskSchema = lazily(() =>
  z.strictObject({
    subagent_name: z
      .string()
      .max(256)
      .refine(notBlank, 'the name of a subagent')
      .describe('The name of the subagent to run.'),
    goal_prompt: z.string().refine(notBlank, 'a goal, in words').describe('What the subagent is to achieve.'),
    behaviour_prompts: z.array(z.string()).optional().describe('How it is to go about it: further instructions.'),
    tool_whitelist: z.array(z.string()).optional().describe('The only tools it may use. Default: all it has.'),
    expected_outputs: z
      .record(z.string(), z.string())
      .optional()
      .describe('The variables it is to emit: a description of each, by name.'),
    timeout_seconds: timeoutSecondsSchema(),
    context: z.record(z.string(), z.unknown()).optional().describe('Anything else it needs to know, by name.'),
    async: z
      .boolean()
      .optional()
      .describe('true: run in the background; you are told when it ends. false (default): wait for its result.'),
  }),
)

/**
 * What the model sends.
 * @useDeclaredType
 */
export type TaskParams = z.input<ReturnType<typeof taskSchema>>

/** Options of `createTaskTool`. */
export interface TaskToolOptions extends TimeoutSettings {
  /** The manager at the time of each call. */
  readonly getAsyncTaskManager: () => AsyncTaskManager
  /** Finds subagents by name. */
  readonly resolveSubagent: ResolveSubagent
  /** The names to show when a subagent is unknown. */
  readonly listSubagents?: () => readonly string[]
  /** Who is told of the ends of background tasks. Default `main`. */
  readonly owner?: string
  /** The most a result says, in characters. Default 20000. */
  readonly maxMessageChars?: number
  /** What results tell the model to call next. Default: check_async_tasks, with an action. */
  readonly followUps?: FollowUps
}

const NAME = 'task'

/**
 * Makes the tool.
 * @throws InvalidSettingError for a timeout or `maxMessageChars` out of its range
 */
export function createTaskTool(options: TaskToolOptions): Tool<ReturnType<typeof taskSchema>> {
  const timeoutOf = timeoutPolicy(options)
  const maxChars = checkMaxMessageChars(options.maxMessageChars)
  const { owner } = options
  return defineTool({
    name: NAME,
    description:
      'Run a subagent on a goal. By default the call returns its result. With async: true it returns at once and the ' +
      'subagent runs in the background: check_async_tasks shows how it is doing, and its result comes by itself.',
    inputSchema: taskSchema(),
    describe: ({ subagent_name, goal_prompt, async: isAsync }) => {
      return `Run subagent '${subagent_name}'${isAsync === true ? ' in the background' : ''}: ${previewText(goal_prompt, 100)}`
    },
    run: ({ async: isAsync = false, timeout_seconds, ...params }, { signal }) => {
      const timeout = timeoutOf(timeout_seconds)
      const call = {
        manager: options.getAsyncTaskManager(),
        input: {
          subagentName: params.subagent_name,
          goalPrompt: params.goal_prompt,
          ...(owner !== undefined && { owner }),
          ...(timeout.seconds !== -1 && { timeoutMs: timeout.seconds * 1000 }),
        },
        timeout,
        followUps: options.followUps ?? CHECK_FOLLOW_UPS,
        maxChars,
        signal,
        findRunner: () => orAborted(bindSubagent(options.resolveSubagent, params), signal),
        unknownSubagent: () => unknownSubagent(options, params),
      }
      return isAsync ? runInBackground(call) : runInPlace(call)
    },
  })
}

function unknownSubagent(options: TaskToolOptions, { subagent_name }: SubagentParams): ToolResult {
  const names = options.listSubagents?.()
  const known = names === undefined ? '' : names.length === 0 ? ' There are none.' : ` Known: ${names.join(', ')}.`
  const message = `params.subagent_name: got ${preview(subagent_name)}, expected the name of a subagent.${known}`
  return errorResult('parameter_validation', message)
}

/** The tool in the shape of the seeds' classes. */
export class TaskTool {
  /** The name under which it is registered (seed 001). */
  static readonly Name = NAME
  /** The name under which it is registered. */
  readonly name = NAME
  /** For the person who watches. */
  readonly displayName = 'Task'
  /** It starts work. */
  readonly kind = 'execute'
  /** The neutral tool inside. */
  readonly tool: Tool<ReturnType<typeof taskSchema>>

  /** @throws InvalidSettingError as `createTaskTool` does */
  constructor(deps: TaskToolOptions) {
    this.tool = createTaskTool(deps)
  }

  /** What the model is told of it. */
  get description(): string {
    return this.tool.description
  }

  /** Binds the tool to the parameters of one call; they are checked when it is executed. */
  build(params: TaskParams): ToolInvocation<TaskParams> {
    return buildInvocation(this.tool, params)
  }
}
