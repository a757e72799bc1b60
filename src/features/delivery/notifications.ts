/** The text about one ended task, in full or shortened to the maximum length of a message. */
import { isTerminal } from '../../../machines/task-entry.js'
import { TASK_TIMEOUT } from '../../../machines/async-task.js'
import { RECORD_FIELDS, SHOWN_FIELDS } from '../../../machines/record-fields.js'
import { endedAs } from '../../../machines/task-status.js'
import type {
  AsyncTaskInfo,
  CompletedTaskInfo,
  FailedTaskInfo,
  OutputObject,
  SettledTaskInfo,
} from '../../../machines/records.js'
import { toOneLine } from '../../data/control-characters.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { estimateJsonChars, toJsonText } from '../../data/json-text.js'
import { boundText, maxWholeChars, previewText, type BoundedText } from '../output/bounded-text.js'
import { commandLine } from '../../async-tasks/command-line.js'
import { fenceChars, fenced } from '../../data/fenced.js'
import { callText, CHECK_READS, resultCall, type FollowUpCall } from '../output/follow-ups.js'
import { PREVIEW_BYTES, previewJson } from '../output/result-preview.js'
import { noteName, taskName } from '../../async-tasks/task-name.js'

/**
 * Returns the full text about an ended task, with the same fields as the result of a synchronous task; `''` for a task that has not ended. Texts
 * beyond ten million characters end with a remark that the rest is missing.
 */
export function formatCompletionNotification(task: AsyncTaskInfo, keepsEmpty = true): string {
  const payload = payloadOf(task, keepsEmpty)
  return payload === undefined ? '' : withRepeat(task, toJsonText(payload, { indent: 2 }))
}

/** Precedes a result that may have been delivered before: before a crash, or in a turn that failed. */
const POSSIBLE_REPEAT = 'possible repeat: this result may have been delivered before. That delivery was not confirmed.'

/** Precedes a question that may have been delivered before. */
export const REPEATED_QUESTION = 'possible repeat: this question may have been asked before.'

/** Precedes a result that is delivered again at the host's request. */
const REPEAT = 'repeat: this result was delivered before, and is resent at the request of the host.'

/** Whether this result may have been delivered before, so that the model may receive it twice. */
export const isPossibleRepeat = ({ isRepeat, notifiedAt }: AsyncTaskInfo): boolean =>
  isRepeat === true && notifiedAt === undefined

/** Returns the line that precedes a repeated result; undefined for any other result. */
export function repeatNote(task: AsyncTaskInfo): string | undefined {
  if (task.isRepeat !== true) return undefined
  return isPossibleRepeat(task) ? POSSIBLE_REPEAT : REPEAT
}

function withRepeat(task: AsyncTaskInfo, text: string): string {
  const note = repeatNote(task)
  return note === undefined ? text : `${note}\n${text}`
}

/** @param keepsEmpty whether a completed task without variables gets the field `emitted_vars` with an empty object */
function payloadOf(task: AsyncTaskInfo, keepsEmpty: boolean): object | undefined {
  if (!isTerminal(task)) return undefined
  if (endedAs(task, 'succeeded')) {
    if (task.isNote === true) return { note_id: task.id, note: task.output.final_message }
    return {
      agent_id: task.id,
      ...shownCommand(task),
      ...shownOutput(task.output, keepsEmpty),
      ...shownChildren(task),
      ...shownFields(task),
      ...spentOf(task),
    }
  }
  if (endedAs(task, 'failed')) return failurePayload(task)
  return {
    agent_id: task.id,
    status: task.status,
    ...omitUndefined({ reason: task.cancelReason }),
    ...shownCommand(task),
    ...shownFields(task),
    ...spentOf(task),
  }
}

/** Includes the name and code of the error, because its message may not contain them. */
function failurePayload(task: FailedTaskInfo): object {
  const { id, status, kind, error, errorName, errorCode, lateOutput, attempt } = task
  return {
    agent_id: id,
    status,
    ...shownCommand(task),
    error,
    ...omitUndefined({ error_name: errorName, error_code: errorCode }),
    ...(errorCode === TASK_TIMEOUT && kind !== undefined && { timeout_setting: TIMEOUT_SETTING }),
    ...(lateOutput !== undefined && { late_output: shownOutput(lateOutput, false) }),
    ...omitUndefined({ attempt }),
    ...shownFields(task),
    ...shownChildren(task),
    ...spentOf(task),
  }
}

/** What a model must change to give a command more time. */
const TIMEOUT_SETTING = "timeout_seconds, up to the host's commands.maxTimeoutSeconds"

const spentOf = ({ spent }: Pick<AsyncTaskInfo, 'spent'>): object | undefined => spent && { spent }

/** Returns the command line of a command, and how the command ended. */
function shownCommand({ kind, command = [], exitCode, signal, endedProcesses }: SettledTaskInfo): object {
  if (kind === undefined) return {}
  return {
    command: previewText(commandLine(command), COMMAND_CHARS),
    ...omitUndefined({ exit_code: exitCode, signal, ended_processes: endedProcesses }),
  }
}

/** Returns the fields that are shown as they are. The output of a program becomes a JSON string, so that it cannot imitate another field. */
const shownFields = (task: SettledTaskInfo): object =>
  omitUndefined(Object.fromEntries(SHOWN_FIELDS.map((field) => [RECORD_FIELDS[field].shownAs, task[field]])))

/** Lists the child tasks that are still active. Their results follow in other messages. */
function shownChildren({ runningChildren }: CompletedTaskInfo | FailedTaskInfo): object {
  return runningChildren === undefined ? {} : { running_children: runningChildren }
}

/** Known fields come first. Unknown fields are nested in `other_fields`, so that they cannot imitate the status or the id. */
function shownOutput(output: OutputObject, keepsEmpty: boolean): object {
  const { terminate_reason, emitted_vars, final_message, ...others } = output
  return {
    terminate_reason,
    ...((keepsEmpty || !isEmpty(emitted_vars)) && { emitted_vars: emitted_vars ?? {} }),
    ...omitUndefined({ final_message }),
    ...(Object.keys(others).length > 0 && { other_fields: others }),
  }
}

const isEmpty = (vars: unknown): boolean =>
  vars === undefined || vars === null || (typeof vars === 'object' && Object.keys(vars).length === 0)

/** The maximum length of a command line in a message, in characters. */
const COMMAND_CHARS = 300

/** The estimated length of a JSON text may exceed the real one by up to this factor. */
const ESTIMATE_FACTOR = 4

/**
 * Returns the notification of a task in at most `maxChars` characters. A longer text is replaced by a preview of at most 2048 bytes, or less if that
 * does not fit. The preview says how to read the rest. Only the part of a long text that the preview shows is copied.
 * @param room the maximum length of the text with the remark on how to read the rest. Default: the maximum of a whole message
 * @param readWith the tool that reads the rest
 * @param keepsEmpty whether a completed task without variables gets the field `emitted_vars` with an empty object
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

export interface FittingNotification extends BoundedText {
  readonly task: SettledTaskInfo
}

/** The length of the line breaks between two parts of a message. */
const SEPARATOR_CHARS = 2

/** The format of notifications in a message. */
export interface NotificationFrame {
  /** The tool that reads the rest of a shortened text. */
  readonly readWith: FollowUpCall
  /**
   * What surrounds each notification: a title line (`line`, the default), a title line and a fence of backticks (`fence`), or `nothing` if the tool
   * call has already named the task.
   */
  readonly around?: 'line' | 'fence' | 'nothing'
  /** See `boundNotification`. */
  readonly keepsEmpty?: boolean
}

/** The title line of a task, above the JSON of its result. */
export const titleOf = (task: AsyncTaskInfo): string =>
  task.isNote === true
    ? `Note ${toOneLine(task.id)} (${noteName(task)}):`
    : `Task ${toOneLine(task.id)} (${taskName(task)}):`

const fenceTitleOf = (task: AsyncTaskInfo): string =>
  task.isNote === true ? titleOf(task) : `Output of task ${toOneLine(task.id)} (${taskName(task)}):`

/** Returns the notifications of the first tasks: as many as fit into `room` characters, but at least one. */
export function fittingNotifications(
  tasks: readonly SettledTaskInfo[],
  maxChars: number,
  room: number,
  { readWith, around = 'line', keepsEmpty }: NotificationFrame,
): FittingNotification[] {
  const fitting: FittingNotification[] = []
  let left = room
  for (const task of tasks) {
    // The fence may contain only JSON, so the remark about a repeat goes above the title.
    const note = around === 'fence' ? repeatNote(task) : undefined
    const body = note === undefined ? task : withoutRepeat(task)
    const named = around === 'fence' ? fenceTitleOf(task) : titleOf(task)
    const title = note === undefined ? named : `${note}\n${named}`
    const frameChars = around === 'fence' ? fenceChars(title) : around === 'line' ? title.length + 1 : 0
    const whole = room - SEPARATOR_CHARS - frameChars
    const { text: plain, isCut } = boundNotification(body, maxChars, whole, readWith, keepsEmpty)
    const text = around === 'fence' ? fenced(title, plain, 'json') : around === 'line' ? `${title}\n${plain}` : plain
    // Of a message that may arrive twice, the repeat carries the same results. It needs room for their remarks.
    const remark = around === 'fence' && note === undefined ? POSSIBLE_REPEAT.length + 1 : 0
    left -= text.length + remark + SEPARATOR_CHARS
    if (left < 0 && fitting.length > 0) break
    fitting.push({ task, text, isCut })
  }
  return fitting
}
