/** Reads a text of a task from a byte position on: its output, or a result that was cut. */
import type { AsyncTaskInfo } from '../../machines/records.js'
import { isTerminal } from '../../machines/task-entry.js'
import { callText, resultCall, type FollowUpCall } from '../features/output/follow-ups.js'
import { formatCompletionNotification } from '../features/delivery/notifications.js'
import { taskName } from '../async-tasks/task-name.js'
import { fenced } from '../data/fenced.js'
import { terminalText } from '../data/terminal-text.js'
import { readChunk, type OutputChunk } from '../features/output/output-log.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { markShown, type ShownDelivery } from './shown-texts.js'
import type { TaskView } from './task-view.js'
import type { ToolResult } from './tool.js'

/** Which part of a text to return, in bytes. */
export interface TextRange {
  /** The byte to start at. Undefined: the first byte that is kept. */
  readonly cursor: number | undefined
  readonly maxBytes: number
}

/**
 * Reads what a task has written.
 * @param isRaw whether the text has its escape sequences, and all states of lines that were redrawn
 */
export function readWritten(view: TaskView, task: AsyncTaskInfo, range: TextRange, isRaw: boolean): ToolResult {
  const { cursor, maxBytes } = range
  const { read } = view.followUps
  const found = view.manager.readOutput(task.id, { maxBytes, ...omitUndefined({ cursor }) }) ?? NOTHING
  const chunk = isRaw ? found : withWholeSequences(found)
  return chunkResult({
    isRaw,
    title: `Output of task ${task.id} (${task.status}; ${taskName(task)})`,
    chunk,
    reading: { tool: read.tool, params: { task_id: task.id, ...read.params, ...(isRaw && { raw: true }) } },
    isGrowing: !isTerminal(task),
    isFenced: true,
  })
}

/** Reads the text about the end of a task. An earlier message may have cut this text. Reading it to its end marks it as read. */
export async function readResult(view: TaskView, task: AsyncTaskInfo, range: TextRange): Promise<ToolResult> {
  const bytes = new TextEncoder().encode(formatCompletionNotification(task))
  const chunk = readChunk(bytes, 0, range.cursor ?? 0, range.maxBytes)
  const delivery = await markShown(view, task, chunk.remainingBytes === 0)
  return chunkResult({
    title: `Result of task ${task.id} (${task.status}; ${taskName(task)})`,
    chunk,
    reading: resultCall(task.id, view.followUps.read),
    isGrowing: !isTerminal(task),
    delivery,
  })
}

const NOTHING: OutputChunk = { text: '', nextCursor: 0, skippedBytes: 0, remainingBytes: 0 }

/** The beginning of an escape sequence at the end of a text. */
// eslint-disable-next-line no-control-regex
const UNFINISHED = /\u001b(?:\[[0-?]*[ -/]*|\][^\u0007\u001b\n]{0,2000})?$/

/** Leaves an escape sequence that the end of the chunk has cut to the next chunk. */
function withWholeSequences(chunk: OutputChunk): OutputChunk {
  const at = chunk.remainingBytes > 0 ? chunk.text.search(UNFINISHED) : -1
  if (at <= 0) return chunk
  const left = chunk.text.length - at
  const bytes = new TextEncoder().encode(chunk.text.slice(at)).length
  return {
    ...chunk,
    text: chunk.text.slice(0, -left),
    nextCursor: chunk.nextCursor - bytes,
    remainingBytes: chunk.remainingBytes + bytes,
  }
}

interface ChunkText {
  readonly title: string
  readonly chunk: OutputChunk
  /** The call with which a model reads this text. The cursor is added to its parameters. */
  readonly reading: FollowUpCall
  /** Whether the task may still append to the text. */
  readonly isGrowing: boolean
  /** Whether the text is raw output, which is shown in a fenced block. Default false. */
  readonly isFenced?: boolean
  /** Whether the text is shown unchanged. With false, as a terminal shows it. Default true. */
  readonly isRaw?: boolean
  readonly delivery?: ShownDelivery
}

/** A part of a text. Notes say what is missing before it, and how to read what comes after it. */
export function chunkResult({
  title,
  chunk,
  reading,
  isGrowing,
  isFenced = false,
  isRaw = true,
  delivery,
}: ChunkText): ToolResult {
  const { text, nextCursor, skippedBytes, remainingBytes } = chunk
  const start = nextCursor - new TextEncoder().encode(text).length
  const heading = text === '' ? `${title}, nothing at byte ${start}:` : `${title}, bytes ${start} to ${nextCursor}:`
  const next = callText(reading, { cursor: nextCursor })
  const ending =
    remainingBytes > 0
      ? `[${remainingBytes} bytes remain. Read on with ${next}]`
      : isGrowing
        ? `[That is all so far. Read on later with ${next}]`
        : '[That is the end.]'
  const skipped = skippedBytes > 0 ? [`[${skippedBytes} bytes before this are no longer kept.]`] : []
  const above = [heading, ...skipped].join('\n')
  const shown = isRaw ? text : terminalText(text)
  const body = text === '' ? above : isFenced ? fenced(above, shown) : `${above}\n${shown}`
  return {
    llmContent: `${body}\n${ending}`,
    returnDisplay: `${heading.slice(0, -1)}${remainingBytes > 0 ? `, ${remainingBytes} remain` : ''}`,
    metadata: { ...reading.params, start, nextCursor, skippedBytes, remainingBytes, ...delivery },
  }
}
