/** The slash commands /tasks and /task, which list and end background tasks. */
import { boundLines, previewText } from '../async-tasks/bounded-text.js'
import { cancelNote } from '../async-tasks/cancel-reason.js'
import { toTree } from '../async-tasks/families.js'
import { formatDuration } from '../async-tasks/duration.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { STATUS_ICONS } from '../async-tasks/reminder-service.js'
import { queuePlaces } from '../async-tasks/queue-places.js'
import { lookUpTask, shortTaskIds, visibleTasks, type TaskLookup } from '../async-tasks/task-lookup.js'
import { aFunction, aName, checkOptions, required } from '../protocol/option-checks.js'
import { toOneLine } from '../control-characters.js'
import { defineCommand, groupCommands, splitWord, type CommandResult, type SlashCommand } from './command.js'

/** Options of `createTaskCommands`. */
export interface TaskCommandsOptions {
  /** Returns the manager; called for each command. */
  readonly getAsyncTaskManager: () => AsyncTaskManager
  /** Restricts the commands to the tasks of this owner. Default: all tasks. */
  readonly owner?: string
}

const GOAL_PREVIEW_CHARS = 40

/** The maximum length of a list, in characters. */
const LIST_CHARS = 18_000

const END_USAGE = 'Usage: /task end <task_id>'

/**
 * Creates `/tasks` and `/tasks list`, `/task list`, and `/task end <task_id> [reason]`.
 * @throws InvalidInputError for an unknown or wrong option
 */
export function createTaskCommands(options: TaskCommandsOptions): readonly SlashCommand[] {
  checkOptions(options, { getAsyncTaskManager: required(aFunction), owner: aName })
  const list = defineCommand({
    name: 'list',
    description: 'List the background tasks',
    run: () => listTasks(options),
  })
  const end = defineCommand({
    name: 'end',
    description: 'Cancel a background task',
    run: (args) => endTask(options, args),
    complete: (partial) => runningIds(options, partial),
  })
  return [
    groupCommands({
      name: 'tasks',
      description: 'List the background tasks',
      usage: 'Usage: /tasks [list]',
      subcommands: [list],
      fallback: list,
    }),
    groupCommands({
      name: 'task',
      description: 'List background tasks, or end one',
      usage: `Usage: /task list\n${END_USAGE}`,
      subcommands: [list, end],
    }),
  ]
}

function listTasks({ getAsyncTaskManager, owner }: TaskCommandsOptions): CommandResult {
  const manager = getAsyncTaskManager()
  const tasks = visibleTasks(manager, owner)
  if (tasks.length === 0) return { type: 'info', text: 'No async tasks.' }
  const shortOf = shortTaskIds(manager)
  const now = manager.registry.clock.now()
  const places = queuePlaces(manager.registry)
  const lines = toTree(tasks).map(({ task, level }) => {
    const duration = formatDuration(task.launchedAt, task.completedAt ?? now)
    const goal = previewText(task.goalPrompt.trim().replace(/\s+/g, ' '), GOAL_PREVIEW_CHARS)
    const place = places.has(task.id) ? `, number ${places.get(task.id)} in the queue` : ''
    // Names and goals come from a model, and this is for a person's terminal.
    return (
      '  '.repeat(level) +
      toOneLine(
        `${STATUS_ICONS[task.status]} [${shortOf(task)}] ${task.subagentName} (${duration}${place})${cancelNote(task)} - ${goal}`,
      )
    )
  })
  return { type: 'info', text: boundLines(lines, LIST_CHARS) }
}

function endTask({ getAsyncTaskManager, owner }: TaskCommandsOptions, args: string): CommandResult {
  if (args === '') return { type: 'error', text: END_USAGE }
  const manager = getAsyncTaskManager()
  const { found, reason } = readEnd(args, (idOrPrefix) => lookUpTask(manager, idOrPrefix, owner))
  if (found.type === 'unknown') return { type: 'error', text: `Task not found: ${toOneLine(args)}` }
  if (found.type === 'ambiguous') {
    const shortOf = shortTaskIds(manager)
    const candidates = found.candidates.map((task) => toOneLine(`- ${shortOf(task)} (${task.subagentName})`))
    return { type: 'error', text: `Ambiguous task ID. Did you mean:\n${boundLines(candidates, LIST_CHARS)}` }
  }
  const { id, status } = found.task
  return manager.cancelTask(id, { reason })
    ? { type: 'info', text: `Cancelled task: ${toOneLine(id)}` }
    : { type: 'error', text: `Task ${toOneLine(id)} is already ${status}.` }
}

/** An id may have spaces: only what follows a word that is one is the reason. */
function readEnd(args: string, lookUp: (idOrPrefix: string) => TaskLookup): { found: TaskLookup; reason?: string } {
  const whole = lookUp(args)
  if (whole.type !== 'unknown') return { found: whole }
  const [word, reason] = splitWord(args)
  return { found: lookUp(word), reason }
}

/** Short ids; the whole id when more than its short id was typed. */
function runningIds({ getAsyncTaskManager, owner }: TaskCommandsOptions, partial: string): string[] {
  const manager = getAsyncTaskManager()
  const shortOf = shortTaskIds(manager)
  return manager
    .getActiveTasks(owner)
    .filter((task) => task.id.startsWith(partial))
    .map((task) => (shortOf(task).startsWith(partial) ? shortOf(task) : task.id))
}
