/** The delivery log: the events of each task's result, one JSON entry per line. */
import { z } from 'zod'
import { TERMINAL_STATUSES } from '../../machines/task-status.js'
import { InvalidInputError } from '../errors.js'
import { parseInput } from '../protocol/parse.js'

const id = z.string().min(1)
const ids = z.array(id).readonly()
const base = {
  /** Milliseconds since the epoch. */
  at: z.number(),
}

/** The zod schema of one entry. Unknown fields are ignored. */
export const deliveryLogEntrySchema = z.discriminatedUnion('type', [
  /** A task was registered. */
  z.object({ type: z.literal('registered'), ...base, taskId: id, owner: id }),
  /** A task ended. `owes`: whether its result must be delivered. */
  z.object({
    type: z.literal('settled'),
    ...base,
    taskId: id,
    status: z.enum(TERMINAL_STATUSES),
    owes: z.boolean(),
  }),
  /** These results were leased to a message. Until the lease ends, no other message may contain them. */
  z.object({ type: z.literal('leased'), ...base, deliveryId: id, taskIds: ids }),
  /** A turn of the agent started with this message. */
  z.object({ type: z.literal('turn-started'), ...base, owner: id, deliveryId: id, taskIds: ids }),
  /** The host reports that the agent accepted a message with these results. */
  z.object({ type: z.literal('accepted'), ...base, deliveryId: id.optional(), taskIds: ids }),
  /** The manager marked these results as delivered. */
  z.object({ type: z.literal('acknowledged'), ...base, deliveryId: id.optional(), taskIds: ids }),
  /** The message was not accepted: its results are owed again. */
  z.object({ type: z.literal('returned'), ...base, deliveryId: id, taskIds: ids }),
  /** The host requested a delivered message again: its results are owed again. */
  z.object({ type: z.literal('repeated'), ...base, deliveryId: id, taskIds: ids }),
  /** The result is owed to another owner from now on. */
  z.object({ type: z.literal('moved'), ...base, taskId: id, owner: id }),
  /** The owner was released, and no other owner takes its tasks over: these results are no longer owed. */
  z.object({ type: z.literal('dropped'), ...base, taskIds: ids }),
  /** The record of a task was removed from the history. */
  z.object({ type: z.literal('pruned'), ...base, taskId: id }),
  /** The host will check what this owner is owed at `dueAt`, in ms since the epoch. */
  z.object({ type: z.literal('wake-up'), ...base, owner: id, dueAt: z.number() }),
])

/**
 * One entry of a delivery log.
 * @useDeclaredType
 */
export type DeliveryLogEntry = z.output<typeof deliveryLogEntrySchema>

/**
 * Parses a delivery log.
 * @param log the text of a file with one JSON entry per line (empty lines are skipped), or parsed entries
 * @returns the entries, in order
 * @throws INVALID_INPUT for an invalid entry, with the line, the field, the received value and what was expected
 * @example
 * const log = parseDeliveryLog(await readFile('deliveries.jsonl', 'utf8'))
 */
export function parseDeliveryLog(log: string | Iterable<unknown>): DeliveryLogEntry[] {
  if (typeof log !== 'string') {
    return Array.from(log, (entry, index) => parseInput(deliveryLogEntrySchema, entry, `log[${index}]`))
  }
  return log.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return []
    const name = `line ${index + 1}`
    return [parseInput(deliveryLogEntrySchema, parseJson(line, name), name)]
  })
}

function parseJson(line: string, name: string): unknown {
  try {
    return JSON.parse(line) as unknown
  } catch {
    throw new InvalidInputError(name, line, 'an entry as JSON')
  }
}
