/** Finds the task that a person has named in a command. */
import type { ActiveTaskInfo, AsyncTaskInfo } from '../../../machines/records.js'
import { givenManager } from '../../async-tasks/given-manager.js'
import type { AsyncTaskManager } from '../../async-tasks/manager.js'
import { toOneLine } from '../../data/control-characters.js'
import type { PrunedTask } from '../../features/history/pruned-tasks.js'
import { boundLines } from '../../features/output/bounded-text.js'
import { lookUpTask, prunedText, shortTaskIds } from '../../features/task-ids/task-lookup.js'
import { LIST_CHARS, type CommandResult, type TaskCommandsOptions } from './command.js'

/** The task that the user named, or an error text if no task or several tasks match. */
export type FoundTask = { readonly task: AsyncTaskInfo } | { readonly refusal: CommandResult }

/** Finds the task that the user named. */
export function findNamed(
  options: TaskCommandsOptions,
  idOrPrefix: string,
  canBeMeant: (task: AsyncTaskInfo) => boolean,
): FoundTask {
  const { owner } = options
  const manager = givenManager(options)
  const found = lookUpTask(manager, idOrPrefix, owner, canBeMeant)
  if (found.type === 'found') return { task: found.task }
  if (found.type === 'unknown') return { refusal: notFound(idOrPrefix, found.pruned) }
  return { refusal: ambiguity(manager, found.candidates) }
}

export function ambiguity(manager: AsyncTaskManager, candidates: readonly AsyncTaskInfo[]): CommandResult {
  return { type: 'error', text: `Ambiguous task ID. Did you mean:\n${taskLines(manager, candidates)}` }
}

export function taskLines(manager: AsyncTaskManager, tasks: readonly AsyncTaskInfo[]): string {
  const shortOf = shortTaskIds(manager)
  const lines = tasks.map((task) => toOneLine(`- ${shortOf(task)} (${task.subagentName}) - ${task.status}`))
  return boundLines(lines, LIST_CHARS)
}

export const notFound = (idOrPrefix: string, pruned: PrunedTask | undefined): CommandResult => ({
  type: 'error',
  text: toOneLine(pruned ? prunedText(pruned) : `Task not found: ${idOrPrefix}`),
})

/** Returns the ids of unfinished tasks that start with `partial`. Short ids are returned, or whole ids if the user has typed more than the short id. */
export function runningIds(
  options: TaskCommandsOptions,
  partial: string,
  isShown: (task: ActiveTaskInfo) => boolean = () => true,
): string[] {
  const { owner } = options
  const manager = givenManager(options)
  const shortOf = shortTaskIds(manager)
  return manager
    .getActiveTasks(owner)
    .filter((task) => task.id.startsWith(partial) && isShown(task))
    .map((task) => (shortOf(task).startsWith(partial) ? shortOf(task) : task.id))
}
