/**
 * The log of deliveries: what became of each task's result, one entry a line of JSON. A recorder writes it for this package's
 * manager; a host that has its own book-keeping writes the same entries by hand.
 */
import { z } from 'zod'
import { InvalidInputError } from '../errors.js'
import { parseInput } from '../protocol/parse.js'

const id = z.string().min(1)
const ids = z.array(id).readonly()
const base = {
  /** Milliseconds since the epoch. */
  at: z.number(),
}

/** The schema of one entry; fields that it does not know are ignored. */
export const deliveryLogEntrySchema = z.discriminatedUnion('type', [
  /** A task began. */
  z.object({ type: z.literal('registered'), ...base, taskId: id, owner: id }),
  /** A task ended. `owes`: whether its owner has to be told of it. */
  z.object({
    type: z.literal('settled'),
    ...base,
    taskId: id,
    status: z.enum(['completed', 'failed', 'cancelled']),
    owes: z.boolean(),
  }),
  /** A message that carries these results is on its way: no other one may carry them. */
  z.object({ type: z.literal('leased'), ...base, deliveryId: id, taskIds: ids }),
  /** A turn of the agent was started with this message. */
  z.object({ type: z.literal('woken'), ...base, owner: id, deliveryId: id, taskIds: ids }),
  /** The agent accepted a message that carried these results: the host says so. */
  z.object({ type: z.literal('told'), ...base, deliveryId: id.optional(), taskIds: ids }),
  /** The ledger has noted that the results were told. */
  z.object({ type: z.literal('acknowledged'), ...base, deliveryId: id.optional(), taskIds: ids }),
  /** The message was not accepted: its results are owed again. */
  z.object({ type: z.literal('returned'), ...base, deliveryId: id, taskIds: ids }),
  /** The result is owed to another owner from now on. */
  z.object({ type: z.literal('moved'), ...base, taskId: id, owner: id }),
  /** The owner went away without an heir: nothing is owed for these any more. */
  z.object({ type: z.literal('dropped'), ...base, taskIds: ids }),
  /** The record of a task was forgotten. */
  z.object({ type: z.literal('pruned'), ...base, taskId: id }),
  /** Something will look at what is owed to this owner by then, in ms since the epoch. */
  z.object({ type: z.literal('wake-up'), ...base, owner: id, dueAt: z.number() }),
])

/**
 * One entry of a log of deliveries.
 * @useDeclaredType
 */
export type DeliveryLogEntry = z.output<typeof deliveryLogEntrySchema>

/**
 * Reads a log: the text of a file with one JSON entry a line (empty lines are skipped), or entries that are read already.
 * @throws InvalidInputError that names the line, the field, what came and what was expected
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
