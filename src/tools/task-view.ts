/** What the tools that show tasks share: which tasks a call can see, the limits of texts, and the results for an unknown id. */
import { omitUndefined } from '../data/omit-undefined.js'
import type { AsyncTaskInfo } from '../../machines/records.js'
import { boundLines, maxWholeChars, previewText } from '../features/output/bounded-text.js'
import { formatDuration } from '../data/duration.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { HoldLease } from '../features/delivery/leases.js'
import type { PrunedTask } from '../features/history/pruned-tasks.js'
import { lookUpTask, prunedText, shortTaskIds } from '../features/task-ids/task-lookup.js'
import { givenManager } from '../async-tasks/given-manager.js'
import { readToolOptions, type AsyncTaskToolOptions, type FollowUps } from './task-tool-options.js'
import { receiverOf } from './call-leases.js'
import { errorResult, type ToolContext, type ToolResult } from './tool.js'

export interface TaskView {
  readonly manager: AsyncTaskManager
  /** The owner whose tasks are visible. Undefined: the tasks of all owners. */
  readonly owner: string | undefined
  /** The maximum length of a text about one task, and of a whole list, in characters. */
  readonly maxChars: number
  readonly followUps: Required<FollowUps>
  /** See `receiverOf`. */
  readonly hold: HoldLease
}

export function taskViews(
  options: AsyncTaskToolOptions & { readonly owner?: string },
): (context: ToolContext) => TaskView {
  const shared = readToolOptions(options)
  return ({ hold }) => ({ manager: givenManager(options), owner: options.owner, hold: receiverOf(hold), ...shared })
}

export function goalOf({ goalPrompt }: AsyncTaskInfo): string {
  return previewText(goalPrompt.trim().replace(/\s+/g, ' '), GOAL_CHARS)
}

const GOAL_CHARS = 60

/** The space that a list needs besides its lines, in characters. */
const LIST_FRAME_CHARS = 4000

/** The maximum length of the lines of a list together, in characters. */
export function maxListChars({ maxChars }: TaskView): number {
  return Math.min(maxChars, maxWholeChars(maxChars) - LIST_FRAME_CHARS)
}

/** The maximum length of an id in an error, in characters. */
const SHOWN_ID_CHARS = 512

/** How long a task ran, or has been running so far. */
export function durationOf(view: TaskView, task: AsyncTaskInfo): string {
  return formatDuration(task.launchedAt, task.completedAt ?? view.manager.reads.clock.now())
}

/**
 * Finds the task of an id or a unique prefix. If no task or several tasks match, returns the result for the model. `pruned` is the id if the task
 * existed earlier.
 * @param canBeMeant see `lookUpTask`
 */
export function findTask(
  view: TaskView,
  taskId: string,
  canBeMeant?: (task: AsyncTaskInfo) => boolean,
): { task: AsyncTaskInfo } | { refusal: ToolResult; pruned?: string } {
  const found = lookUpTask(view.manager, taskId, view.owner, canBeMeant)
  if (found.type === 'found') return { task: found.task }
  if (found.type === 'ambiguous') {
    const candidates = candidateLines(view, found.candidates)
    return {
      refusal: errorResult('parameter_validation', 'Ambiguous task ID', {
        llmContent: ambiguityText(taskId, candidates),
        returnDisplay: `Ambiguous prefix. Did you mean:\n${candidates}`,
      }),
    }
  }
  const { pruned } = found
  return {
    ...omitUndefined({ pruned: pruned?.id }),
    refusal: errorResult('parameter_validation', pruned === undefined ? 'Task not found' : 'Task was pruned', {
      llmContent: notFoundText(taskId, pruned),
      returnDisplay: pruned ? prunedText(pruned) : `Task not found: ${previewText(taskId, SHOWN_ID_CHARS)}`,
    }),
  }
}

export function candidateLines(view: TaskView, candidates: readonly AsyncTaskInfo[]): string {
  const shortOf = shortTaskIds(view.manager)
  return boundLines(
    candidates.map((task) => `- ${shortOf(task)}... (${task.subagentName}) - ${task.status}`),
    maxListChars(view),
    () => ': use a longer prefix',
  )
}

export function ambiguityText(taskId: string, candidates: string): string {
  return `Ambiguous task ID prefix '${previewText(taskId, SHOWN_ID_CHARS)}'. Candidates:\n${candidates}`
}

export function notFoundText(taskId: string, pruned: PrunedTask | undefined): string {
  if (pruned !== undefined) return prunedText(pruned)
  return `No async task found with ID or prefix '${previewText(taskId, SHOWN_ID_CHARS)}'.`
}
