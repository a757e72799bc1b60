/** The tool check_async_tasks: what runs, what has ended, what it wrote; and it cancels (seed 002 and its additions). */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import { checkMaxMessageChars } from '../async-tasks/bounded-text.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { CHECK_FOLLOW_UPS, type FollowUps } from './follow-ups.js'
import { buildInvocation, type ToolInvocation } from './invocation.js'
import { answerTask } from './task-answer.js'
import { listTasks } from './task-list.js'
import { peekTask } from './task-peek.js'
import { readResult, readWritten } from './task-text.js'
import { findTask, type TaskView } from './task-view.js'
import { defineTool, validationError, type Tool, type ToolResult } from './tool.js'

/** How much of a text one call returns when it does not say, in bytes. */
const DEFAULT_READ_BYTES = 16_384

export const checkAsyncTasksSchema = lazily(() =>
  z.strictObject({
    task_id: z.string().optional().describe('Optional task ID or unique prefix to get details for a specific task.'),
    action: z
      .enum(['list', 'peek', 'cancel', 'output', 'answer'])
      .optional()
      .describe(
        'list: all tasks. peek: details of one task. cancel: stop one task. output: read what one task has written. ' +
          'answer: answer what one task asks. Default: peek with a task_id, list without.',
      ),
    part: z
      .enum(['output', 'result'])
      .optional()
      .describe(
        'For output. output (default): what the task has written. result: the text of its end, if that was cut.',
      ),
    cursor: z.number().int().min(0).optional().describe('For output and peek: the byte to read on from.'),
    max_bytes: z
      .number()
      .int()
      .min(1)
      .optional()
      .describe(`For output: the most to return, in bytes. Default ${DEFAULT_READ_BYTES}.`),
    question_id: z.string().optional().describe('For answer: which question, if the task asks more than one.'),
    answer: z
      .union([z.string(), z.record(z.string(), z.unknown())])
      .optional()
      .describe("For answer: text, or an object that fits the question's schema."),
    decline: z.boolean().optional().describe('For answer: true to refuse an answer.'),
  }),
)

/**
 * What the model sends.
 * @useDeclaredType
 */
export type CheckAsyncTasksParams = z.input<ReturnType<typeof checkAsyncTasksSchema>>

/** Options of `createCheckAsyncTasksTool`. */
export interface CheckAsyncTasksOptions {
  /** The manager at the time of each call. */
  readonly getAsyncTaskManager: () => AsyncTaskManager
  /** Restricts the tool to this owner's tasks. Default: everyone's. */
  readonly owner?: string
  /** The most a text says about one task, in characters. Default 20000. */
  readonly maxMessageChars?: number
  /** What results tell the model to call next. Default: check_async_tasks, with an action. */
  readonly followUps?: FollowUps
}

const NAME = 'check_async_tasks'

/**
 * Makes the tool.
 * @throws InvalidSettingError when `maxMessageChars` is not an integer >= 200
 */
export function createCheckAsyncTasksTool(
  options: CheckAsyncTasksOptions,
): Tool<ReturnType<typeof checkAsyncTasksSchema>> {
  return defineTool({
    name: NAME,
    description:
      'Check the status of background async tasks. Call with no arguments to list all tasks, or provide a task_id (or ' +
      'prefix) to get detailed info about a specific task. It can also cancel a task, read what a task has written, and ' +
      'answer what a task asks.',
    inputSchema: checkAsyncTasksSchema(),
    describe: describeCall,
    run: createTaskCheck(options),
  })
}

/** The work of the tool, for tools that check a part of its input by a schema of their own. */
export function createTaskCheck(options: CheckAsyncTasksOptions): (input: CheckAsyncTasksParams) => ToolResult {
  const { getAsyncTaskManager, owner, followUps = CHECK_FOLLOW_UPS } = options
  const maxChars = checkMaxMessageChars(options.maxMessageChars)
  return (input) => check({ manager: getAsyncTaskManager(), owner, maxChars, followUps }, input)
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

function check(view: TaskView, input: CheckAsyncTasksParams): ToolResult {
  const action = actionOf(input)
  if (action === 'list') return listTasks(view)
  const { task_id = '', cursor, max_bytes = DEFAULT_READ_BYTES } = input
  if (task_id.trim() === '') {
    return validationError(NAME, 'params.task_id', input.task_id, `a task ID or the start of one, to ${action}`)
  }
  const found = findTask(view, task_id)
  if ('refusal' in found) return found.refusal
  const { task } = found
  // A character takes at least as many bytes as UTF-16 units.
  const maxBytes = Math.min(max_bytes, view.maxChars)
  if (action === 'cancel') return cancel(view, task.id)
  if (action === 'answer') return answerTask(view, task, input)
  if (action === 'peek') return peekTask(view, task, cursor === undefined ? undefined : { cursor, maxBytes })
  return input.part === 'result'
    ? readResult(view, task, { cursor, maxBytes })
    : readWritten(view, task, { cursor, maxBytes })
}

function cancel({ manager }: TaskView, taskId: string): ToolResult {
  const isCancelled = manager.cancelTask(taskId)
  const status = manager.getTask(taskId)?.status ?? 'cancelled'
  const text = isCancelled ? `Cancelled task: ${taskId}` : `Task ${taskId} is already ${status}.`
  return { llmContent: text, returnDisplay: text, metadata: { id: taskId, status, cancelled: isCancelled } }
}

/** The tool in the shape of seed 002. */
export class CheckAsyncTasksTool {
  /** The name under which it is registered (seed 002). */
  static readonly Name = NAME
  /** The name under which it is registered. */
  readonly name = NAME
  /** For the person who watches. */
  readonly displayName = 'Check Async Tasks'
  /** It only looks (seed 002). */
  readonly kind = 'think'
  /** The neutral tool inside. */
  readonly tool: Tool<ReturnType<typeof checkAsyncTasksSchema>>

  /** @throws InvalidSettingError when `maxMessageChars` is not an integer >= 200 */
  constructor(deps: CheckAsyncTasksOptions) {
    this.tool = createCheckAsyncTasksTool(deps)
  }

  /** What the model is told of it. */
  get description(): string {
    return this.tool.description
  }

  /** Binds the tool to the parameters of one call; they are checked when it is executed. */
  build(params: CheckAsyncTasksParams = {}): ToolInvocation<CheckAsyncTasksParams> {
    return buildInvocation(this.tool, params)
  }
}
