/** The schemas of the fields of a record, for records that were read from a journal or a store, and for what a run reports. */
import { z } from 'zod'
import { RECORD_FIELDS, RESTORED_FIELDS, type FieldValue, type RestoredField } from '../../machines/record-fields.js'
import type { CancelledTaskInfo, CompletedTaskInfo, FailedTaskInfo } from '../../machines/records.js'
import { STATUSES, type AsyncTaskStatus } from '../../machines/task-status.js'
import { cutText } from '../data/cut-text.js'
import { MAX_AFTER, milliseconds, name, ownerName, sessionSchema } from './async-tasks.js'
import { budgetSchema, spentSchema } from './budget.js'
import { jsonObject } from './json-object.js'
import { lazily } from './lazily.js'

/** The maximum length of a progress message that is kept, in UTF-16 units. */
const MAX_PROGRESS_CHARS = 4096

const progress = lazily(() =>
  z
    .object({
      progress: z.number(),
      total: z.number().optional(),
      message: z
        .string()
        .transform((message) => cutText(message, MAX_PROGRESS_CHARS))
        .optional(),
    })
    .readonly(),
)

/** The registry gives later changes greater numbers. They must stay exact integers, so a restored number may not be too large. */
const MAX_RESTORED_SEQ = 2 ** 52

const attempt = lazily(() =>
  z.object({
    number: z.int().min(1),
    startedAt: z.number(),
    endedAt: z.number().optional(),
    error: z.string(),
  }),
)

const KINDS = {
  name,
  owner: ownerName,
  text: lazily(() => z.string()),
  time: lazily(() => z.number()),
  duration: milliseconds,
  seq: lazily(() => z.number().int().min(0).max(MAX_RESTORED_SEQ)),
  integer: lazily(() => z.number().int()),
  count: lazily(() => z.number().int().min(1)),
  flag: lazily(() => z.boolean()),
  mark: lazily(() => z.literal(true)),
  status: lazily(() => z.enum(STATUSES)),
  delivery: lazily(() => z.enum(['none', 'owed', 'leased', 'delivered'])),
  command: lazily(() => z.literal('command')),
  names: lazily(() => z.array(name()).readonly()),
  dependencies: lazily(() => z.array(name()).max(MAX_AFTER).readonly()),
  texts: lazily(() => z.array(z.string()).readonly()),
  output: jsonObject,
  progress,
  session: sessionSchema,
  attempts: lazily(() => z.array(attempt()).max(10).readonly()),
  budget: budgetSchema,
  spent: spentSchema,
} satisfies Readonly<Record<(typeof RECORD_FIELDS)[RestoredField]['kind'], () => z.ZodType>>

export const schemaOf = <F extends RestoredField>(field: F) =>
  KINDS[RECORD_FIELDS[field].kind]() as z.ZodType as z.ZodType<FieldValue<F>>

/** The fields without which a record cannot be restored. */
const REQUIRED = ['id', 'subagentName', 'goalPrompt', 'status', 'launchedAt'] as const satisfies RestoredField[]

type Optional<Task, F extends keyof Task> = { readonly [Field in keyof Pick<Task, F>]?: Task[Field] | undefined }

/**
 * A record for `AsyncTaskManager.restore`: one of `getAllTasks()`, also after it was converted to JSON and back.
 * @useDeclaredType
 */
export type RestorableRecord = Pick<FailedTaskInfo, Exclude<(typeof REQUIRED)[number], 'status'>> & {
  /** The status of the task. A queued or running task is restored as failed, because its process has ended. */
  readonly status: AsyncTaskStatus
} & Optional<FailedTaskInfo, Exclude<RestoredField, (typeof REQUIRED)[number] | 'output' | 'cancelReason'>> &
  Optional<CompletedTaskInfo, 'output'> &
  Optional<CancelledTaskInfo, 'cancelReason'>

/** A task record that was read from a journal. Other fields are removed. */
export const restorableRecordSchema = lazily(() => {
  const fields = RESTORED_FIELDS.map((field) => [field, schemaOf(field).optional()])
  const required = REQUIRED.map((field) => [field, schemaOf(field)])
  const shape = Object.fromEntries([...fields, ...required]) as Record<RestoredField, z.ZodType>
  return z.object({ ...shape, owner: ownerName().default('main') }) as unknown as z.ZodType<
    RestorableRecord & { readonly owner: string },
    RestorableRecord
  >
})
