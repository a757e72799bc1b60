/** The text about one ended task: whole, and cut to the maximum length of a message. */
import { isTerminal } from '../../../machines/task-entry.js'
import { TASK_TIMEOUT } from '../../../machines/async-task.js'
import type {
  AsyncTaskInfo,
  CompletedTaskInfo,
  FailedTaskInfo,
  OutputObject,
  SettledTaskInfo,
} from '../../../machines/records.js'
import { toOneLine } from '../../text/control-characters.js'
import { defined } from '../../defined.js'
import { estimateJsonChars, toJsonText } from '../../json/json-text.js'
import { boundText, maxWholeChars, previewText, type BoundedText } from '../output/bounded-text.js'
import { commandLine } from '../command-line.js'
import { fenceChars, fenced } from '../limits/fenced.js'
import { callText, CHECK_READS, resultCall, type FollowUpCall } from '../output/follow-ups.js'
import { PREVIEW_BYTES, previewJson } from '../output/result-preview.js'
import { noteName, taskName } from '../task-name.js'

/**
 * The whole text about one ended task, with the fields of a synchronous task's result; `''` for a task that has not ended. Of more than ten million
 * characters the rest is left out in words.
 */
export function formatCompletionNotification(task: AsyncTaskInfo, keepsEmpty = true): string {
  const payload = payloadOf(task, keepsEmpty)
  return payload === undefined ? '' : withRepeat(task, toJsonText(payload, { indent: 2 }))
}

/** Marks a result that may have been delivered before. */
export const POSSIBLE_REPEAT =
  'possible repeat: this result may have been delivered before; the process ended before it could know.'

/** Marks a question that was delivered, or may have been. */
export const REPEATED_QUESTION = 'possible repeat: this question may have been asked before.'

/** Marks a result that was delivered, and is owed again because the host asked for it. */
const REPEAT = 'repeat: this result was delivered before, and is told again because the host asked for it.'

/** Whether a crash left open if the result has been delivered. */
export const isPossibleRepeat = ({ isRepeat, notifiedAt }: AsyncTaskInfo): boolean =>
  isRepeat === true && notifiedAt === undefined

/** What is said of a result that is or may be a repeat. */
export function repeatNote(task: AsyncTaskInfo): string | undefined {
  if (task.isRepeat !== true) return undefined
  return isPossibleRepeat(task) ? POSSIBLE_REPEAT : REPEAT
}

function withRepeat(task: AsyncTaskInfo, text: string): string {
  const note = repeatNote(task)
  return note === undefined ? text : `${note}\n${text}`
}

/** @param keepsEmpty whether a completed task without variables has an empty object of them */
function payloadOf(task: AsyncTaskInfo, keepsEmpty: boolean): object | undefined {
  if (!isTerminal(task)) return undefined
  switch (task.status) {
    case 'completed':
      if (task.isNote === true) return { note_id: task.id, note: task.output.final_message }
      return {
        agent_id: task.id,
        ...shownCommand(task),
        ...shownOutput(task.output, keepsEmpty),
        ...shownChildren(task),
        ...shownTail(task),
        ...spentOf(task),
      }
    case 'failed':
      return failurePayload(task)
    case 'cancelled':
      return {
        agent_id: task.id,
        status: 'cancelled',
        ...defined({ reason: task.cancelReason }),
        ...shownCommand(task),
        ...shownTail(task),
        ...spentOf(task),
      }
  }
}

/** The name and code of the error tell a model what its message may not. */
function failurePayload(task: FailedTaskInfo): object {
  const { id, kind, error, errorName, errorCode, lateOutput, attempt } = task
  return {
    agent_id: id,
    status: 'failed',
    ...shownCommand(task),
    error,
    ...defined({ error_name: errorName, error_code: errorCode }),
    ...(errorCode === TASK_TIMEOUT && kind !== undefined && { timeout_setting: TIMEOUT_SETTING }),
    ...(lateOutput !== undefined && { late_output: shownOutput(lateOutput, false) }),
    ...defined({ attempt }),
    ...shownTail(task),
    ...shownChildren(task),
    ...spentOf(task),
  }
}

/** What gives a command a later deadline. */
const TIMEOUT_SETTING = "timeout_seconds, up to the host's commands.maxTimeoutSeconds"

const spentOf = ({ spent }: Pick<AsyncTaskInfo, 'spent'>): object | undefined => spent && { spent }

/** A command by its line, and how it ended. */
function shownCommand({ kind, command = [], exitCode, signal, endedProcesses }: SettledTaskInfo): object {
  if (kind === undefined) return {}
  return {
    command: previewText(commandLine(command), COMMAND_CHARS),
    ...defined({ exit_code: exitCode, signal, ended_processes: endedProcesses }),
  }
}

/** What a program wrote is a string of JSON: nothing in it can pass for another field. */
function shownTail({ outputTail }: SettledTaskInfo): object {
  return outputTail === undefined ? {} : { output_tail: outputTail }
}

/** The tasks that it launched and that go on: their results come in messages of their own. */
function shownChildren({ runningChildren }: CompletedTaskInfo | FailedTaskInfo): object {
  return runningChildren === undefined ? {} : { running_children: runningChildren }
}

/** The known fields first. The others have a field of their own: they cannot pass for the status or the id. */
function shownOutput(output: OutputObject, keepsEmpty: boolean): object {
  const { terminate_reason, emitted_vars, final_message, ...others } = output
  return {
    terminate_reason,
    ...((keepsEmpty || !isEmpty(emitted_vars)) && { emitted_vars: emitted_vars ?? {} }),
    ...defined({ final_message }),
    ...(Object.keys(others).length > 0 && { other_fields: others }),
  }
}

const isEmpty = (vars: unknown): boolean =>
  vars === undefined || vars === null || (typeof vars === 'object' && Object.keys(vars).length === 0)

/** The maximum length of a command line in a message, in characters. */
const COMMAND_CHARS = 300

/** How many times fewer characters than the estimate the JSON text of a value may have. */
const ESTIMATE_FACTOR = 4

/**
 * A task's notification of at most `maxChars` characters. A longer one is a preview of at most 2048 bytes, or as much of its beginning where not even
 * that may be shown; both say how to read the rest. Only what is shown of a long text is copied.
 * @param room the maximum length with that notice; default: that of a whole message
 * @param readWith the tool that reads the rest
 * @param keepsEmpty whether a completed task without variables has an empty object of them, as in a reminder
 */
export function boundNotification(
  task: AsyncTaskInfo,
  maxChars: number,
  room: number = maxWholeChars(maxChars),
  readWith: FollowUpCall = CHECK_READS,
  keepsEmpty = true,
): BoundedText {
  const reading = resultCall(task.id, readWith)
  const limit = Math.min(maxChars, room)
  const payload = payloadOf(task, keepsEmpty)
  if (payload === undefined || limit < PREVIEW_BYTES) {
    return boundText(formatCompletionNotification(task, keepsEmpty), maxChars, reading, room)
  }
  const size = estimateJsonChars(payload)
  if (size <= ESTIMATE_FACTOR * limit) {
    const text = formatCompletionNotification(task, keepsEmpty)
    if (text.length <= limit) return { text, isCut: false }
  }
  const notice = `[Cut to a preview: it has about ${size} characters. Read the rest with ${callText(reading)}]`
  return { text: previewJson(payload, (text) => `${withRepeat(task, text)}\n${notice}`), isCut: true }
}

function withoutRepeat({ isRepeat: _, ...task }: SettledTaskInfo): SettledTaskInfo {
  return task
}

/** One of several notifications in a message. */
export interface FittingNotification extends BoundedText {
  readonly task: SettledTaskInfo
}

/** The length of the line breaks between two parts of a message. */
const SEPARATOR_CHARS = 2

/** How notifications are put into a message. */
export interface NotificationFrame {
  /** The tool that reads the rest of what is cut. */
  readonly readWith: FollowUpCall
  /** What is around each: a line that names its task; that and a fence; or nothing, where the call that it answers names the task. Default `line`. */
  readonly around?: 'line' | 'fence' | 'nothing'
  /** See `boundNotification`. */
  readonly keepsEmpty?: boolean
}

/** Names a task above the JSON of its end. */
export const titleOf = (task: AsyncTaskInfo): string =>
  task.isNote === true
    ? `Note ${toOneLine(task.id)} (${noteName(task)}):`
    : `Task ${toOneLine(task.id)} (${taskName(task)}):`

const fenceTitleOf = (task: AsyncTaskInfo): string =>
  task.isNote === true ? titleOf(task) : `Output of task ${toOneLine(task.id)} (${taskName(task)}):`

/** The notifications of the first of these tasks: as many as fit into `room` characters, and at least one. */
export function fittingNotifications(
  tasks: readonly SettledTaskInfo[],
  maxChars: number,
  room: number,
  { readWith, around = 'line', keepsEmpty }: NotificationFrame,
): FittingNotification[] {
  const fitting: FittingNotification[] = []
  let left = room
  for (const task of tasks) {
    // Between the fences there is JSON alone.
    const note = around === 'fence' ? repeatNote(task) : undefined
    const body = note === undefined ? task : withoutRepeat(task)
    const named = around === 'fence' ? fenceTitleOf(task) : titleOf(task)
    const title = note === undefined ? named : `${note}\n${named}`
    const frameChars = around === 'fence' ? fenceChars(title) : around === 'line' ? title.length + 1 : 0
    const whole = room - SEPARATOR_CHARS - frameChars
    const { text: plain, isCut } = boundNotification(body, maxChars, whole, readWith, keepsEmpty)
    const text = around === 'fence' ? fenced(title, plain, 'json') : around === 'line' ? `${title}\n${plain}` : plain
    left -= text.length + SEPARATOR_CHARS
    if (left < 0) break
    fitting.push({ task, text, isCut })
  }
  return fitting
}
