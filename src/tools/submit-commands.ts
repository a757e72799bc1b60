/** The tool submit_commands, which runs commands on an instance as a command task. An async task follows the command task to its end (promise S10). */
import { z } from 'zod'
import { givenManager } from '../async-tasks/given-manager.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { ActiveTaskInfo } from '../../machines/records.js'
import { previewText } from '../features/output/bounded-text.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { DEFAULT_OWNER } from '../async-tasks/owner.js'
import { pendingLaunches } from '../async-tasks/pending-launches.js'
import { areOfCluster, type ClusterTasks } from '../command-tasks/cluster-tasks.js'
import { NOT_STORED } from '../command-tasks/submission.js'
import type { TaskManager } from '../command-tasks/task-manager.js'
import { turnLaunches, type LaunchedWork } from '../features/kept-turns/turn-launches.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import { lazily } from '../protocol/lazily.js'
import { checkOptions, objectWith, required, type OptionTypes } from '../protocol/option-checks.js'
import { MAX_COMMANDS, taskSubmitSchema, type TaskSubmitMessage } from '../protocol/task-submission.js'
import { submitToCluster } from './cluster-command-run.js'
import { submitCommandTask, type CommandRun, type SubmitRefusal } from './command-run.js'
import {
  foregroundRefusal,
  backgroundResultOf,
  launchedResult,
  limitRefusal,
  heldRefusal,
  refusedInPlace,
  runInPlace,
} from './task-runs.js'
import {
  timeoutPolicy,
  timeoutSecondsSchema,
  withTimeoutText,
  type EffectiveTimeout,
  type TimeoutSettings,
} from './task-timeout.js'
import {
  launchOptionTypes,
  readLaunchOptions,
  type AsyncTaskToolOptions,
  type FollowUps,
  type ForegroundOptions,
} from './task-tool-options.js'
import { untilStored } from './stored-launch.js'
import { launchOutput } from './task-tool.js'
import { STARTS_WORK, type HostTool } from './tool-descriptor.js'
import { defineTool, errorResult, type Tool, type ToolResult } from './tool.js'
import { strictObject } from '../protocol/strict-object.js'

export const submitCommandsSchema = lazily(() => {
  const { task_name, task_intention, instanceId, commands } = taskSubmitSchema().shape
  const command = commands.element.shape
  return strictObject({
    task_name: task_name.describe('A short name of the task.'),
    task_intention: task_intention.describe('What the task should achieve.'),
    instanceId: instanceId.describe('The instance to run on. Default: the first that is connected.'),
    commands: z
      .array(
        strictObject({
          tool_name: command.tool_name.describe('The tool to call.'),
          intention: command.intention.describe('Why this call is made.'),
          args: command.args.describe("The tool's arguments."),
          timeout: command.timeout.describe('How long the call may take, in ms.'),
        }),
      )
      .min(1)
      .max(MAX_COMMANDS)
      .describe('The calls, made one after the other. The task ends at the first call that fails.'),
    timeout_seconds: timeoutSecondsSchema(),
    async: z
      .boolean()
      .default(true)
      .describe('true (default): run in the background; you are notified when it ends. false: wait for its result.'),
  })
})

/**
 * The parameters of the tool `submit_commands`.
 * @useDeclaredType
 */
export type SubmitCommandsParams = z.input<ReturnType<typeof submitCommandsSchema>>

/** Options of `createSubmitCommandsTool`. */
export interface SubmitCommandsOptions extends AsyncTaskToolOptions, TimeoutSettings, ForegroundOptions {
  /** What runs the command tasks: a manager of this process, or a cluster. */
  readonly taskManager: TaskManager | ClusterTasks
  /** The owner of the tasks: the results of background tasks are delivered to it. Default `main`. */
  readonly owner?: string
}

export const aTaskManager = objectWith(
  'a TaskManager, or the tasks of a cluster',
  'submitTask',
  'cancelTask',
  'getTask',
)

const optionTypes: OptionTypes<SubmitCommandsOptions> = {
  ...launchOptionTypes,
  taskManager: required(aTaskManager),
}

const NAME = 'submit_commands'

/**
 * Creates the tool `submit_commands`. Each call submits a command task, and registers an async task that reports its progress and
 * result. Cancelling the async task cancels the command task. If the command task is cancelled elsewhere, the async task fails with an error that says
 * so.
 * @param options the managers of async tasks and of command tasks, and limits
 * @returns the tool
 * @throws INVALID_SETTING for a timeout or `maxMessageChars` out of its range
 * @throws INVALID_INPUT for an unknown or wrong option
 */
export function createSubmitCommandsTool(
  options: SubmitCommandsOptions,
): Tool<ReturnType<typeof submitCommandsSchema>> {
  checkOptions(options, optionTypes)
  const timeoutOf = timeoutPolicy(options)
  const { inputOf, ...shared } = readLaunchOptions(options)
  const { taskManager } = options
  const description =
    'Run a list of tool calls on an instance (a browser, an MCP server, a remote worker), one after the other. By ' +
    'default the call returns at once and the commands run in the background, and their result is delivered ' +
    'automatically. With async: false the call returns the result.'
  return defineTool({
    name: NAME,
    description,
    inputSchema: submitCommandsSchema(),
    listed: () => ({ description, inputSchema: withTimeoutText(submitCommandsSchema(), options) }),
    describe: (input) => {
      const count = input.commands.length
      return `Run ${count} command${count === 1 ? '' : 's'}${input.async ? ' in the background' : ''}: ${previewText(input.task_name, 100)}`
    },
    run: async ({ async: isAsync, timeout_seconds, ...params }, context) => {
      const timeout = timeoutOf(timeout_seconds)
      const manager = givenManager(options)
      const prepare = (): Prepared => {
        const id = manager.createTaskId(idPrefix(params.task_name))
        const launchInput = (run: CommandRun): LaunchTaskInput => ({
          id,
          subagentName,
          goalPrompt: goalOf(params),
          abortController: run.abortController,
          ...inputOf(timeout),
          ...omitUndefined({ context: run.context }),
        })
        return { message: toMessage(params, id), launchInput }
      }
      const { followUps } = shared
      // The command task is submitted before the async task is launched, because a launched task starts at once.
      const { owner = DEFAULT_OWNER } = options
      const subagentName = previewText(params.task_name, 100)
      const work = { subagentName, goalPrompt: goalOf(params), owner, params }
      const earlier = isAsync ? manager.reads.use(turnLaunches).take(work)?.record : undefined
      if (earlier !== undefined) {
        return backgroundResultOf(
          { manager, timeout, followUps },
          earlier,
          `command task '${subagentName}' (ID: ${earlier.id}).`,
        )
      }
      const hold = manager.reads.ownerHold(owner)
      if (hold !== undefined) {
        return heldRefusal(hold.refusal(), 'Submit the commands again when a person has resumed them.')
      }
      if (isAsync) {
        const launch = launchCommands({
          manager,
          taskManager,
          owner,
          timeout,
          followUps,
          prepare,
          work,
          signal: context.signal,
        })
        return manager.reads.use(pendingLaunches).track(owner, launch)
      }
      const refusal = foregroundRefusal(manager)
      if (refusal !== undefined) return refusal
      const { message, launchInput } = prepare()
      const run = areOfCluster(taskManager)
        ? await submitToCluster(taskManager, message)
        : submitCommandTask(taskManager, message)
      if ('error' in run) return submitRefused(run)
      if (run.accepted !== undefined && !(await run.accepted)) return submitRefused(NOT_STORED)
      try {
        const call = { manager, input: launchInput(run), timeout, context, ...shared }
        return await runInPlace(call, run.runner)
      } catch (error) {
        run.abandon()
        return refusedInPlace(error)
      }
    },
  })
}

/** The async task to launch, and the command task to submit. Both refer to the same new id. */
interface Prepared {
  readonly message: TaskSubmitMessage
  readonly launchInput: (run: CommandRun) => LaunchTaskInput
}

interface Launch {
  readonly manager: AsyncTaskManager
  readonly taskManager: TaskManager | ClusterTasks
  readonly timeout: EffectiveTimeout
  readonly followUps: Required<FollowUps>
  readonly owner: string
  readonly prepare: () => Prepared
  /** What makes two launches the same. */
  readonly work: LaunchedWork
  readonly signal: AbortSignal | undefined
}

/** The maximum time that a slot is reserved while a cluster accepts a command task, in ms. */
const SUBMIT_MS = 600_000

/** Reserves a slot before it submits the command task. So no command task is submitted without an async task that follows it. */
async function launchCommands(launch: Launch): Promise<ToolResult> {
  const { manager, taskManager, owner, timeout, followUps, prepare, work, signal } = launch
  const isRemote = areOfCluster(taskManager)
  const reservationId = manager.tryReserveAsyncSlot({ owner, ...(isRemote && { ttlMs: SUBMIT_MS }) })
  if (reservationId === null) return limitRefusal(manager, followUps, owner)
  try {
    const { message, launchInput } = prepare()
    const run = isRemote ? await submitToCluster(taskManager, message) : submitCommandTask(taskManager, message)
    if ('error' in run) return submitRefused(run)
    if (run.accepted !== undefined && !(await run.accepted)) return submitRefused(NOT_STORED)
    try {
      if (isRemote) signal?.throwIfAborted()
      const task = manager.launch(launchInput(run), run.runner, reservationId)
      manager.reads.use(turnLaunches).add(task.id, work)
      await untilStored(manager, task.id)
      return launched(run, message.commands.length, task, timeout, followUps)
    } catch (error) {
      run.abandon()
      throw error
    }
  } finally {
    manager.cancelReservation(reservationId)
  }
}

function launched(
  { commandTaskId, instanceId, queuePosition }: CommandRun,
  count: number,
  asyncTask: ActiveTaskInfo,
  timeout: EffectiveTimeout,
  followUps: Required<FollowUps>,
): ToolResult {
  const what =
    `command task '${asyncTask.subagentName}' (ID: ${asyncTask.id}) of ${count} command(s) on instance ` +
    `${instanceId}, number ${queuePosition} in its queue.`
  return launchedResult(asyncTask, timeout, what, followUps, { commandTaskId, instanceId, queuePosition })
}

function submitRefused({ error, code }: SubmitRefusal): ToolResult {
  const isParameter = code === 'INVALID_TASK' || code === 'NO_COMMANDS' || code === 'INVALID_INSTANCE'
  return errorResult(isParameter ? 'parameter_validation' : 'execution_failed', error, {
    llmContent: `The commands were not submitted: ${error} (${code}).`,
    metadata: { code },
  })
}

type Submission = Omit<z.output<ReturnType<typeof submitCommandsSchema>>, 'async' | 'timeout_seconds'>

function toMessage(
  { instanceId: named, commands: calls, ...rest }: Submission,
  asyncTaskId: string,
): TaskSubmitMessage {
  return {
    type: 'task_submit',
    ...rest,
    // The metadata of the command task contains the id of the async task that follows it.
    metadata: { asyncTaskId },
    ...omitUndefined({ instanceId: named }),
    commands: calls.map(({ timeout, ...call }) => ({ ...call, ...omitUndefined({ timeout }) })),
  }
}

function goalOf({ task_intention: intention, commands: calls }: Submission): string {
  return intention === '' ? calls.map(({ tool_name }) => tool_name).join(', ') : intention
}

/** The beginning of the id of a task, with characters that people can type. */
function idPrefix(name: string): string {
  const words = name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-')
  return words.slice(0, 40).replace(/^-+|-+$/g, '') || 'commands'
}

export const submitCommandsTool: HostTool<ReturnType<typeof createSubmitCommandsTool> | undefined> = {
  name: NAME,
  title: 'Run commands on an instance',
  summary: 'Runs a list of tool calls on an instance.',
  purpose: 'runs tool calls on an instance, such as a browser, one after the other.',
  starts: 'tool calls on an instance',
  hints: STARTS_WORK,
  output: launchOutput,
  needsInstances: true,
  answersLater: (args) => args['async'] !== false,
  slotOf: (args) => (args['async'] === false ? 'inPlace' : 'background'),
  create: ({ owned, launching, taskManager }) =>
    taskManager && createSubmitCommandsTool({ ...owned, ...launching, taskManager }),
  served: {
    description:
      'Run tool calls on an instance (a browser, an MCP server), one after the other, in the background unless async is false.',
    texts: {
      task_name: '',
      task_intention: '',
      instanceId: 'Default: the first that is connected.',
      commands: 'The first that fails ends the task.',
      async: 'Default true.',
    },
  },
}
