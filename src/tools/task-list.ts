/** The result of check_async_tasks with the action `list`: all tasks. */
import { countsOf, markOf } from '../../machines/task-status.js'
import type { AsyncTaskInfo } from '../../machines/records.js'
import { boundLines } from '../features/output/bounded-text.js'
import { stoppingText } from '../features/stopping/stopping.js'
import { cancelNote } from '../async-tasks/cancel-reason.js'
import { toTree } from '../features/families/families.js'
import { queuePlaces } from '../features/limits/queue-places.js'
import { describeSpent } from '../../machines/usage.js'
import { shortTaskIds, visibleTasks } from '../features/task-ids/task-lookup.js'
import { lastLineOf } from './command-output.js'
import { answerHints } from './task-answer.js'
import { durationOf, goalOf, maxListChars, type TaskView } from './task-view.js'
import type { ToolResult } from './tool.js'

/** The maximum length of the hints that explain how to answer questions, in characters. A single hint may be longer. */
const HINTS_CHARS = 2000

/**
 * Returns the number of tasks by status, and one line for each task. The list contains no results, so it delivers none.
 * @param first the number of tasks to skip
 */
export function listTasks(view: TaskView, first = 0): ToolResult {
  const tasks = visibleTasks(view.manager, view.owner)
  if (tasks.length === 0) {
    return {
      llmContent: 'No async tasks.',
      returnDisplay: 'No async tasks are currently running or completed.',
      metadata: { count: 0 },
    }
  }
  const counts = countsOf(tasks.map(({ status }) => status))
  const shortOf = shortTaskIds(view.manager)
  const tree = toTree(tasks)
  const places = queuePlaces(view.manager.reads)
  const placeOf = (task: AsyncTaskInfo): string => {
    const { own, ofOwner } = view.manager.reads.waitReasons(task, shortOf)
    if (own !== undefined || ofOwner !== undefined) {
      return [own, ofOwner].map((reason) => (reason === undefined ? '' : `, ${reason.text}`)).join('')
    }
    return places.has(task.id) ? `, number ${places.get(task.id)} in the queue` : ''
  }
  const details = tree.map(({ task, level }) => {
    const icon = markOf(task.status)
    const asking = task.questions === undefined ? placeOf(task) : ', waits for an answer'
    const stopping = stoppingText(view.manager.reads, task.id)
    const stops = stopping === undefined ? '' : `, ${stopping}`
    return `${'  '.repeat(level)}${icon} [${shortOf(task)}] ${task.subagentName} - ${task.status} (${durationOf(view, task)})${asking}${stops}${cancelNote(task)}${spentOf(task)} - ${goalOf(task)}${lastLineOf(view, task)}`
  })
  const display = tree.map(({ task, level }) => {
    return `${'  '.repeat(level)}${markOf(task.status)} **${task.subagentName}** (\`${shortOf(task)}\`) - ${task.status}`
  })
  const summary = [
    'Async Tasks Summary:',
    ...counts.map(([status, count]) => `- ${status[0]?.toUpperCase() ?? ''}${status.slice(1)}: ${count}`),
    ...view.manager.reads.listLines(view.owner).map((line) => `- ${line}`),
    '',
    'Details:',
  ]
  const lines = boundLines(details.slice(first), maxListChars(view), (shown) => {
    return `. Read on with check_async_tasks ${JSON.stringify({ action: 'list', cursor: first + shown })}`
  })
  const hints = tasks.flatMap((task) => answerHints(task, view.followUps))
  const asking = hints.length === 0 ? [] : [boundLines(hints, HINTS_CHARS, () => ': look at the task that asks')]
  return {
    llmContent: [...summary, first < tasks.length ? lines : 'No more tasks.', ...asking].join('\n'),
    returnDisplay: boundLines(display, maxListChars(view)),
    metadata: { count: tasks.length, ...Object.fromEntries(counts) },
  }
}

function spentOf({ spent }: AsyncTaskInfo): string {
  const text = describeSpent(spent)
  return text === '' ? '' : `, spent ${text}`
}
