/** The text about one ended task: whole, and cut to the maximum length of a message. */
import type {
  AsyncTaskInfo,
  CompletedTaskInfo,
  FailedTaskInfo,
  OutputObject,
  SettledTaskInfo,
} from '../../machines/records.js'
import { estimateJsonChars, toJsonText } from '../protocol/json-text.js'
import { boundText, maxWholeChars, previewText, type BoundedText } from './bounded-text.js'
import { commandLine } from './command-line.js'
import { fenceChars, fenced } from './fenced.js'
import { callText, CHECK_READS, resultCall, type FollowUpCall } from './follow-ups.js'
import { PREVIEW_BYTES, previewJson } from './result-preview.js'

/**
 * The whole text about one ended task, with the fields of a synchronous task's result; `''` for a task that has not ended. Of more than ten million
 * characters the rest is left out in words.
 */
export function formatCompletionNotification(task: AsyncTaskInfo): string {
  const payload = payloadOf(task)
  return payload === undefined ? '' : withRepeat(task, toJsonText(payload, { indent: 2 }))
}

/** Marks a result that may have been delivered before. */
export const POSSIBLE_REPEAT =
  'possible repeat: this result may have been delivered before; the process ended before it could know.'

/** Marks a result that was delivered, and is owed again because the host asked for it. */
const REPEAT = 'repeat: this result was delivered before, and is told again because the host asked for it.'

/** What is said of a result that is or may be a repeat. */
export function repeatNote({ isRepeat, notifiedAt }: AsyncTaskInfo): string | undefined {
  if (isRepeat !== true) return undefined
  return notifiedAt === undefined ? POSSIBLE_REPEAT : REPEAT
}

function withRepeat(task: AsyncTaskInfo, text: string): string {
  const note = repeatNote(task)
  return note === undefined ? text : `${note}\n${text}`
}

function payloadOf(task: AsyncTaskInfo): object | undefined {
  switch (task.status) {
    case 'completed':
      return {
        agent_id: task.id,
        ...shownCommand(task),
        ...shownOutput(task.output),
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
        ...(task.cancelReason !== undefined && { reason: task.cancelReason }),
        ...shownCommand(task),
        ...shownTail(task),
        ...spentOf(task),
      }
    case 'queued':
    case 'running':
      return undefined
  }
}

/** The name and code of the error tell a model what its message may not. */
function failurePayload(task: FailedTaskInfo): object {
  const { id, error, errorName, errorCode, lateOutput, attempt } = task
  return {
    ...{ agent_id: id, status: 'failed', ...shownCommand(task), error },
    ...(errorName !== undefined && { error_name: errorName }),
    ...(errorCode !== undefined && { error_code: errorCode }),
    ...(lateOutput !== undefined && { late_output: shownOutput(lateOutput) }),
    ...(attempt !== undefined && { attempt }),
    ...shownTail(task),
    ...shownChildren(task),
    ...spentOf(task),
  }
}

const spentOf = ({ spent }: Pick<AsyncTaskInfo, 'spent'>): object | undefined => spent && { spent }

/** A command by its line, and how it ended. */
function shownCommand({ kind, command = [], exitCode, signal }: SettledTaskInfo): object {
  if (kind === undefined) return {}
  return {
    command: previewText(commandLine(command), COMMAND_CHARS),
    ...(exitCode !== undefined && { exit_code: exitCode }),
    ...(signal !== undefined && { signal }),
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
function shownOutput(output: OutputObject): object {
  const { terminate_reason, emitted_vars, final_message, ...others } = output
  return {
    terminate_reason,
    emitted_vars: emitted_vars ?? {},
    ...(final_message !== undefined && { final_message }),
    ...(Object.keys(others).length > 0 && { other_fields: others }),
  }
}

/** The maximum length of a command line in a message, in characters. */
const COMMAND_CHARS = 300

/** How many times fewer characters than the estimate the JSON text of a value may have. */
const ESTIMATE_FACTOR = 4

/**
 * A task's notification of at most `maxChars` characters. A longer one is a preview of at most 2048 bytes, or as much of its beginning where not even
 * that may be shown; both say how to read the rest. Only what is shown of a long text is copied.
 * @param room the maximum length with that notice; default: that of a whole message
 * @param readWith the tool that reads the rest
 */
export function boundNotification(
  task: AsyncTaskInfo,
  maxChars: number,
  room: number = maxWholeChars(maxChars),
  readWith: FollowUpCall = CHECK_READS,
): BoundedText {
  const reading = resultCall(task.id, readWith)
  const limit = Math.min(maxChars, room)
  const payload = payloadOf(task)
  if (payload === undefined || limit < PREVIEW_BYTES) {
    return boundText(formatCompletionNotification(task), maxChars, reading, room)
  }
  const size = estimateJsonChars(payload)
  if (size <= ESTIMATE_FACTOR * limit) {
    const text = formatCompletionNotification(task)
    if (text.length <= limit) return { text, isCut: false }
  }
  const notice = `[Cut to a preview: it has about ${size} characters. Read the rest with ${callText(reading)}]`
  return { text: previewJson(payload, (text) => `${withRepeat(task, text)}\n${notice}`), isCut: true }
}

/** One of several notifications in a message. */
export interface FittingNotification extends BoundedText {
  readonly task: SettledTaskInfo
}

/** The length of the line breaks between two parts of a message. */
const SEPARATOR_CHARS = 2

/**
 * The notifications of the first of these tasks: as many as fit into `room` characters, and at least one.
 * @param options.readWith the tool that reads the rest of what is cut
 * @param options.isFenced whether each is named and fenced as the output of its task
 */
export function fittingNotifications(
  tasks: readonly SettledTaskInfo[],
  maxChars: number,
  room: number,
  { readWith, isFenced = false }: { readonly readWith: FollowUpCall; readonly isFenced?: boolean },
): FittingNotification[] {
  const fitting: FittingNotification[] = []
  let left = room
  for (const task of tasks) {
    const title = `Output of task ${task.id}:`
    const frameChars = isFenced ? fenceChars(title) : 0
    const { text: plain, isCut } = boundNotification(task, maxChars, room - SEPARATOR_CHARS - frameChars, readWith)
    const text = isFenced ? fenced(title, plain, 'json') : plain
    left -= text.length + SEPARATOR_CHARS
    if (left < 0) break
    fitting.push({ task, text, isCut })
  }
  return fitting
}
