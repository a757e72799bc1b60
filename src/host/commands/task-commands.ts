/**
 * The slash commands for background tasks: list, end, answer, send a message, and move to the background. The commands of
 * features follow.
 */
import { stoppingText } from '../../features/stopping/stopping.js'
import { givenManager } from '../../async-tasks/given-manager.js'
import { boundLines, previewText } from '../../features/output/bounded-text.js'
import { cancelNote } from '../../async-tasks/cancel-reason.js'
import { toTree } from '../../features/families/families.js'
import { formatDuration } from '../../data/duration.js'
import type { AsyncTaskManager } from '../../async-tasks/manager.js'
import { questionWords, writtenAnswer } from '../../features/questions/question-texts.js'
import { AgentTasksError, TaskLimitError } from '../../errors.js'
import { isTerminal } from '../../../machines/task-entry.js'
import { iconOf } from '../../../machines/task-status.js'
import { queuePlaces } from '../../features/limits/queue-places.js'
import {
  asks,
  hasNotEnded,
  lookUpTask,
  shortTaskIds,
  visibleTasks,
  type TaskLookup,
} from '../../features/task-ids/task-lookup.js'
import { aFunction, aName, checkOptions, required } from '../../protocol/option-checks.js'
import { toOneLine } from '../../data/control-characters.js'
import { limitCommands } from '../../features/changed-limits/command.js'
import { pauseCommands } from '../../features/pausing/command.js'
import { scheduleCommands } from '../../features/schedules/command.js'
import { monitorCommands } from '../../features/monitors/command.js'
import {
  defineCommand,
  groupCommands,
  LIST_CHARS,
  splitWord,
  type CommandResult,
  type SlashCommand,
  type TaskCommandsOptions,
} from './command.js'
import { ambiguity, findNamed, notFound, runningIds, taskLines, type FoundTask } from './named-task.js'

/** The commands of features, in the order in which they are listed. */
const featureCommands = [limitCommands, pauseCommands, scheduleCommands, monitorCommands] as const

const GOAL_PREVIEW_CHARS = 40

const END_USAGE = 'Usage: /task end <task_id> [reason]'
const ANSWER_USAGE = 'Usage: /task answer <task_id> [question_id] <text>'
const BACKGROUND_USAGE = 'Usage: /background [task_id]'
const SEND_USAGE = 'Usage: /task send <task_id> <text>'

/**
 * Creates these slash commands:
 * - `/tasks`, `/tasks list` and `/task list`
 * - `/task end <task_id> [reason]`
 * - `/task answer <task_id> [question_id] <text>`
 * - `/task send <task_id> <text>`
 * - `/background [task_id]`
 * - `/deadline <task_id> <seconds|none>` and `/conclude <task_id> [reason]`
 * - `/pause [all]` and `/resume`
 * - `/schedules` and `/schedule cancel <schedule_id>`
 * - `/monitors` and `/monitor cancel <monitor_id>`
 *
 * @throws INVALID_INPUT for an unknown or invalid option
 */
export function createTaskCommands(options: TaskCommandsOptions): readonly SlashCommand[] {
  checkOptions(options, { getAsyncTaskManager: required(aFunction), owner: aName, pausedOwner: aName })
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
  const answer = defineCommand({
    name: 'answer',
    description: 'Answer a question of a background task',
    run: (args) => answerQuestionOf(options, args),
    complete: (partial) => runningIds(options, partial, ({ questions }) => questions !== undefined),
  })
  const send = defineCommand({
    name: 'send',
    description: 'Send a message to a background task',
    run: (args) => sendTo(options, args),
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
      description: 'List background tasks, end one, answer it, or send it a message',
      usage: ['Usage: /task list', END_USAGE, ANSWER_USAGE, SEND_USAGE].join('\n'),
      subcommands: [list, end, answer, send],
    }),
    defineCommand({
      name: 'background',
      description: 'Move a foreground task to the background',
      run: (args) => moveToBackground(options, args),
      complete: (partial) => runningIds(options, partial, ({ isForeground }) => isForeground === true),
    }),
    ...featureCommands.flatMap((commands) => commands(options)),
  ]
}

function listTasks(options: TaskCommandsOptions): CommandResult {
  const { owner } = options
  const manager = givenManager(options)
  const tasks = visibleTasks(manager, owner)
  const above = manager.reads.listLines(owner)
  if (tasks.length === 0) return { type: 'info', text: boundLines(['No async tasks.', ...above], LIST_CHARS) }
  const shortOf = shortTaskIds(manager)
  const now = manager.reads.clock.now()
  const places = queuePlaces(manager.reads)
  const lines = toTree(tasks).flatMap(({ task, level }) => {
    const duration = formatDuration(task.launchedAt, task.completedAt ?? now)
    const goal = previewText(task.goalPrompt.trim().replace(/\s+/g, ' '), GOAL_PREVIEW_CHARS)
    const queued = places.has(task.id) ? `number ${places.get(task.id)} in the queue` : undefined
    const { own, ofOwner } = manager.reads.waitReasons(task, shortOf)
    const stopping = stoppingText(manager.reads, task.id)
    const notes = [
      own?.text ?? queued,
      ofOwner?.text,
      stopping,
      task.isForeground === true ? 'in the foreground' : undefined,
    ]
    const place = notes.map((note) => (note === undefined ? '' : `, ${note}`)).join('')
    // A model may have written the names and goals. Control characters in them would change the user's terminal.
    return [
      `${iconOf(task.status)} [${shortOf(task)}] ${task.subagentName} (${duration}${place})${cancelNote(task)} - ${goal}`,
      ...(task.questions ?? []).map((question) => `  asks (${question.id}): ${questionWords(question)}`),
    ].map((line) => '  '.repeat(level) + (line.startsWith('  ') ? '  ' : '') + toOneLine(line.trimStart()))
  })
  return { type: 'info', text: boundLines([...above, ...lines], LIST_CHARS) }
}

function endTask(options: TaskCommandsOptions, args: string): CommandResult {
  if (args === '') return { type: 'error', text: END_USAGE }
  const { owner } = options
  const manager = givenManager(options)
  const { found, reason } = readEnd(args, (idOrPrefix) => lookUpTask(manager, idOrPrefix, owner, hasNotEnded))
  if (found.type === 'unknown') return notFound(args, found.pruned)
  if (found.type === 'ambiguous') {
    return ambiguity(manager, found.candidates)
  }
  const { id, status } = found.task
  return manager.cancelTask(id, { reason })
    ? { type: 'info', text: `Cancelled task: ${toOneLine(id)}${stopsText(manager, id)}` }
    : { type: 'error', text: `Task ${toOneLine(id)} is already ${status}.${stopsText(manager, id)}` }
}

function stopsText(manager: AsyncTaskManager, id: string): string {
  const stopping = stoppingText(manager.reads, id)
  return stopping === undefined ? '' : ` (${stopping})`
}

function answerQuestionOf(options: TaskCommandsOptions, args: string): CommandResult {
  const [idOrPrefix, rest] = splitWord(args)
  if (rest === '') return { type: 'error', text: ANSWER_USAGE }
  const found = findNamed(options, idOrPrefix, asks)
  if ('refusal' in found) return found.refusal
  const { id, questions = [] } = found.task
  const [word, afterWord] = splitWord(rest)
  const named = questions.find((question) => question.id === word)
  const question = named ?? questions[0]
  if (question === undefined) return { type: 'error', text: `Task ${toOneLine(id)} has no open question.` }
  if (named === undefined && questions.length > 1) {
    const ids = questions.map((each) => each.id).join(', ')
    return { type: 'error', text: `Task ${toOneLine(id)} has several questions: ${ids}.\n${ANSWER_USAGE}` }
  }
  if (named !== undefined && afterWord === '') return { type: 'error', text: ANSWER_USAGE }
  const answer = writtenAnswer(question, named === undefined ? rest : afterWord)
  return givenManager(options).answerTask(id, question.id, answer)
    ? { type: 'info', text: `Answered ${question.id} of task ${toOneLine(id)}.` }
    : { type: 'error', text: `Task ${toOneLine(id)} no longer waits for an answer to ${question.id}.` }
}

function sendTo(options: TaskCommandsOptions, args: string): CommandResult {
  const [idOrPrefix, message] = splitWord(args)
  if (message === '') return { type: 'error', text: SEND_USAGE }
  const found = findNamed(options, idOrPrefix, hasNotEnded)
  if ('refusal' in found) return found.refusal
  const { id } = found.task
  if (isTerminal(found.task)) return continueEnded(givenManager(options), id, message)
  const result = givenManager(options).sendToTask(id, message)
  return result.sent
    ? { type: 'info', text: `Sent to task ${toOneLine(id)}.` }
    : { type: 'error', text: toOneLine(`Not sent: ${result.reason}`) }
}

function continueEnded(manager: AsyncTaskManager, id: string, message: string): CommandResult {
  try {
    const next = manager.continueTask(id, message)
    return { type: 'info', text: `Task ${toOneLine(next.id)} continues task ${toOneLine(id)}.` }
  } catch (error) {
    if (!(error instanceof AgentTasksError)) throw error
    return { type: 'error', text: toOneLine(`Not sent: ${error.message}`) }
  }
}

function moveToBackground(options: TaskCommandsOptions, args: string): CommandResult {
  const found = args === '' ? onlyForeground(options) : findNamed(options, args, hasNotEnded)
  if ('refusal' in found) return found.refusal
  const { id } = found.task
  try {
    const result = givenManager(options).detachTask(id)
    return result.detached
      ? { type: 'info', text: `Task ${toOneLine(id)} continues in the background.` }
      : { type: 'error', text: toOneLine(result.reason) }
  } catch (error) {
    if (!(error instanceof TaskLimitError)) throw error
    return { type: 'error', text: `Task ${toOneLine(id)} stays in the foreground: ${error.message}.` }
  }
}

/** Returns the only foreground task, for a command without a task id. */
function onlyForeground(options: TaskCommandsOptions): FoundTask {
  const manager = givenManager(options)
  const [task, ...others] = manager.getActiveTasks(options.owner).filter(({ isForeground }) => isForeground === true)
  if (task === undefined) return { refusal: { type: 'error', text: 'No task is in the foreground.' } }
  if (others.length === 0) return { task }
  const lines = taskLines(manager, [task, ...others])
  return { refusal: { type: 'error', text: `Several tasks are in the foreground. ${BACKGROUND_USAGE}\n${lines}` } }
}

/**
 * Splits the arguments into a task id and a reason. Ids may contain spaces, so the whole text is tried as an id first. Otherwise the first word is
 * the id.
 */
function readEnd(args: string, lookUp: (idOrPrefix: string) => TaskLookup): { found: TaskLookup; reason?: string } {
  const whole = lookUp(args)
  if (whole.type !== 'unknown') return { found: whole }
  const [word, reason] = splitWord(args)
  return { found: lookUp(word), reason }
}
