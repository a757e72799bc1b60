/** The tools of one client, made of the neutral tools of `src/tools`. Each neutral tool checks its input; nothing is checked here. */
import type { CallToolResult, ToolAnnotations } from '@modelcontextprotocol/server'
import { z } from 'zod'
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { maxWholeChars } from '../async-tasks/bounded-text.js'
import { boundNotification, titleOf } from '../async-tasks/notifications.js'
import {
  checkAsyncTasksSchema,
  createTaskCheck,
  type CheckAsyncTasksOptions,
  type CheckAsyncTasksParams,
} from '../tools/check-async-tasks.js'
import { subagentLines } from '../tools/subagents.js'
import { createSendToTaskTool } from '../tools/send-to-task.js'
import { createSubmitCommandsTool } from '../tools/submit-commands.js'
import { createTaskTool, type TaskParams } from '../tools/task-tool.js'
import { defineTool, errorResult, type Tool, type ToolResult } from '../tools/tool.js'
import { createWaitForAsyncTasksTool } from '../tools/wait-for-async-tasks.js'
import type { Backend } from './backend.js'
import type { CallSlots } from './client-slots.js'
import { createCommandTool } from './command-tool.js'
import { imagesOf } from './command-images.js'
import { FOLLOW_UPS } from './follow-ups.js'
import type { InstanceSource } from './instance-source.js'
import { createListInstancesTool } from './list-instances.js'
import type { McpTool, StartedTask } from './mcp-tool.js'
import { withReserved } from './reserved-results.js'
import { earlierText } from './result-marks.js'
import { UNTRUSTED } from './untrusted-tools.js'
import { workingDirectory, type FindProject } from './working-directory.js'
import * as outputs from './tool-outputs.js'
import { toCallToolResult, type ToolOutput } from './tool-outputs.js'
import { strictObject } from '../protocol/strict-object.js'

const { task_id, part, cursor, max_bytes, question_id, answer, decline, reason } = checkAsyncTasksSchema().shape
const ID = 'ID or unique prefix.'
const oneTask = z.string().describe(ID)

// Every client pays for these texts with each of its turns: what one tool says, another need not repeat.
const checkSchema = strictObject({
  task_id: task_id.describe(ID),
  action: z.enum(['list', 'peek']).optional(),
  ...{ cursor: cursor.describe(''), max_bytes: max_bytes.describe('') },
})
const cancelSchema = strictObject({ task_id: oneTask, reason: reason.describe('') })
const readSchema = strictObject({
  task_id: oneTask,
  part: part.describe('output (default), or a result that was cut.'),
  cursor: cursor.describe(''),
  max_bytes: max_bytes.describe('Default 16384.'),
})
const answerSchema = strictObject({
  task_id: oneTask,
  question_id: question_id.describe('If it has several.'),
  answer: answer.describe('Text, or what its schema asks for.'),
  decline: decline.describe(''),
})

const cwdSchema = z.string().optional().describe('The working directory, for subagents that may have another.')

// A hint that is missing has its default: not idempotent, and open to the world.
const READ_ONLY = { readOnlyHint: true, idempotentHint: true, openWorldHint: false }
const STARTS_WORK = { readOnlyHint: false, destructiveHint: true }

// Descriptions of parameters; '' where the name says enough.
const TASK_TEXTS: Texts = {
  ...{ subagent_name: '', goal_prompt: 'All that it has to know.', behaviour_prompts: 'Further instructions.' },
  ...{ tool_whitelist: 'The only tools it may use.', expected_outputs: 'What it should return, by name.', context: '' },
  async: 'true: in the background.',
}
const WAIT_TEXTS: Texts = {
  task_ids: 'IDs or unique prefixes. Default: all that run.',
  mode: 'Whether all (default) or any have to end.',
}
const SUBMIT_TEXTS: Texts = {
  ...{ task_name: '', task_intention: '', instanceId: 'Default: the first that is connected.' },
  ...{ commands: 'The first that fails ends the task.', async: 'Default true.' },
}

const RUN_DESCRIPTION =
  'Run a subagent on a goal, and return its result. With async: true it runs in the background: its result comes with the answer of a ' +
  'later call of any of these tools.'
const WAIT_DESCRIPTION =
  'Wait until background async tasks have ended, and get their results. Use it when you have nothing else to do.'
const SUBMIT_DESCRIPTION =
  'Run tool calls on an instance (a browser, an MCP server), one after the other, in the background unless async is false.'

/**
 * Creates the tools for one owner's tasks.
 * @param findProject finds the client's project; default: it has none
 */
export function createTaskTools(
  backend: Backend,
  owner: string,
  findProject: FindProject = () => Promise.resolve(undefined),
): McpTool[] {
  const { manager, taskManager, commandTasks, instances, subagents, config } = backend
  const { maxMessageChars, defaultTimeoutSeconds, maxTimeoutSeconds, maxBlockingSeconds } = config
  const common = { getAsyncTaskManager: () => manager, owner, maxMessageChars, followUps: FOLLOW_UPS }
  const timeouts = { defaultTimeoutSeconds, maxTimeoutSeconds, maxBlockingSeconds }
  const listed = [...subagents].map(([name, { description }]) => ({ name, description }))
  const taskIn = (cwd?: string) =>
    createTaskTool({
      ...{ ...common, ...timeouts },
      resolveSubagent: (name) => subagents.get(name),
      listSubagents: () => listed,
      cwd,
    })
  const standard = taskIn()
  const task: Tool = {
    ...standard,
    inputSchema: config.subagents.some(({ cwdPerCall }) => cwdPerCall)
      ? withTexts(standard.inputSchema, TASK_TEXTS).extend({ cwd: cwdSchema })
      : withTexts(standard.inputSchema, TASK_TEXTS),
    describe: (input) => standard.describe(input as TaskParams),
    execute: async (input, context) => {
      const { cwd: asked, ...params } = input as Args
      const found = await workingDirectory(backend, params['subagent_name'], asked, findProject)
      return 'refusal' in found ? found.refusal : taskIn(found.cwd).execute(params as TaskParams, context)
    },
  }
  const submit = withInstance(
    withShortTexts(createSubmitCommandsTool({ ...common, ...timeouts, taskManager: commandTasks }), SUBMIT_TEXTS),
    instances,
  )
  const hasInstances = config.instances.length > 0 || commandTasks !== taskManager
  const checkTask = (options: CheckToolOptions) => defineCheckTool(common, options)
  const command = createCommandTool(backend, { ...common, ...timeouts }, findProject)

  const withDeadline = (args: Args): Args => {
    const timeoutSeconds = config.subagents.find(({ name }) => name === args['subagent_name'])?.timeoutSeconds
    return timeoutSeconds === undefined ? args : { timeout_seconds: timeoutSeconds, ...args }
  }
  const launching = { output: outputs.launchOutput, annotations: STARTS_WORK, owner, backend, slots: backend.slots }

  return [
    toLaunchTool(task, {
      ...{
        ...launching,
        title: 'Run a subagent',
        prepare: withDeadline,
        isBackground: (args) => args['async'] === true,
      },
      description: [RUN_DESCRIPTION, ...(listed.length === 0 ? [noSubagents(backend)] : subagentLines(listed))].join(
        '\n',
      ),
    }),
    toMcpTool(
      defineTool({
        name: 'check_async_tasks',
        description: 'Check the status of background async tasks: all of them, or one in detail.',
        inputSchema: checkSchema,
        run: createTaskCheck(common),
      }),
      {
        ...{ title: 'Look at background tasks', output: outputs.checkOutput, annotations: READ_ONLY },
        listedSchema: checkSchema.pick({ task_id: true, action: true, cursor: true }),
      },
    ),
    toMcpTool(withReserved(withShortTexts(createWaitForAsyncTasksTool(common), WAIT_TEXTS), manager, owner), {
      title: 'Wait for background tasks',
      description: WAIT_DESCRIPTION,
      output: outputs.waitOutput,
      annotations: { readOnlyHint: true, openWorldHint: false },
    }),
    toMcpTool(
      checkTask({
        ...{ name: FOLLOW_UPS.cancel, action: 'cancel', inputSchema: cancelSchema },
        description: 'Cancel a background async task.',
      }),
      {
        title: 'Cancel a background task',
        output: outputs.cancelOutput,
        annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
      },
    ),
    toMcpTool(
      checkTask({
        ...{ name: FOLLOW_UPS.read.tool, action: 'output', inputSchema: readSchema },
        description: 'Read what a background async task has written so far, or its result, from a byte cursor on.',
      }),
      { title: 'Read the output of a task', output: outputs.readOutput, annotations: READ_ONLY },
    ),
    toMcpTool(
      checkTask({
        ...{ name: FOLLOW_UPS.answer.tool, action: 'answer', inputSchema: answerSchema },
        description: 'Answer a question of a background async task.',
      }),
      {
        title: 'Answer a background task',
        output: outputs.answerOutput,
        annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
      },
    ),
    toMcpTool(createSendToTaskTool(common), {
      title: 'Send a message to a task',
      output: outputs.sendOutput,
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    }),
    toLaunchTool(submit, {
      ...{
        ...launching,
        title: 'Run commands on an instance',
        prepare: (args) => args,
        isBackground: (args) => args['async'] !== false,
      },
      description: SUBMIT_DESCRIPTION,
      isListed: hasInstances,
    }),
    ...(command === undefined
      ? []
      : [
          toLaunchTool(command, {
            ...{ ...launching, title: 'Run a program', output: outputs.commandOutput, slots: backend.commandSlots },
            annotations: { destructiveHint: true, openWorldHint: true },
            prepare: (args) => args,
            // It takes a slot also while its call waits for it.
            isBackground: () => true,
          }),
        ]),
    toMcpTool(createListInstancesTool(instances, maxMessageChars), {
      title: 'List the instances',
      output: outputs.instancesOutput,
      isListed: hasInstances,
      annotations: { readOnlyHint: true, idempotentHint: true },
    }),
  ]
}

type Args = Readonly<Record<string, unknown>>
type Texts = Readonly<Record<string, string>>

/** Connects the instance before a valid call runs on it. */
function withInstance(tool: Tool, instances: InstanceSource): Tool {
  return {
    ...tool,
    describe: (input) => tool.describe(input),
    execute: async (input, context) => {
      const { instanceId } = input as Args
      const problem = tool.inputSchema.safeParse(input).success
        ? await instances.ready(typeof instanceId === 'string' ? instanceId : undefined)
        : undefined
      return problem === undefined ? tool.execute(input, context) : errorResult('execution_failed', problem)
    },
  }
}

/** What a client lists. Calls are checked by the tool's own schema. */
const withShortTexts = (tool: Tool, texts: Texts): Tool => ({
  ...tool,
  inputSchema: withTexts(tool.inputSchema, texts),
})

function withTexts(schema: z.ZodObject, texts: Texts): z.ZodObject {
  const described = Object.entries(texts).flatMap(([name, text]) => {
    const field = schema.shape[name] as z.ZodType | undefined
    return field === undefined ? [] : [[name, field.describe(text)]]
  })
  return schema.extend(Object.fromEntries(described) as z.ZodRawShape)
}

interface CheckToolOptions {
  readonly name: string
  readonly action: NonNullable<CheckAsyncTasksParams['action']>
  readonly description: string
  readonly inputSchema: z.ZodObject
}

/** A tool that does one of the actions of check_async_tasks. */
function defineCheckTool(
  common: CheckAsyncTasksOptions,
  { name, action, description, inputSchema }: CheckToolOptions,
): Tool {
  const check = createTaskCheck(common, name)
  return defineTool({
    ...{ name, description, inputSchema },
    run: (input, context) => check({ ...(input as CheckAsyncTasksParams), action }, context),
  })
}

interface McpToolOptions {
  readonly title: string
  readonly output: ToolOutput
  readonly annotations: ToolAnnotations
  readonly description?: string
  /** What a client lists, without what another tool is for. Default: the schema that checks calls. */
  readonly listedSchema?: z.ZodObject
  /** Default: true. */
  readonly isListed?: boolean
}

function toMcpTool(
  tool: Tool,
  {
    title,
    output,
    annotations,
    description = tool.description,
    listedSchema = tool.inputSchema,
    isListed = true,
  }: McpToolOptions,
): McpTool {
  return {
    name: tool.name,
    inputSchema: listedSchema,
    outputSchema: output.schema,
    ...{ title, description, annotations, isListed },
    call: async (args, { signal, detach, hold, asker }) =>
      toCallToolResult(await tool.execute(args, { signal, detach, hold, asker }), output),
  }
}

interface LaunchToolOptions extends McpToolOptions {
  /** Completes the arguments of a call before they are checked. */
  readonly prepare: (args: Args) => Args | Promise<Args>
  /** Whether a call with these arguments runs its task in the background. */
  readonly isBackground: (args: Args) => boolean
  readonly owner: string
  readonly backend: Backend
  /** What counts the tasks that it launches. */
  readonly slots: CallSlots
}

/** A tool whose calls start a task of the registry, and can therefore become tasks of the extension. */
function toLaunchTool(tool: Tool, options: LaunchToolOptions): McpTool {
  const { prepare, output, isBackground, owner, backend, slots } = options
  const direct = toMcpTool(tool, options)
  const toResult: StartedTask['toResult'] = (ended) => taskResult(backend, ended)
  return {
    ...direct,
    call: async (args, { onLaunched, inputResponses: _inputResponses, ...context }) => {
      const execute = async (onSlotTaken: () => void): Promise<ToolResult> => {
        const onTaskLaunched = (taskId: string): void => {
          onSlotTaken()
          onLaunched?.(taskId)
        }
        return tool.execute(await prepare(args), { ...context, onLaunched: onTaskLaunched })
      }
      const result = isBackground(args)
        ? await slots.launch(owner, execute)
        : await backend.slots.runInPlace(owner, execute)
      return toCallToolResult(result, output)
    },
    start: async (args, { signal }) => {
      // A call with `async: true` asks for a launch, and is answered with one.
      if (args['async'] === true) return undefined
      const launched = await slots.launch(owner, async (onLaunched) =>
        tool.execute({ ...(await prepare(args)), async: true }, { signal, onLaunched }),
      )
      const taskId = launched.metadata?.['agentId']
      if (launched.error !== undefined || typeof taskId !== 'string') return toCallToolResult(launched, output)
      return { taskId, toResult }
    },
  }
}

/** The end of a task, as a direct call that started it would have returned it, under a line that names the task: its client asks later. */
export function taskResult(backend: Backend, ended: SettledTaskInfo): CallToolResult {
  const { config, session } = backend
  const isEarlier = session?.earlierTasks.has(ended.id) === true
  const { maxMessageChars } = config
  const title = titleOf(ended)
  const room = maxWholeChars(maxMessageChars) - title.length - 1
  const end = boundNotification(ended, maxMessageChars, room, FOLLOW_UPS.read, false)
  const text = `${title}\n${end.text}`
  const llmContent = isEarlier ? `${text}\n\n${earlierText([ended.id])}` : text
  const { id, status, exitCode, endedProcesses } = ended
  const metadata = {
    ...{ agentId: id, status, async: false, ...deadlineOf(ended) },
    ...(exitCode !== undefined && { exitCode }),
    ...(endedProcesses !== undefined && { endedProcesses }),
  }
  const { content, structuredContent } = toCallToolResult(
    { llmContent, returnDisplay: text, metadata },
    ended.kind === 'command' ? outputs.commandOutput : outputs.launchOutput,
  )
  return {
    content: [...content, ...imagesOf(backend, [ended.id])],
    structuredContent: { ...(structuredContent as Args), ...(isEarlier && { earlier_session: [ended.id] }) },
    ...(ended.status !== 'completed' && { isError: true }),
  }
}

function noSubagents({ configFile, untrusted }: Backend): string {
  if (untrusted !== undefined) return UNTRUSTED
  return configFile === undefined
    ? 'No subagents are configured.'
    : `No subagents are configured: the user can add them to ${configFile}.`
}

function deadlineOf({ timeoutMs }: AsyncTaskInfo): { effectiveTimeoutSeconds: number } {
  return { effectiveTimeoutSeconds: timeoutMs === undefined ? -1 : timeoutMs / 1000 }
}
