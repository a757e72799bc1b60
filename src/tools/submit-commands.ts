/** The tool submit_commands: runs commands on an instance as a command task, and brings its end back as an async task's (S10). */
import { z } from 'zod'
import { checkMaxMessageChars, previewText } from '../async-tasks/bounded-text.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import { lazily } from '../protocol/lazily.js'
import { MAX_COMMANDS, taskSubmitSchema, type TaskSubmitMessage } from '../protocol/task-submission.js'
import { submitCommandTask, type CommandRun, type SubmitRefusal } from './command-run.js'
import { CHECK_FOLLOW_UPS, type FollowUps } from './follow-ups.js'
import { limitRefusal, runInPlace } from './task-runs.js'
import { timeoutPolicy, timeoutSecondsSchema, type EffectiveTimeout, type TimeoutSettings } from './task-timeout.js'
import { defineTool, errorResult, type Tool, type ToolResult } from './tool.js'

export const submitCommandsSchema = lazily(() => {
  const { task_name, task_intention, instanceId, commands } = taskSubmitSchema().shape
  const command = commands.element.shape
  return z.strictObject({
    task_name: task_name.describe('A short name of the task.'),
    task_intention: task_intention.describe('What the task is to achieve.'),
    instanceId: instanceId.describe('The instance to run on. Default: the first that is connected.'),
    commands: z
      .array(
        z.strictObject({
          tool_name: command.tool_name.describe('The tool to call.'),
          intention: command.intention.describe('Why this call is made.'),
          args: command.args.describe("The tool's arguments."),
          timeout: command.timeout.describe('The longest it may take, in ms.'),
        }),
      )
      .min(1)
      .max(MAX_COMMANDS)
      .describe('The calls, made one after the other. The first that fails ends the task.'),
    timeout_seconds: timeoutSecondsSchema(),
    async: z
      .boolean()
      .default(true)
      .describe('true (default): run in the background; you are told when it ends. false: wait for its result.'),
  })
})

/**
 * What the model sends.
 * @useDeclaredType
 */
export type SubmitCommandsParams = z.input<ReturnType<typeof submitCommandsSchema>>

/** Options of `createSubmitCommandsTool`. */
export interface SubmitCommandsOptions extends TimeoutSettings {
  /** The manager at the time of each call. */
  readonly getAsyncTaskManager: () => AsyncTaskManager
  /** Takes the command tasks. */
  readonly taskManager: TaskManager
  /** Who is told of the ends of background tasks. Default `main`. */
  readonly owner?: string
  /** The most a result says, in characters. Default 20000. */
  readonly maxMessageChars?: number
  /** What results tell the model to call next. Default: check_async_tasks, with an action. */
  readonly followUps?: FollowUps
}

const NAME = 'submit_commands'

/**
 * Makes the tool. Cancelling the async task cancels the command task; a command task that someone else ends is a failed
 * async task that says so.
 * @throws InvalidSettingError for a timeout or `maxMessageChars` out of its range
 */
export function createSubmitCommandsTool(
  options: SubmitCommandsOptions,
): Tool<ReturnType<typeof submitCommandsSchema>> {
  const timeoutOf = timeoutPolicy(options)
  const maxChars = checkMaxMessageChars(options.maxMessageChars)
  const { taskManager, followUps = CHECK_FOLLOW_UPS } = options
  return defineTool({
    name: NAME,
    description:
      'Run a list of tool calls on an instance (a browser, an MCP server, a remote worker), one after the other. By ' +
      'default the call returns at once and the commands run in the background: check_async_tasks shows how they are ' +
      'doing, and their result comes by itself. With async: false the call returns the result.',
    inputSchema: submitCommandsSchema(),
    describe: (input) => {
      const count = input.commands.length
      return `Run ${count} command${count === 1 ? '' : 's'}${input.async ? ' in the background' : ''}: ${previewText(input.task_name, 100)}`
    },
    run: async ({ async: isAsync, timeout_seconds, ...params }, { signal }) => {
      const timeout = timeoutOf(timeout_seconds)
      const manager = options.getAsyncTaskManager()
      const message = toMessage(params)
      const launchInput = (run: CommandRun): LaunchTaskInput => ({
        id: manager.createTaskId(idPrefix(params.task_name)),
        subagentName: previewText(params.task_name, 100),
        goalPrompt: goalOf(params),
        abortController: run.abortController,
        ...(options.owner !== undefined && { owner: options.owner }),
        ...(timeout.seconds !== -1 && { timeoutMs: timeout.seconds * 1000 }),
      })
      if (isAsync) return launchCommands({ manager, taskManager, message, timeout, followUps, launchInput })
      const run = submitCommandTask(taskManager, message)
      if ('error' in run) return submitRefused(run)
      try {
        const input = launchInput(run)
        return await runInPlace({ manager, input, timeout, followUps, maxChars, signal, ...bound(run) })
      } catch (error) {
        run.abandon()
        throw error
      }
    },
  })
}

interface Launch {
  readonly manager: AsyncTaskManager
  readonly taskManager: TaskManager
  readonly message: TaskSubmitMessage
  readonly timeout: EffectiveTimeout
  readonly followUps: FollowUps
  readonly launchInput: (run: CommandRun) => LaunchTaskInput
}

/** Takes a slot, submits, and launches in that slot: nothing is submitted that cannot be tracked. */
function launchCommands({ manager, taskManager, message, timeout, followUps, launchInput }: Launch): ToolResult {
  const reservationId = manager.tryReserveAsyncSlot()
  if (reservationId === null) return limitRefusal(manager, followUps)
  try {
    const run = submitCommandTask(taskManager, message)
    if ('error' in run) return submitRefused(run)
    try {
      const { id, subagentName } = manager.launch(launchInput(run), run.runner, reservationId)
      return launched(run, { id, subagentName, timeout })
    } catch (error) {
      run.abandon()
      throw error
    }
  } finally {
    manager.cancelReservation(reservationId)
  }
}

function launched(
  { task, queuePosition }: CommandRun,
  { id, subagentName, timeout }: { id: string; subagentName: string; timeout: EffectiveTimeout },
): ToolResult {
  const text =
    `Async task launched: command task '${subagentName}' (ID: ${id}) of ${task.commands.length} command(s) on instance ` +
    `${task.instanceId}, number ${queuePosition} in its queue. Task is running in background. ` +
    `Use 'check_async_tasks' to monitor progress.`
  return {
    llmContent: timeout.note === undefined ? text : `${text}\n\n${timeout.note}`,
    returnDisplay: `Async task started: **${subagentName}** (\`${id}\`)`,
    metadata: {
      agentId: id,
      async: true,
      status: 'running',
      effectiveTimeoutSeconds: timeout.seconds,
      commandTaskId: task.id,
      instanceId: task.instanceId,
      queuePosition,
    },
  }
}

function submitRefused({ error, code }: SubmitRefusal): ToolResult {
  const isParameter = code === 'INVALID_TASK' || code === 'NO_COMMANDS' || code === 'INVALID_INSTANCE'
  return errorResult(isParameter ? 'parameter_validation' : 'execution_failed', error, {
    llmContent: `The commands were not submitted: ${error} (${code}).`,
    metadata: { code },
  })
}

/** A run that is there already, in the words of a task in place. */
function bound(run: CommandRun) {
  return {
    findRunner: () => Promise.resolve(run.runner),
    unknownSubagent: () => errorResult('execution_failed', 'The commands were not submitted.'),
  }
}

type Submission = Omit<z.output<ReturnType<typeof submitCommandsSchema>>, 'async' | 'timeout_seconds'>

function toMessage({ instanceId: named, commands: calls, ...rest }: Submission): TaskSubmitMessage {
  return {
    type: 'task_submit',
    ...rest,
    ...(named !== undefined && { instanceId: named }),
    commands: calls.map(({ timeout, ...call }) => ({ ...call, ...(timeout !== undefined && { timeout }) })),
  }
}

function goalOf({ task_intention: intention, commands: calls }: Submission): string {
  return intention === '' ? calls.map(({ tool_name }) => tool_name).join(', ') : intention
}

/** The start of an id that a person can type. */
function idPrefix(name: string): string {
  const words = name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-')
  return words.slice(0, 40).replace(/^-+|-+$/g, '') || 'commands'
}
