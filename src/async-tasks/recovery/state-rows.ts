/** Restores the rows that features stored in an earlier process. */
import type { z } from 'zod'
import { AgentTasksError } from '../../errors.js'
import { describeIssue } from '../../protocol/parse.js'
import type { StoredJson } from '../../store/store.js'
import { preview } from '../../text/preview.js'
import type { TaskRegistry } from '../registry.js'

/**
 * Passes each row to `take`. A row that does not match the schema, or for which `take` throws, is reported and dropped. The schema sees the row's id
 * as a field.
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
