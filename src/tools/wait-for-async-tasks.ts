/** The tool wait_for_async_tasks: blocks until tasks have ended, and returns what they returned. */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import type { AsyncTaskInfo } from '../../machines/records.js'
import { boundLines, checkMaxMessageChars } from '../async-tasks/bounded-text.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { lookUpTask, shortTaskIds } from '../async-tasks/task-lookup.js'
import type { WordedWaitOptions } from '../async-tasks/waiting.js'
import { InvalidSettingError } from '../errors.js'
import { CHECK_FOLLOW_UPS, type FollowUps } from './follow-ups.js'
import { buildInvocation, type ToolInvocation } from './invocation.js'
import { wordEnds } from './shown-texts.js'
import { howToAnswer } from './task-answer.js'
import { ambiguityText, candidateLines, durationOf, notFoundText, type TaskView } from './task-view.js'
import { defineTool, errorResult, type Tool, type ToolResult } from './tool.js'

/** How long a wait lasts that does not say, in seconds. */
const DEFAULT_WAIT_SECONDS = 60

/** The longest wait, in seconds: a model that waits hears nothing else. */
const MAX_WAIT_SECONDS = 600

export const waitForAsyncTasksSchema = lazily(() =>
  z.strictObject({
    task_ids: z
      .array(z.string())
      .optional()
      .describe('Task IDs or unique prefixes. Default: every task that runs or whose result is still to be told.'),
    mode: z
      .enum(['any', 'all'])
      .optional()
      .describe('all (default): until the last of them has ended. any: until the first has.'),
    timeout_seconds: z
      .number()
      .min(0)
      .optional()
      .describe(`The longest wait, in seconds. Default ${DEFAULT_WAIT_SECONDS}.`),
  }),
)

/**
 * What the model sends.
 * @useDeclaredType
 */
export type WaitForAsyncTasksParams = z.input<ReturnType<typeof waitForAsyncTasksSchema>>

/** Options of `createWaitForAsyncTasksTool`. */
export interface WaitForAsyncTasksOptions {
  /** The manager at the time of each call. */
  readonly getAsyncTaskManager: () => AsyncTaskManager
  /** Restricts the tool to this owner's tasks. Default: everyone's. */
  readonly owner?: string
  /** The most a result says about one task, in characters. Default 20000. */
  readonly maxMessageChars?: number
  /** The longest wait a call may ask for, in seconds. Default 600. */
  readonly maxWaitSeconds?: number
  /** What results tell the model to call next. Default: check_async_tasks, with an action. */
  readonly followUps?: FollowUps
}

const NAME = 'wait_for_async_tasks'

/**
 * Makes the tool. What a call returns counts as told; an aborted call gives it back.
 * @throws InvalidSettingError when `maxMessageChars` is not an integer >= 200, or `maxWaitSeconds` not a number > 0
 */
export function createWaitForAsyncTasksTool(
  options: WaitForAsyncTasksOptions,
): Tool<ReturnType<typeof waitForAsyncTasksSchema>> {
  const { getAsyncTaskManager, owner, maxWaitSeconds = MAX_WAIT_SECONDS, followUps = CHECK_FOLLOW_UPS } = options
  const maxChars = checkMaxMessageChars(options.maxMessageChars)
  if (!Number.isFinite(maxWaitSeconds) || maxWaitSeconds <= 0) {
    throw new InvalidSettingError('maxWaitSeconds', maxWaitSeconds, 'a number of seconds > 0')
  }
  return defineTool({
    name: NAME,
    description:
      'Wait until background async tasks have ended, and get their results. Without task_ids it waits for every running ' +
      'task. Use it when nothing else is left to do: results also come by themselves.',
    inputSchema: waitForAsyncTasksSchema(),
    describe: ({ task_ids = [], mode = 'all' }) => {
      const which = task_ids.length === 0 ? 'async tasks' : `async tasks ${task_ids.map((id) => `'${id}'`).join(', ')}`
      return `Wait for ${mode} of the ${which}`
    },
    run: (input, { signal }) => {
      const view = { manager: getAsyncTaskManager(), owner, maxChars, followUps }
      return wait(view, input, { maxWaitSeconds, signal })
    },
  })
}

interface WaitLimits {
  readonly maxWaitSeconds: number
  readonly signal: AbortSignal | undefined
}

async function wait(view: TaskView, input: WaitForAsyncTasksParams, limits: WaitLimits): Promise<ToolResult> {
  const { mode = 'all', timeout_seconds: asked = Math.min(DEFAULT_WAIT_SECONDS, limits.maxWaitSeconds) } = input
  const { ids, problems } = namedTasks(view, input.task_ids ?? [])
  if (ids.length === 0 && problems.length > 0) {
    return errorResult('parameter_validation', 'No such task', {
      llmContent: problems.join('\n'),
      returnDisplay: problems.join('\n'),
    })
  }
  if (ids.length === 0) ids.push(...outstandingTasks(view))
  if (ids.length === 0) {
    const nothing = 'Nothing to wait for: no async task is running.'
    return { llmContent: nothing, returnDisplay: nothing, metadata: { settled: [], pending: [] } }
  }
  const seconds = Math.min(asked, limits.maxWaitSeconds)
  let results: string[] = []
  const options: WordedWaitOptions = {
    mode,
    timeoutMs: seconds * 1000,
    endsOnQuestion: true,
    onSettled: (ended) => (results = wordEnds(view.manager, ended, view.maxChars)),
    ...(limits.signal && { signal: limits.signal }),
  }
  let ended
  try {
    ended = await view.manager.waitFor(ids, options)
  } catch (error) {
    if (limits.signal?.aborted !== true) throw error
    return errorResult('aborted', 'The wait was aborted. The tasks go on, and what ended is still to be told.')
  }
  const { settled, pending } = ended
  const cut = seconds < asked ? [`timeout_seconds was cut to the limit of ${seconds} (asked: ${asked}).`] : []
  const asking = pending.filter(({ questions }) => questions !== undefined)
  const header =
    settled.length > 0
      ? `${settled.length} of ${ids.length} async task(s) ended:`
      : asking.length > 0
        ? `None of ${ids.length} async task(s) ended. ${asking.length} of them wait(s) for an answer.`
        : `None of ${ids.length} async task(s) ended within ${seconds} s.`
  return {
    llmContent: [
      header,
      ...results,
      ...asking.map((task) => howToAnswer(task, view.followUps)),
      ...pendingText(view, pending),
      ...problems,
      ...cut,
    ].join('\n\n'),
    returnDisplay: `${settled.length} of ${ids.length} async task(s) ended, ${pending.length} still running`,
    metadata: { settled: settled.map((task) => task.id), pending: pending.map((task) => task.id) },
  }
}

/** The ids that were meant, and a sentence for each that fits no task or several. */
function namedTasks(view: TaskView, idsOrPrefixes: readonly string[]): { ids: string[]; problems: string[] } {
  const ids = new Set<string>()
  const problems: string[] = []
  for (const idOrPrefix of new Set(idsOrPrefixes)) {
    const found = lookUpTask(view.manager, idOrPrefix, view.owner)
    if (found.type === 'found') ids.add(found.task.id)
    else if (found.type === 'unknown') problems.push(notFoundText(idOrPrefix))
    else problems.push(ambiguityText(idOrPrefix, candidateLines(view, found.candidates)))
  }
  return { ids: [...ids], problems }
}

/** What runs, and what has ended and is owed: a task that ended a moment ago is still worth waiting for. */
function outstandingTasks({ manager, owner }: TaskView): string[] {
  return [...manager.getPendingNotifications(owner), ...manager.getRunningTasks(owner)].map((task) => task.id)
}

function pendingText(view: TaskView, pending: readonly AsyncTaskInfo[]): string[] {
  if (pending.length === 0) return []
  const shortOf = shortTaskIds(view.manager)
  const lines = pending.map((task) => `- [${shortOf(task)}] ${task.subagentName} (${durationOf(view, task)})`)
  return [
    `${pending.length} async task(s) still running:\n${boundLines(lines, view.maxChars)}`,
    `Wait again with ${NAME}, look at one with check_async_tasks, or go on with other work.`,
  ]
}

/** The tool in the shape of the seeds' classes. */
export class WaitForAsyncTasksTool {
  /** The name under which it is registered. */
  static readonly Name = NAME
  /** The name under which it is registered. */
  readonly name = NAME
  /** For the person who watches. */
  readonly displayName = 'Wait For Async Tasks'
  /** It only waits. */
  readonly kind = 'think'
  /** The neutral tool inside. */
  readonly tool: Tool<ReturnType<typeof waitForAsyncTasksSchema>>

  /** @throws InvalidSettingError as `createWaitForAsyncTasksTool` does */
  constructor(deps: WaitForAsyncTasksOptions) {
    this.tool = createWaitForAsyncTasksTool(deps)
  }

  /** What the model is told of it. */
  get description(): string {
    return this.tool.description
  }

  /** Binds the tool to the parameters of one call; they are checked when it is executed. */
  build(params: WaitForAsyncTasksParams = {}): ToolInvocation<WaitForAsyncTasksParams> {
    return buildInvocation(this.tool, params)
  }
}
