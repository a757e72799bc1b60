/** Validates all rows of a store before anything else happens. So if a row is invalid, no program has been ended and no row has been written. */
import { z } from 'zod'
import { preview } from '../../data/preview.js'
import { restorableRecordSchema } from '../../protocol/record-fields.js'
import { lazily } from '../../protocol/lazily.js'
import { describeIssue } from '../../protocol/parse.js'
import type { ContentsOf } from '../../store/shared-opening.js'
import { StoreError } from '../../store/store-errors.js'

const taskSchema = lazily(() =>
  z.object({
    id: z.string(),
    owner: z.string(),
    attempt: z.number(),
    seq: z.number(),
    launchedAt: z.number(),
    deadlineAt: z.number().optional(),
    record: restorableRecordSchema(),
    run: z.record(z.string(), z.unknown()).optional(),
  }),
)

const deliverySchema = lazily(() =>
  z.object({
    id: z.string(),
    owner: z.string(),
    at: z.number(),
    taskIds: z.array(z.string()),
    questions: z.array(z.object({ taskId: z.string(), questionId: z.string() })).optional(),
  }),
)

const stateSchema = lazily(() =>
  z.object({ id: z.string(), feature: z.string(), data: z.record(z.string(), z.unknown()) }),
)

/**
 * @param name the name of the store for error messages
 * @throws StoreError `STORE_DAMAGED` for a row that no manager can have written
 */
export function checkRows({ tasks, deliveries, featureStates }: ContentsOf<'async tasks'>, name: string): void {
  for (const row of tasks) {
    check(taskSchema(), row, `${name}: the row ${preview(row.id)} of table tasks`)
    if (row.record['id'] === row.id) continue
    throw new StoreError(
      'STORE_DAMAGED',
      `${name}: the row ${preview(row.id)} of table tasks is invalid: row.record.id: got ${preview(row.record['id'])}, expected the id of the row.`,
    )
  }
  for (const row of deliveries) check(deliverySchema(), row, `${name}: the row ${preview(row.id)} of table deliveries`)
  for (const row of featureStates) {
    check(stateSchema(), row, `${name}: the row ${preview(row.id)} of table featureStates`)
  }
}

function check(schema: z.ZodType, row: unknown, what: string): void {
  const { error } = schema.safeParse(row)
  if (error === undefined) return
  const { field, received, expected } = describeIssue(error, row, 'row')
  throw new StoreError('STORE_DAMAGED', `${what} is invalid: ${field}: got ${preview(received)}, expected ${expected}.`)
}
