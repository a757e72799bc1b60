/** The tool check_async_tasks: lists tasks, shows one, reads its output, cancels it, and answers its questions. */
import { STATUSES } from '../../machines/task-status.js'
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import { checkOptions, pickOptions } from '../protocol/option-checks.js'
import { BaseDeclarativeTool, type ToolInvocation } from './declarative-tool.js'
import { answerTask } from './task-answer.js'
import { listTasks } from './task-list.js'
import { peekPastTask, peekTask } from './task-peek.js'
import { readResult, readWritten } from './task-text.js'
import { stoppingFields, stoppingText } from '../features/stopping/stopping.js'
import { taskHistory } from '../features/history/past-tasks.js'
import { asks, hasNotEnded, isCertain } from '../features/task-ids/task-lookup.js'
import { ownedOptionTypes, type AsyncTaskToolOptions } from './task-tool-options.js'
import { findTask, taskViews, type TaskView } from './task-view.js'
import { READ_ONLY, type HostTool } from './tool-descriptor.js'
import { outputOf } from './tool-output.js'
import {
  defineTool,
  errorResult,
  textResult,
  validationError,
  type Tool,
  type ToolContext,
  type ToolResult,
} from './tool.js'
import { strictObject } from '../protocol/strict-object.js'

/** The default of `max_bytes`: how much of a text one call returns, in bytes. */
const DEFAULT_READ_BYTES = 16_384

export const checkAsyncTasksSchema = lazily(() =>
  strictObject({
    task_id: z.string().optional().describe('Optional task ID or unique prefix to get details for a specific task.'),
    action: z
      .enum(['list', 'peek', 'cancel', 'output', 'answer'])
      .optional()
      .describe(
        'list: all tasks. peek: details of one task. cancel: stop one task. output: read the output of one task. ' +
          'answer: answer a question of one task. Default: peek with a task_id, list without.',
      ),
    part: z
      .enum(['output', 'result'])
      .optional()
      .describe(
        'For action output. output (default): what the task has written. result: the full text of its result, if it was cut.',
      ),
    cursor: z
      .number()
      .int()
      .min(0)
      .optional()
      .describe(
        'For action output and peek: the byte to start reading at. For list: the number of tasks to pass over.',
      ),
    max_bytes: z
      .number()
      .int()
      .min(1)
      .optional()
      .describe(`For action output: how many bytes to return at most. Default ${DEFAULT_READ_BYTES}.`),
    raw: z
      .boolean()
      .optional()
      .describe(
        'For action output: true for all that was written, with the codes for a terminal. Default: as a terminal shows it.',
      ),
    question_id: z
      .string()
      .optional()
      .describe('For action answer: the ID of the question, if the task has more than one.'),
    answer: z
      .union([z.string(), z.boolean(), z.number(), z.record(z.string(), z.unknown())])
      .optional()
      .describe('For action answer: a value, or an object that matches the schema of the question.'),
    reason: z.string().optional().describe('For action cancel: why, in words. The task and its owner see it.'),
    decline: z.boolean().optional().describe('For action answer: true to decline the question.'),
  }),
)

/**
 * The parameters of the tool `check_async_tasks`.
 * @useDeclaredType
 */
export type CheckAsyncTasksParams = z.input<ReturnType<typeof checkAsyncTasksSchema>>

/** Options of `createCheckAsyncTasksTool`. */
export interface CheckAsyncTasksOptions extends AsyncTaskToolOptions {
  /** Restricts the tool to the tasks of this owner. Default: the tasks of every owner. */
  readonly owner?: string
}

const NAME = 'check_async_tasks'

/**
 * Creates the tool `check_async_tasks`. It lists tasks, shows one, reads its output, cancels it, and answers its questions.
 * @param options the manager, the owner of the visible tasks, and limits
 * @returns the tool
 * @throws INVALID_SETTING when `maxMessageChars` is not an integer >= 200
 * @throws INVALID_INPUT for an unknown or wrong option
 */
export function createCheckAsyncTasksTool(
  options: CheckAsyncTasksOptions,
): Tool<ReturnType<typeof checkAsyncTasksSchema>> {
  return defineTool({
    name: NAME,
    description:
      'Check the status of background async tasks. Call with no arguments to list all tasks, or provide a task_id (or ' +
      'prefix) to get detailed info about a specific task. It can also cancel a task, read its output, and answer its ' +
      'questions.',
    inputSchema: checkAsyncTasksSchema(),
    describe: describeCall,
    run: createTaskCheck(options),
  })
}

/**
 * Creates the function that runs the tool. Other tools use it for a part of the input, which they check themselves.
 * @param name the name of the calling tool, for errors
 */
export function createTaskCheck(
  options: CheckAsyncTasksOptions,
  name: string = NAME,
): (input: CheckAsyncTasksParams, context: ToolContext) => Promise<ToolResult> {
  checkOptions(options, ownedOptionTypes)
  const viewOf = taskViews(options)
  return (input, context) => check(name, viewOf(context), input)
}

function actionOf({ action, task_id }: CheckAsyncTasksParams): NonNullable<CheckAsyncTasksParams['action']> {
  return action ?? (task_id === undefined || task_id === '' ? 'list' : 'peek')
}

function describeCall(input: CheckAsyncTasksParams): string {
  switch (actionOf(input)) {
    case 'list':
      return 'List all async tasks'
    case 'peek':
      return `Check status of async task '${input.task_id ?? ''}'`
    case 'cancel':
      return `Cancel async task '${input.task_id ?? ''}'`
    case 'output':
      return `Read ${input.part ?? 'output'} of async task '${input.task_id ?? ''}'`
    case 'answer':
      return `Answer async task '${input.task_id ?? ''}'`
  }
}

async function check(name: string, view: TaskView, input: CheckAsyncTasksParams): Promise<ToolResult> {
  const action = actionOf(input)
  if (action === 'list') return listTasks(view, input.cursor)
  const { task_id = '', cursor, max_bytes = DEFAULT_READ_BYTES } = input
  if (task_id.trim() === '') {
    return validationError(name, 'params.task_id', input.task_id, `a task ID or a prefix of one, to ${action}`)
  }
  const found = findTask(view, task_id, action === 'cancel' ? hasNotEnded : action === 'answer' ? asks : undefined)
  // Each UTF-16 unit takes at least one byte in UTF-8. So `maxChars` bytes are at most `maxChars` characters.
  const maxBytes = Math.min(max_bytes, view.maxChars)
  if ('refusal' in found) {
    if (action === 'cancel' || action === 'answer') return found.refusal
    const past = await view.manager.reads.use(taskHistory).find(found.pruned ?? task_id, view.owner)
    return past === undefined ? found.refusal : peekPastTask(view, past, { cursor: cursor ?? 0, maxBytes })
  }
  const { task } = found
  if (action === 'cancel') {
    return isCertain(view.manager, task_id, task) ? cancel(view, task.id, input.reason) : notListed(task_id, task.id)
  }
  if (action === 'answer') return answerTask(view, task, input)
  if (action === 'peek') return peekTask(view, task, cursor === undefined ? undefined : { cursor, maxBytes })
  return input.part === 'result'
    ? readResult(view, task, { cursor, maxBytes })
    : readWritten(view, task, { cursor, maxBytes }, input.raw === true)
}

/** A prefix is refused for a task that no list has shown: the model may have meant another task with this prefix. */
function notListed(prefix: string, taskId: string): ToolResult {
  const text = `Nothing was cancelled: '${prefix}' is short for ${taskId}, which no list has shown yet. To cancel that task, use its full ID.`
  return errorResult('parameter_validation', text)
}

async function cancel({ manager }: TaskView, taskId: string, reason: string | undefined): Promise<ToolResult> {
  const isCancelled = manager.cancelTask(taskId, { reason })
  const status = manager.getTask(taskId)?.status ?? 'cancelled'
  const isStored = await manager.stored().then(
    () => true,
    () => false,
  )
  const stopping = stoppingText(manager.reads, taskId)
  const notes = [
    stopping === undefined ? '' : `. It is ${stopping}. To wait for that, call wait_for_async_tasks with its ID.`,
    isStored ? '' : `${stopping === undefined ? '. ' : ' '}${NOT_STORED_YET}`,
  ]
  const text = isCancelled ? `Cancelled task: ${taskId}` : `Task ${taskId} is already ${status}${stopping ? '' : '.'}`
  return textResult([text, ...(isCancelled ? notes : notes.slice(0, 1))].join(''), {
    id: taskId,
    status,
    cancelled: isCancelled,
    ...stoppingFields(manager.reads, taskId),
  })
}

const NOT_STORED_YET = 'This could not be stored yet: if the process ends before it is, the task may run again.'

/** The input for MCP clients, which have separate tools for the other actions. So this tool is read-only there. */
const servedSchema = lazily(() => {
  const { task_id, cursor, max_bytes } = checkAsyncTasksSchema().shape
  return strictObject({
    task_id: task_id.describe('ID or unique prefix.'),
    action: z.enum(['list', 'peek']).optional(),
    cursor: cursor.describe(''),
    max_bytes: max_bytes.describe(''),
  })
})

export const checkAsyncTasksTool: HostTool<ReturnType<typeof createCheckAsyncTasksTool>> = {
  name: NAME,
  title: 'Look at background tasks',
  summary:
    'Lists all tasks, or shows one. For a host it also reads the output of a task, cancels it and answers its questions.',
  purpose: 'shows all tasks, or one in detail, when somebody asks how it is going.',
  brief: 'shows the status',
  hints: READ_ONLY,
  output: lazily(() =>
    outputOf({
      task_id: [({ id, task_id }) => id ?? task_id, z.string().optional()],
      status: ['status', z.string().optional()],
      is_asking: [(m) => ('status' in m ? m['questions'] !== undefined : undefined), z.boolean().optional()],
      stopping: ['stopping', z.boolean().optional()],
      counts: [
        (m) =>
          'running' in m
            ? Object.fromEntries(STATUSES.flatMap((name) => (name in m ? [[name, m[name]]] : [])))
            : undefined,
        z.record(z.string(), z.number()).optional(),
      ],
      next_cursor: ['nextCursor', z.number().optional()],
      remaining_bytes: ['remainingBytes', z.number().optional()],
    }),
  ),
  listsTasks: true,
  create: ({ shown }) => createCheckAsyncTasksTool(shown),
  served: {
    create: ({ shown }) =>
      defineTool({
        name: NAME,
        description: 'Check the status of background async tasks: all of them, or one in detail.',
        inputSchema: servedSchema(),
        run: createTaskCheck(shown),
      }),
    unlisted: ['max_bytes'],
  },
}

/** The tool `check_async_tasks` as a class. */
export class CheckAsyncTasksTool extends BaseDeclarativeTool<ReturnType<typeof checkAsyncTasksSchema>> {
  /** The name under which the tool is registered. */
  static readonly Name = NAME
  override readonly name = NAME
  override readonly displayName = 'Check Async Tasks'
  override readonly kind = 'think'

  /**
   * @param deps the options of the tool; additional fields are ignored
   * @throws INVALID_SETTING when `maxMessageChars` is not an integer >= 200
   */
  constructor(deps: CheckAsyncTasksOptions) {
    super(createCheckAsyncTasksTool(pickOptions(deps, ownedOptionTypes)))
  }

  override build(params: CheckAsyncTasksParams = {}): ToolInvocation<CheckAsyncTasksParams> {
    return super.build(params)
  }
}
