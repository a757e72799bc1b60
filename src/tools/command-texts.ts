/** The texts about a command task that a model reads: its progress and its end. */
import type { OutputObject } from '../../machines/records.js'
import { previewText } from '../features/output/bounded-text.js'
import { toJsonText } from '../data/json-text.js'
import { orderedJson } from '../data/ordered-json.js'
import { parseJson } from '../data/parse-json.js'
import { MAX_LEVELS } from '../data/plain-data.js'
import { terminalText } from '../data/terminal-text.js'
import {
  statusText,
  type CommandError,
  type CommandStatus,
  type Task,
  type TaskCompleteMessage,
  type TaskProgressMessage,
} from '../protocol/command-tasks.js'
import { wasStopped } from '../../machines/task-status.js'

/** The maximum length of a result in a progress line, in characters. The final text has the whole result. */
const LINE_CHARS = 500

/** A command in a few words: its tool, and its intention if it has one. */
export function stepName({ tool_name, intention }: { readonly tool_name: string; readonly intention: string }): string {
  return intention === '' ? tool_name : `${tool_name} (${previewText(intention, 100)})`
}

/** A progress message as one line of output; `''` if the message has no text. */
export function progressText(message: TaskProgressMessage): string {
  const { commandIndex, totalCommands, status, result, error } = message
  const place = `[${commandIndex + 1}/${totalCommands}] ${stepName(message)}`
  if (status === 'running' && message.progress !== undefined) {
    return message.message === undefined ? '' : `${place}: ${previewText(message.message, LINE_CHARS)}`
  }
  return `${place}: ${previewText(outcomeText(status, result, error), LINE_CHARS)}`
}

export function outputOf(task: Task, complete: TaskCompleteMessage): OutputObject {
  const { results, summary, taskId, instanceId } = complete
  return {
    final_message: [
      `Command task '${task.name}' completed on instance ${instanceId}:`,
      ...stepLines(task, results),
    ].join('\n'),
    command_task_id: taskId,
    instance_id: instanceId,
    summary,
  }
}

/** The error of an async task whose command task did not complete (promise S10). */
export function endText(task: Task, complete: TaskCompleteMessage): string {
  const name = `Command task '${task.name}' (${task.id})`
  return [`${name} ${reasonOf(task, complete)}`, ...stepLines(task, complete.results)].join('\n')
}

function reasonOf(task: Task, { status, error, summary, instanceId }: TaskCompleteMessage): string {
  const why = error === undefined ? '' : ` ${error.code}: ${error.message}`
  if (wasStopped(status)) return `was cancelled elsewhere, not by this async task.${why}`
  const { failedCommandIndex: index } = summary
  const command = index === undefined ? undefined : task.commands[index]
  return index === undefined || command === undefined
    ? `failed on instance ${instanceId}.${why}`
    : `failed at command ${index + 1} of ${summary.totalCommands}, ${stepName(command)}.${why}`
}

function stepLines(task: Task, results: TaskCompleteMessage['results']): string[] {
  return results.map(({ status, result, error }, index) => {
    const command = task.commands[index]
    return `${index + 1}. ${command === undefined ? 'command' : stepName(command)}: ${outcomeText(status, result, error)}`
  })
}

function outcomeText(status: CommandStatus, result: unknown, error: CommandError | undefined): string {
  const shown = statusText(status, error)
  if (shown === 'cancelled') return shown
  if (error !== undefined) return `${status}: ${error.code}: ${error.message}`
  const text = resultText(result)
  return text === '' ? status : `${status}: ${text}`
}

/** The result of a tool as text: its content blocks, and its structured content unless a text block has the same JSON. */
function resultText(result: unknown): string {
  if (result === undefined) return ''
  const { content, structuredContent } = Object(result) as { content?: unknown; structuredContent?: unknown }
  if (!Array.isArray(content)) return toJsonText(result)
  const blocks = content.map(blockText)
  const isShown = structuredContent === undefined || blocks.some((text) => isJsonOf(text, structuredContent))
  return [...blocks, ...(isShown ? [] : [toJsonText(structuredContent)])].join('\n')
}

function isJsonOf(text: string, value: unknown): boolean {
  const json = parseJson(text, MAX_LEVELS)
  return 'value' in json && orderedJson(json.value) === orderedJson(value)
}

interface Block {
  readonly type?: unknown
  readonly text?: unknown
  readonly name?: unknown
  readonly uri?: unknown
  readonly mimeType?: unknown
  /** The resource that is embedded. */
  readonly resource?: unknown
}

/** Content without text is shown by its type, its name and where it is. */
function blockText(block: unknown): string {
  const { type, text, name, uri, mimeType, resource } = Object(block) as Block
  if (typeof text === 'string') return terminalText(text)
  const inner = Object(resource) as Block
  const parts = [type, name, uri ?? inner.uri, mimeType ?? inner.mimeType]
  const title = `[${parts.filter((part) => typeof part === 'string').join(' ') || 'content'}]`
  return typeof inner.text === 'string' ? `${title}\n${terminalText(inner.text)}` : title
}
