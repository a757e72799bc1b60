/** The end of what a task wrote, which its record keeps where its result does not have it. */
import type { Settlement } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { lastChars } from '../../text/cut-text.js'
import type { OutputLog } from './output-log.js'

/** How much of it a record keeps, in UTF-16 units. */
const TAIL_CHARS = 1000

/**
 * What the record of a task that ends keeps of its output: of one that was cancelled or exceeded its deadline, and of every command. Undefined where
 * its result ends with it.
 */
export function keptTail(entry: TaskEntry, settlement: Settlement, log: OutputLog | undefined): string | undefined {
  if (log === undefined) return undefined
  const isStopped = settlement.status === 'cancelled' || (settlement.status === 'failed' && isOverdue(entry))
  if (!isStopped && entry.record.kind === undefined) return undefined
  const tail = tailOf(log)
  // Every text ends with nothing.
  return resultText(settlement).trimEnd().endsWith(tail) ? undefined : tail
}

/** The end of an output, without the line break that it ends with. */
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
