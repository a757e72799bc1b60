/** Checks a delivery log: whether every result was delivered once and in order, and whether any result is stranded. */
import { z } from 'zod'
import { parseInput } from '../protocol/parse.js'
import { DeliveryAccounts, type DeliveryVerdict } from './delivery-accounts.js'
import { parseDeliveryLog } from './delivery-log.js'
import { strictObject } from '../protocol/strict-object.js'

/** Options of `checkDeliveryLog`. */
export interface DeliveryCheckOptions {
  /**
   * How long a result may be owed or leased at the end of the log before it counts as stranded, in ms. Default 0, for the log of a
   * run that has ended.
   */
  readonly graceMs?: number
  /** When the log ended, in ms since the epoch. Default: the time of its last entry. */
  readonly now?: number
  /**
   * How far the time of an entry may lie before the time of an earlier entry, in ms. The system clock may be set back while a log is written. Default
   * 1000.
   */
  readonly clockStepMs?: number
}

const optionsSchema = strictObject({
  graceMs: z.number().min(0).optional(),
  now: z.number().optional(),
  clockStepMs: z.number().min(0).optional(),
})

/**
 * Checks a delivery log, from a test or from production: whether every result was delivered once and in order.
 *
 * A result counts as delivered when the host reports that the agent accepted it (`accepted`). A delivery without a turn (no entry `turn-started`) counts
 * with its acknowledgement. Such a delivery is the answer to a wait, or a reminder in the next turn.
 * @param log entries, or the text of a file with one JSON entry per line
 * @param options what counts as stranded, and how far times may go back
 * @returns the problems that were found, and counts
 * @throws INVALID_INPUT for an invalid entry or option
 * @example
 * const verdict = checkDeliveryLog(await readFile('deliveries.jsonl', 'utf8'), { graceMs: 60_000 })
 * if (!verdict.isClean) console.error(verdict.lost, verdict.duplicated, verdict.outOfOrder, verdict.stranded)
 */
export function checkDeliveryLog(log: string | Iterable<unknown>, options: DeliveryCheckOptions = {}): DeliveryVerdict {
  const { graceMs = 0, now, clockStepMs = 1000 } = parseInput(optionsSchema, options, 'options')
  const entries = parseDeliveryLog(log)
  const accounts = new DeliveryAccounts(clockStepMs)
  for (const entry of entries) accounts.add(entry)
  return accounts.conclude(now ?? entries.at(-1)?.at ?? 0, graceMs)
}
