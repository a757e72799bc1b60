/** The tools of the server for one client, over the tools of `src/tools`: its tasks are those of its owner. */
import { z } from 'zod'
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { previewText } from '../async-tasks/bounded-text.js'
import { boundNotification } from '../async-tasks/notifications.js'
import { describeIssue } from '../protocol/parse.js'
import { checkAsyncTasksSchema, createCheckAsyncTasksTool } from '../tools/check-async-tasks.js'
import type { FollowUps } from '../tools/follow-ups.js'
import { createSubmitCommandsTool, submitCommandsSchema } from '../tools/submit-commands.js'
import { createTaskTool, taskSchema } from '../tools/task-tool.js'
import { validationError, type Tool, type ToolResult } from '../tools/tool.js'
import { createWaitForAsyncTasksTool, waitForAsyncTasksSchema } from '../tools/wait-for-async-tasks.js'
import type { Backend } from './backend.js'
import { createListInstancesTool, listInstancesSchema } from './list-instances.js'
import type { McpCall, McpResult, McpTool, StartedTask } from './mcp-tool.js'
import * as outputs from './tool-outputs.js'
import { structure, toCallToolResult } from './tool-outputs.js'

/** Cancelling and answering are tools of their own here, so that looking is read-only. */
const FOLLOW_UPS: FollowUps = {
  cancel: 'cancel_async_task',
  answer: { tool: 'answer_async_task', params: {} },
}

const { task_id, part, cursor, max_bytes, question_id, answer, decline } = checkAsyncTasksSchema().shape
const oneTask = z.string().describe('The ID of the task, or a unique prefix.')

const checkSchema = z.strictObject({
  task_id,
  action: z
    .enum(['list', 'peek', 'output'])
    .optional()
    .describe(
      'list: all tasks. peek: details of one task. output: what one task has written. Default: peek with a task_id.',
    ),
  part,
  cursor,
  max_bytes,
})
const cancelSchema = z.strictObject({ task_id: oneTask })
const readSchema = z.strictObject({ task_id: oneTask, part, cursor, max_bytes })
const answerSchema = z.strictObject({ task_id: oneTask, question_id, answer, decline })

const READ_ONLY = { readOnlyHint: true, idempotentHint: true, openWorldHint: false }
const STARTS_WORK = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true }

/** The most that the description of the tool `task` says of one subagent, in characters. */
const SUBAGENT_CHARS = 300

/** Makes the tools of one owner. */
export function createTaskTools(backend: Backend, owner: string): McpTool[] {
  const { manager, taskManager, pool, subagents, config } = backend
  const { maxMessageChars, defaultTimeoutSeconds, maxTimeoutSeconds } = config
  const getAsyncTaskManager = () => manager
  const limits = { maxMessageChars, followUps: FOLLOW_UPS }
  const timeouts = { defaultTimeoutSeconds, maxTimeoutSeconds }
  const task = createTaskTool({
    ...{ getAsyncTaskManager, owner, ...limits, ...timeouts },
    resolveSubagent: (name) => subagents.get(name),
    listSubagents: () => [...subagents.keys()],
  })
  const submit = createSubmitCommandsTool({ getAsyncTaskManager, taskManager, owner, ...limits, ...timeouts })
  const check = createCheckAsyncTasksTool({ getAsyncTaskManager, owner, ...limits })
  const wait = createWaitForAsyncTasksTool({ getAsyncTaskManager, owner, ...limits })
  const instances = createListInstancesTool(pool, maxMessageChars)

  /** The end of a task as the call that started it would have returned it. */
  const toResult = (ended: SettledTaskInfo): ReturnType<StartedTask['toResult']> => {
    const { text } = boundNotification(ended, maxMessageChars)
    const metadata = { agentId: ended.id, status: ended.status, async: false, ...deadlineOf(ended) }
    const result = toCallToolResult({ llmContent: text, returnDisplay: text, metadata }, structure.launch)
    return ended.status === 'completed' ? result : { ...result, isError: true }
  }
  /** A call that would wait for its task's result, as a task. */
  const start = async (tool: Tool, args: Args, { signal }: McpCall): Promise<StartedTask | McpResult | undefined> => {
    // Whoever asks for a launch is answered by one.
    if (args['async'] === true) return undefined
    const launched = await tool.execute({ ...args, async: true }, { signal })
    const taskId = launched.metadata?.['agentId']
    if (launched.error !== undefined || typeof taskId !== 'string') return toCallToolResult(launched, structure.launch)
    return { taskId, toResult }
  }
  const withDeadline = (args: Args): Args => {
    const timeoutSeconds = config.subagents.find(({ name }) => name === args['subagent_name'])?.timeoutSeconds
    return timeoutSeconds === undefined ? args : { timeout_seconds: timeoutSeconds, ...args }
  }
  const withInstance = async (args: Args): Promise<Args> => {
    const { instanceId } = args
    await pool.ready(typeof instanceId === 'string' ? instanceId : undefined)
    return args
  }

  return [
    {
      name: 'task',
      title: 'Run a subagent',
      description: [task.description, ...subagentLines(backend)].join('\n'),
      inputSchema: taskSchema(),
      outputSchema: outputs.launchOutput,
      annotations: STARTS_WORK,
      call: async (args, { signal }) =>
        toCallToolResult(await task.execute(withDeadline(args), { signal }), structure.launch),
      start: (args, call) => start(task, withDeadline(args), call),
    },
    plain('check_async_tasks', 'Look at background tasks', {
      description:
        'Check the status of background async tasks. Call with no arguments to list all tasks, or provide a task_id (or ' +
        'prefix) to get detailed info about a specific task.',
      inputSchema: checkSchema,
      outputSchema: outputs.checkOutput,
      annotations: READ_ONLY,
      execute: (args, signal) => check.execute(args, { signal }),
      structured: structure.check,
    }),
    plain('wait_for_async_tasks', 'Wait for background tasks', {
      description: wait.description,
      inputSchema: waitForAsyncTasksSchema(),
      outputSchema: outputs.waitOutput,
      annotations: { ...READ_ONLY, idempotentHint: false },
      execute: (args, signal) => wait.execute(args, { signal }),
      structured: structure.wait,
    }),
    plain('cancel_async_task', 'Cancel a background task', {
      description: 'Cancel a background async task: its work is stopped, and it will return nothing.',
      inputSchema: cancelSchema,
      outputSchema: outputs.cancelOutput,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
      execute: (args, signal) => check.execute({ ...args, action: 'cancel' }, { signal }),
      structured: structure.cancel,
    }),
    plain('read_task_output', 'Read what a task has written', {
      description:
        'Read what a background async task has written so far, or the text of its result, from a byte cursor on. The ' +
        'result says where to read on.',
      inputSchema: readSchema,
      outputSchema: outputs.readOutput,
      annotations: READ_ONLY,
      execute: (args, signal) => check.execute({ ...args, action: 'output' }, { signal }),
      structured: structure.read,
    }),
    plain('answer_async_task', 'Answer a background task', {
      description: 'Answer a question that a background async task asks. check_async_tasks shows the questions.',
      inputSchema: answerSchema,
      outputSchema: outputs.answerOutput,
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
      execute: (args, signal) => check.execute({ ...args, action: 'answer' }, { signal }),
      structured: structure.answer,
    }),
    {
      name: 'submit_commands',
      title: 'Run commands on an instance',
      description: submit.description,
      inputSchema: submitCommandsSchema(),
      outputSchema: outputs.launchOutput,
      annotations: STARTS_WORK,
      call: async (args, { signal }) =>
        toCallToolResult(await submit.execute(await withInstance(args), { signal }), structure.launch),
      start: async (args, call) => start(submit, await withInstance(args), call),
    },
    plain('list_instances', 'List the instances', {
      description: instances.description,
      inputSchema: listInstancesSchema,
      outputSchema: outputs.instancesOutput,
      annotations: { ...READ_ONLY, openWorldHint: true },
      execute: (args, signal) => instances.execute(args, { signal }),
      structured: (metadata) => ({ instances: metadata['instances'] }),
    }),
  ]
}

type Args = Readonly<Record<string, unknown>>

interface PlainTool extends Pick<McpTool, 'description' | 'inputSchema' | 'outputSchema' | 'annotations'> {
  readonly execute: (args: Args, signal: AbortSignal) => Promise<ToolResult>
  readonly structured: (metadata: Args) => Args
}

/** Its own schema is checked here: what is behind it takes more. */
function plain(name: string, title: string, { execute, structured, ...rest }: PlainTool): McpTool {
  return {
    ...{ name, title },
    ...rest,
    call: async (args, { signal }) => {
      const parsed = rest.inputSchema.safeParse(args)
      if (parsed.success) return toCallToolResult(await execute(args, signal), structured)
      const { field, received, expected } = describeIssue(parsed.error, args, 'params')
      return toCallToolResult(validationError(name, field, received, expected), structured)
    },
  }
}

function subagentLines({ subagents }: Backend): string[] {
  if (subagents.size === 0) return ['No subagents are configured.']
  const lines = [...subagents].map(([name, { description = '' }]) => {
    return `- ${name}: ${previewText(description.replace(/\s+/g, ' '), SUBAGENT_CHARS)}`
  })
  return ['Subagents:', ...lines]
}

function deadlineOf({ timeoutMs }: AsyncTaskInfo): { effectiveTimeoutSeconds: number } {
  return { effectiveTimeoutSeconds: timeoutMs === undefined ? -1 : timeoutMs / 1000 }
}
