/** The tool wait_for_async_tasks, which waits until tasks have ended, and returns their results. */
import { z } from 'zod'
import { stoppingMs, stoppingText, untilStopped } from '../features/stopping/stopping.js'
import { elapsedMs, withTimeLimit, type Clock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { lazily } from '../protocol/lazily.js'
import { checkOptions, numberAbove0, type OptionTypes } from '../protocol/option-checks.js'
import { runOfOwner } from '../../machines/run-owner.js'
import { isOfOtherRun } from '../features/families/families.js'
import { notes } from '../features/notes/notes.js'
import { previewText } from '../features/output/bounded-text.js'
import { pendingLaunches } from '../async-tasks/pending-launches.js'
import type { AsyncTaskInfo } from '../../machines/records.js'
import type { QuestionAsker } from '../features/questions/question-askers.js'
import { canBeWaitedFor, lookUpTask, visibleTasks } from '../features/task-ids/task-lookup.js'
import type { WordedWaitOptions } from '../async-tasks/waiting.js'
import { eitherSignal, ownedOptionTypes, type AsyncTaskToolOptions } from './task-tool-options.js'
import { markAsked, shownDelivery } from './shown-texts.js'
import { isKept, keptText } from './task-runs.js'
import { ambiguityText, candidateLines, notFoundText, taskViews, type TaskView } from './task-view.js'
import type { HostTool } from './tool-descriptor.js'
import { outputOf } from './tool-output.js'
import { defineTool, errorResult, type Tool, type ToolResult } from './tool.js'
import { boundParts, WaitText } from './wait-texts.js'
import { strictObject } from '../protocol/strict-object.js'

/** How long a call waits if it requests no time, in seconds. It is below 60, because MCP clients give up a call after 60 s. */
const DEFAULT_WAIT_SECONDS = 45

/** The default of `maxWaitSeconds`. A model receives no other messages while it waits. */
const MAX_WAIT_SECONDS = 600

export const waitForAsyncTasksSchema = lazily(() =>
  strictObject({
    task_ids: z
      .array(z.string())
      .optional()
      .describe(
        'Task IDs or unique prefixes. Default: every task that is running or whose result was not delivered yet.',
      ),
    mode: z
      .enum(['any', 'all'])
      .optional()
      .describe('all (default): wait until all of them have ended. any: wait until one has ended.'),
    timeout_seconds: z
      .number()
      .min(0)
      .optional()
      .describe(`The maximum wait, in seconds. Default ${DEFAULT_WAIT_SECONDS}.`),
  }),
)

/**
 * The parameters of the tool `wait_for_async_tasks`.
 * @useDeclaredType
 */
export type WaitForAsyncTasksParams = z.input<ReturnType<typeof waitForAsyncTasksSchema>>

/** Options of `createWaitForAsyncTasksTool`. */
export interface WaitForAsyncTasksOptions extends AsyncTaskToolOptions {
  /** Restricts the tool to the tasks of this owner. Default: the tasks of every owner. */
  readonly owner?: string
  /** The longest wait that a call may request, in seconds. Default 600. */
  readonly maxWaitSeconds?: number
}

const optionTypes: OptionTypes<WaitForAsyncTasksOptions> = {
  ...ownedOptionTypes,
  maxWaitSeconds: numberAbove0('a number of seconds > 0'),
}

const NAME = 'wait_for_async_tasks'

/**
 * Creates the tool `wait_for_async_tasks`. The results that a call returns are delivered. If a call is aborted, the results stay owed.
 * @param options the manager, the owner of the tasks, and limits
 * @returns the tool
 * @throws INVALID_SETTING when `maxMessageChars` is not an integer >= 200, or `maxWaitSeconds` is not a number > 0
 * @throws INVALID_INPUT for an unknown or invalid option
 */
export function createWaitForAsyncTasksTool(
  options: WaitForAsyncTasksOptions,
): Tool<ReturnType<typeof waitForAsyncTasksSchema>> {
  checkOptions(options, optionTypes)
  const { maxWaitSeconds = MAX_WAIT_SECONDS } = options
  const viewOf = taskViews(options)
  return defineTool({
    name: NAME,
    description:
      'Wait until background async tasks have ended, and get their results. Without task_ids it waits for every running ' +
      'task. Use it when you have no other work: results are also delivered automatically.',
    inputSchema: waitForAsyncTasksSchema(),
    describe: ({ task_ids = [], mode = 'all' }) => {
      const which = task_ids.length === 0 ? 'async tasks' : `async tasks ${task_ids.map((id) => `'${id}'`).join(', ')}`
      return `Wait for ${mode} of the ${which}`
    },
    run: (input, context) => {
      const { signal, detach, asker } = context
      return wait(viewOf(context), input, { maxWaitSeconds, signal: eitherSignal(signal, detach), asker })
    },
  })
}

interface WaitLimits {
  readonly maxWaitSeconds: number
  readonly signal: AbortSignal | undefined
  readonly asker: QuestionAsker | undefined
}

async function wait(view: TaskView, input: WaitForAsyncTasksParams, limits: WaitLimits): Promise<ToolResult> {
  const { mode = 'all', timeout_seconds: asked = Math.min(DEFAULT_WAIT_SECONDS, limits.maxWaitSeconds) } = input
  const { ids, problems } = namedTasks(view, input.task_ids ?? [])
  if (ids.length === 0 && problems.length > 0) {
    const text = boundParts(problems).join('\n')
    return errorResult('parameter_validation', 'No such task', { llmContent: text, returnDisplay: text })
  }
  const seconds = Math.min(asked, limits.maxWaitSeconds)
  const { clock } = view.manager.reads
  const since = elapsedMs(clock)
  if (ids.length === 0) {
    const launches = view.manager.reads.use(pendingLaunches).settled(view.owner)
    // Without launches, the tasks must be leased before this function returns its promise, because they may end at once.
    if (launches !== undefined) await settledInTime(launches, { clock, ms: seconds * 1000, signal: limits.signal })
    if (limits.signal?.aborted === true) return aborted()
    ids.push(...outstandingTasks(view))
  }
  if (ids.length === 0) {
    const nothing = 'Nothing to wait for: no async task is running.'
    return { llmContent: nothing, returnDisplay: nothing, metadata: { settled: [], pending: [] } }
  }
  const cut = seconds < asked ? [`timeout_seconds was cut to the limit of ${seconds} (asked: ${asked}).`] : []
  const text = new WaitText(view, NAME)
  const options: WordedWaitOptions = {
    mode,
    timeoutMs: Math.max(0, seconds * 1000 - (elapsedMs(clock) - since)),
    endsOnQuestion: true,
    endsOnNote: { owner: view.owner },
    asker: limits.asker,
    hold: view.hold,
    onSettled: (settled, pending) => text.word(settled, pending, [...problems, ...cut]),
    ...omitUndefined({ signal: limits.signal }),
  }
  let ended
  try {
    ended = await view.manager.waitFor(ids, options)
  } catch (error) {
    if (limits.signal?.aborted !== true) throw error
    return aborted()
  }
  const { settled, pending, deliveryId } = ended
  const { reads } = view.manager
  const timeoutMs = seconds * 1000 - (elapsedMs(clock) - since)
  await untilStopped(reads, idsOfTasks(settled), { timeoutMs, signal: limits.signal })
  const stopping = settled.flatMap(({ id }) => {
    const words = stoppingText(reads, id)
    return words === undefined ? [] : [`Task ${id} is ${words}.`]
  })
  // The text has room for a header of 1000 characters.
  const stops = stopping.length === 0 ? [] : [previewText(stopping.join(' '), STOPPING_CHARS)]
  const asking = pending.filter(({ questions }) => questions !== undefined)
  await markAsked(view, asking)
  const header =
    settled.length > 0
      ? `${settled.length} of ${ids.length} async task(s) ended:`
      : isKept(view.manager)
        ? keptText(`0 of ${ids.length} async task(s) ended`)
        : asking.length > 0
          ? `0 of ${ids.length} async task(s) ended. ${asking.length} of them wait(s) for an answer: answer first, or wait for others with task_ids.`
          : view.manager.reads.use(notes).isOwed(view.owner)
            ? `0 of ${ids.length} async task(s) ended. The wait has ended because a note came.`
            : `0 of ${ids.length} async task(s) ended within ${seconds} s.`
  return {
    llmContent: [text.toString(header), ...stops].join('\n\n'),
    returnDisplay: `${settled.length} of ${ids.length} async task(s) ended, ${pending.length} still running`,
    metadata: {
      settled: settled.map((task) => task.id),
      pending: pending.map((task) => task.id),
      ...shownDelivery(text.shown, deliveryId),
    },
  }
}

const aborted = (): ToolResult =>
  errorResult(
    'aborted',
    'The wait was aborted. The tasks continue, and results that were not returned are delivered later.',
  )

interface SettlingLimits {
  readonly clock: Clock
  readonly ms: number
  readonly signal: AbortSignal | undefined
}

/** Waits for launches, but not longer than the call may wait. */
async function settledInTime(launches: Promise<unknown>, { clock, ms, signal }: SettlingLimits): Promise<void> {
  let stop: (() => void) | undefined
  const abort = new Promise<void>((resolve) => {
    stop = resolve
    signal?.addEventListener('abort', stop, { once: true })
  })
  const label = { name: 'time limit of a wait for launches', kind: 'deadline' } as const
  await withTimeLimit(Promise.race([launches, abort]), { clock, ms, late: () => undefined, label })
  if (stop !== undefined) signal?.removeEventListener('abort', stop)
}

/** The ids of the named tasks, and a message for each unknown or ambiguous name. */
function namedTasks(view: TaskView, idsOrPrefixes: readonly string[]): { ids: string[]; problems: string[] } {
  const ids = new Set<string>()
  const problems: string[] = []
  for (const idOrPrefix of new Set(idsOrPrefixes)) {
    const found = lookUpTask(view.manager, idOrPrefix, view.owner, canBeWaitedFor)
    if (found.type === 'found' && isOfOtherRun(found.task, view.owner)) problems.push(ofOtherRunText(found.task))
    else if (found.type === 'found') ids.add(found.task.id)
    else if (found.type === 'unknown') problems.push(notFoundText(idOrPrefix, found.pruned))
    else problems.push(ambiguityText(idOrPrefix, candidateLines(view, found.candidates)))
  }
  return { ids: [...ids], problems }
}

/** Explains that the result goes to the run that owns the task. */
function ofOtherRunText(task: AsyncTaskInfo): string {
  const runId = runOfOwner(task.owner) ?? ''
  return `The result of task ${task.id} goes to task ${runId}, which owns it. Wait for ${runId}.`
}

const idsOfTasks = (tasks: readonly AsyncTaskInfo[]): string[] => tasks.map(({ id }) => id)

/**
 * The tasks that run, the tasks whose results were not delivered, and those whose programs are being stopped. A call may wait for a task that has just
 * ended.
 */
function outstandingTasks({ manager, owner }: TaskView): string[] {
  const stopping = visibleTasks(manager, owner).filter(({ id }) => stoppingMs(manager.reads, id) !== undefined)
  const tasks = [...manager.getPendingNotifications(owner), ...manager.getActiveTasks(owner), ...stopping]
  return [...new Set(idsOfTasks(tasks.filter((task) => !isOfOtherRun(task, owner))))]
}

/** The maximum length of what is said about tasks that are stopping, in characters. */
const STOPPING_CHARS = 500

/** The maximum number of ids in a field of the structured content. */
const MAX_IDS = 1000

const idsOf = (value: unknown): unknown[] => (Array.isArray(value) ? value.slice(0, MAX_IDS) : [])

export const waitForAsyncTasksTool: HostTool<ReturnType<typeof createWaitForAsyncTasksTool>> = {
  name: NAME,
  title: 'Wait for background tasks',
  summary: 'Waits for results, or until a task asks a question.',
  purpose: 'waits when you have no other work. It is the way to wait: do not poll.',
  brief: 'waits for results',
  hints: { readOnlyHint: true, openWorldHint: false },
  output: lazily(() =>
    outputOf({
      settled: [({ settled }) => idsOf(settled), z.array(z.string())],
      pending: [({ pending }) => idsOf(pending), z.array(z.string())],
    }),
  ),
  listsTasks: true,
  create: ({ owned }) => createWaitForAsyncTasksTool(owned),
  served: {
    description:
      'Wait until background async tasks have ended, and get their results. Use it when you have no other work.',
    texts: {
      task_ids: 'IDs or unique prefixes. Default: all that run.',
      mode: 'Whether all (default) or any have to end.',
    },
  },
}
