/** The end of a task's output, which its record keeps if the result does not include it. */
import type { Settlement } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { lastChars } from '../../text/cut-text.js'
import type { OutputLog } from './output-log.js'

/** How much a record keeps, in UTF-16 units. */
const TAIL_CHARS = 1000

/**
 * Returns the output that the record of an ended task keeps: for every command, and for a task that was cancelled or overdue. Undefined if the result
 * already ends with it.
 */
export function keptTail(entry: TaskEntry, settlement: Settlement, log: OutputLog | undefined): string | undefined {
  if (log === undefined) return undefined
  const isStopped = settlement.status === 'cancelled' || (settlement.status === 'failed' && isOverdue(entry))
  if (!isStopped && entry.record.kind === undefined) return undefined
  const tail = tailOf(log)
  // Every text ends with an empty tail.
  return resultText(settlement).trimEnd().endsWith(tail) ? undefined : tail
}

/** The end of an output without its final line break. */
export function tailOf(log: OutputLog, maxChars = TAIL_CHARS): string {
  return lastChars(log.readEnd(BYTES_PER_CHAR * maxChars).trimEnd(), maxChars)
}

/** A UTF-16 unit takes at most three bytes in UTF-8. */
const BYTES_PER_CHAR = 3

const isOverdue = ({ graceMs }: TaskEntry): boolean => graceMs === undefined

function resultText(settlement: Settlement): string {
  if (settlement.status === 'cancelled') return ''
  const text: unknown = settlement.status === 'failed' ? settlement.error : settlement.output.final_message
  return typeof text === 'string' ? text : ''
}
