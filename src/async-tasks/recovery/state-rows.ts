/** Restores the rows that features have stored in an earlier process. */
import type { z } from 'zod'
import { AgentTasksError } from '../../errors.js'
import { describeIssue } from '../../protocol/parse.js'
import type { StoredJson } from '../../store/store.js'
import { preview } from '../../data/preview.js'
import type { TaskRegistry } from '../registry.js'

/**
 * Passes each row to `take`. The row's id is a field of what the schema validates. If a row does not match the schema, or `take` throws, the row is
 * reported and dropped.
 */
export function takeRows<Row>(
  { report, persistence }: TaskRegistry,
  { feature, schema, rows }: { feature: string; schema: z.ZodType<Row>; rows: ReadonlyMap<string, StoredJson> },
  take: (row: Row, id: string) => void,
): void {
  for (const [id, row] of rows) {
    try {
      const { data, error } = schema.safeParse({ ...row, id })
      if (error !== undefined) throw damage(`${feature}/${id}`, describeIssue(error, row, 'row'))
      take(data, id)
    } catch (error) {
      report(error, { source: 'store' })
      persistence?.dropState(feature, id)
    }
  }
}

const damage = (
  name: string,
  { field, received, expected }: { field: string; received: unknown; expected: string },
): AgentTasksError => {
  const why = `${field}: got ${preview(received)}, expected ${expected}`
  return new AgentTasksError('STORE_DAMAGED', `The stored row ${preview(name)} is dropped: ${why}.`)
}
