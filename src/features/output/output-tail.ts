/** The end of a task's output. The record of the ended task keeps it if the result does not contain it. */
import type { Settlement } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { lastChars } from '../../data/cut-text.js'
import { terminalText } from '../../data/terminal-text.js'
import type { OutputLog } from './output-log.js'
import { endedAs, hasSucceeded, wasStopped } from '../../../machines/task-status.js'

/** How much of the output a record keeps, in UTF-16 units. */
const TAIL_CHARS = 1000

/**
 * Returns the end of the output that the record of an ended task keeps. Only the records of commands, and of tasks that were cancelled or overdue,
 * keep it. Returns undefined if the result already ends with the same text.
 */
export function keptTail(entry: TaskEntry, settlement: Settlement, log: OutputLog | undefined): string | undefined {
  if (log === undefined) return undefined
  const isStopped = !hasSucceeded(settlement.status) && (wasStopped(settlement.status) || isOverdue(entry))
  if (!isStopped && entry.record.kind === undefined) return undefined
  const tail = tailOf(log)
  // For an empty tail this returns undefined, because every text ends with the empty text.
  return resultText(settlement).trimEnd().endsWith(tail) ? undefined : tail
}

/** Returns the end of an output as a terminal shows it, without its final line break. */
export function tailOf(log: OutputLog, maxChars = TAIL_CHARS): string {
  return lastChars(terminalText(log.readEnd(BYTES_PER_CHAR * maxChars)).trimEnd(), maxChars)
}

/** How much of the output is read for each character: a UTF-16 unit has at most 3 bytes, and the rest is for what a terminal does not show. */
const BYTES_PER_CHAR = 16

const isOverdue = ({ graceMs }: TaskEntry): boolean => graceMs === undefined

function resultText(settlement: Settlement): string {
  if (endedAs(settlement, 'failed')) return settlement.error
  const text = endedAs(settlement, 'succeeded') ? settlement.output.final_message : undefined
  return typeof text === 'string' ? text : ''
}
