/** The result of check_async_tasks with the action `peek`: the details of one task. */
import { stoppingFields } from '../features/stopping/stopping.js'
import { SHOWN_FIELDS } from '../../machines/record-fields.js'
import { endedAs, isWaiting, markOf } from '../../machines/task-status.js'
import { pushSubscribers } from '../features/delivery/push-subscribers.js'
import type { AsyncTaskInfo, SettledTaskInfo, TaskAttempt, TaskQuestion } from '../../machines/records.js'
import { boundText, previewText } from '../features/output/bounded-text.js'
import { isoTime } from '../data/duration.js'
import { readChunk } from '../features/output/output-log.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { toJsonText } from '../data/json-text.js'
import { taskName } from '../async-tasks/task-name.js'
import { repeatNote } from '../features/delivery/notifications.js'
import { commandDetails } from './command-output.js'
import { markAsked, markShown } from './shown-texts.js'
import { howToAnswer } from './task-answer.js'
import { chunkResult } from './task-text.js'
import { durationOf, type TaskView } from './task-view.js'
import type { ToolResult } from './tool.js'

const GOAL_PREVIEW_CHARS = 100
const VALUE_PREVIEW_CHARS = 50
/** The maximum number of child tasks that are named. */
const MAX_CHILDREN = 50

/** Which part of the details to return, in bytes of the JSON text. */
export interface PeekRange {
  readonly cursor: number
  readonly maxBytes: number
}

/**
 * The details of one task as JSON. If no host receives messages for the owner, reading the details of an ended task to their end delivers its result.
 */
export async function peekTask(view: TaskView, task: AsyncTaskInfo, range?: PeekRange): Promise<ToolResult> {
  const details = taskDetails(view, task)
  const text = detailsText(details, view.maxChars)
  if (!view.manager.reads.use(pushSubscribers).has(task.owner)) await markAsked(view, [task])
  const reading = { tool: 'check_async_tasks', params: { task_id: task.id, action: 'peek' } }
  if (range !== undefined) {
    const chunk = readChunk(new TextEncoder().encode(text), 0, range.cursor, range.maxBytes)
    const delivery = await markShown(view, task, chunk.remainingBytes === 0)
    return chunkResult({
      title: `Details of task ${task.id} (${task.status}; ${taskName(task)})`,
      chunk,
      reading,
      isGrowing: false,
      delivery,
    })
  }
  const bounded = boundText(text, view.maxChars, reading)
  const delivery = await markShown(view, task, !bounded.isCut)
  return {
    llmContent: bounded.text,
    returnDisplay: previewText(taskDisplay(view, task), view.maxChars),
    metadata: { ...details, ...delivery },
  }
}

/** The details of a task of the history, from a byte on. The history has no output. */
export function peekPastTask(view: TaskView, task: SettledTaskInfo, { cursor, maxBytes }: PeekRange): ToolResult {
  const details = taskDetails(view, task)
  const text = detailsText(details, view.maxChars)
  const chunk = readChunk(new TextEncoder().encode(text), 0, cursor, maxBytes)
  const reading = { tool: 'check_async_tasks', params: { task_id: task.id, action: 'peek' } }
  const title = `Task ${task.id} of the history (${task.status}; ${taskName(task)})`
  const result = chunkResult({ title, chunk, reading, isGrowing: false })
  return { ...result, metadata: { ...details, ...result.metadata } }
}

type TaskDetails = Readonly<Record<string, unknown>> & Pick<AsyncTaskInfo, 'goalPrompt'>

function taskDetails(view: TaskView, task: AsyncTaskInfo): TaskDetails {
  return {
    id: task.id,
    subagentName: task.subagentName,
    goalPrompt: task.goalPrompt,
    status: task.status,
    ...familyOf(view, task),
    launchedAt: isoTime(task.launchedAt),
    duration: durationOf(view, task),
    ...(task.completedAt !== undefined && { completedAt: isoTime(task.completedAt) }),
    ...(isWaiting(task.status) && omitUndefined({ queuePosition: view.manager.queuePosition(task.id) })),
    ...(task.startedAt !== undefined && { startedAt: isoTime(task.startedAt) }),
    ...omitUndefined({ waits: view.manager.reads.waitReasons(task).own?.text }),
    ...omitUndefined({ concurrencyKey: task.concurrencyKey, attempt: task.attempt }),
    ...omitUndefined({ continues: task.continues, session: task.session?.id }),
    ...(task.attempts !== undefined && { attempts: task.attempts.map(shownAttempt) }),
    ...omitUndefined({ budget: task.budget, spent: task.spent }),
    ...(task.isRepeat === true && { note: repeatNote(task) }),
    ...omitUndefined({ progress: task.progress, messagesSent: task.messagesSent }),
    ...(task.questions !== undefined && {
      questions: task.questions.map(shownQuestion),
      note: howToAnswer(task, view.followUps),
    }),
    ...commandDetails(view, task),
    ...omitUndefined(Object.fromEntries(SHOWN_FIELDS.map((field) => [field, task[field]]))),
    ...omitUndefined({ output: task.output, error: task.error }),
    ...(endedAs(task, 'failed') && omitUndefined({ errorName: task.errorName, errorCode: task.errorCode })),
    ...omitUndefined({ cancelReason: task.cancelReason }),
    ...stoppingFields(view.manager.reads, task.id),
    ...(endedAs(task, 'failed') && task.lateOutput !== undefined && { lateOutput: task.lateOutput }),
  }
}

/** The parent and the children of a task, the tasks that it waits for, and the tasks that wait for it. */
function familyOf({ manager }: TaskView, { id, parentId, after, waitsFor }: AsyncTaskInfo): Record<string, unknown> {
  const tasks = manager.getAllTasks()
  const children = tasks.filter((task) => task.parentId === id)
  const neededBy = tasks.filter((task) => task.waitsFor?.includes(id) === true).slice(0, MAX_CHILDREN)
  return {
    ...omitUndefined({ parent: parentId, after, waitsFor }),
    ...(neededBy.length > 0 && { neededBy: neededBy.map((task) => task.id) }),
    ...(children.length > 0 && {
      children: children.slice(0, MAX_CHILDREN).map((child) => `${child.id} (${child.status})`),
      ...(children.length > MAX_CHILDREN && { moreChildren: children.length - MAX_CHILDREN }),
    }),
  }
}

function shownAttempt({ number, startedAt, endedAt, error }: TaskAttempt): Record<string, unknown> {
  return { number, startedAt: isoTime(startedAt), ...(endedAt !== undefined && { endedAt: isoTime(endedAt) }), error }
}

function shownQuestion({ id, message, schema }: TaskQuestion): Record<string, unknown> {
  return { id, message, schema }
}

/** If the text is too long, the goal is cut before the result, because the model itself wrote the goal. */
function detailsText(details: TaskDetails, maxChars: number): string {
  const whole = toJsonText(details, { indent: 2 })
  if (whole.length <= maxChars) return whole
  return toJsonText({ ...details, goalPrompt: previewText(details.goalPrompt, GOAL_PREVIEW_CHARS) }, { indent: 2 })
}

function taskDisplay(view: TaskView, task: AsyncTaskInfo): string {
  const vars: unknown = task.output?.emitted_vars
  const emitted = typeof vars === 'object' && vars !== null ? Object.entries(vars) : []
  return [
    `${markOf(task.status)} **${task.subagentName}**`,
    `ID: \`${task.id}\``,
    `Status: ${task.status}`,
    `Goal: ${previewText(task.goalPrompt, GOAL_PREVIEW_CHARS)}`,
    `Duration: ${durationOf(view, task)}`,
    ...(emitted.length > 0 ? ['Emitted variables:'] : []),
    ...emitted.map(([key, value]) => `  - ${key}: ${previewText(valueText(value), VALUE_PREVIEW_CHARS)}`),
    ...(task.questions ?? []).map(({ message }) => `Asks: ${previewText(message, GOAL_PREVIEW_CHARS)}`),
    ...(task.error === undefined ? [] : [`Error: ${task.error}`]),
    ...(task.cancelReason === undefined ? [] : [`Cancelled because: ${task.cancelReason}`]),
  ].join('\n')
}

function valueText(value: unknown): string {
  return typeof value === 'object' && value !== null
    ? toJsonText(value, { maxChars: 2 * VALUE_PREVIEW_CHARS })
    : String(value)
}
