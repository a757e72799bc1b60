/** Converts command tasks to rows of a store, and back. */
import { z } from 'zod'
import { omitUndefined } from '../data/omit-undefined.js'
import { preview } from '../data/preview.js'
import { taskCommandSchema, taskSchema, type Task, type TaskCommand } from '../protocol/command-tasks.js'
import { describeIssue } from '../protocol/parse.js'
import { jsonBytes } from '../data/json-size.js'
import { toPlainData } from '../data/plain-data.js'
import { StoreError } from '../store/store-errors.js'
import type { StoredCommand, StoredCommandTask, StoreTable } from '../store/store.js'
import { resultBytes } from './task-bytes.js'
import type { CommandTask, SubmitRequest, SubmittedTask } from './command-task.js'

export interface RestoredTask {
  readonly task: Task
  readonly submitted: SubmittedTask
  readonly place: number
  readonly request: SubmitRequest | undefined
}

/**
 * The status of a row that replaces the last submitted task after its deletion. The row only keeps the number of this task in the order of
 * submission.
 */
export const FORGOTTEN = 'forgotten'

/** The row of a task, without the outcomes of its commands. */
export function taskRow({ record, submitted, place, request }: CommandTask): StoredCommandTask {
  const { id, instanceId, status, createdAt, completedAt } = record
  return {
    id,
    instanceId,
    status,
    seq: place,
    createdAt,
    ...omitUndefined({ completedAt }),
    record: { ...record, commands: submitted.commands },
    ...(request && { submission: { ...request } }),
  }
}

/** The row that replaces the last submitted task after its deletion. */
export function forgottenRow({ id, place, submitted }: CommandTask): StoredCommandTask {
  return { id, instanceId: '', status: FORGOTTEN, seq: place, createdAt: submitted.createdAt, record: {} }
}

export function commandRow({ id: taskId, commands }: CommandTask, index: number): StoredCommand {
  const { status, startedAt, completedAt, result, error } = commands[index] ?? {}
  return { id: commandRowId(taskId, index), taskId, index, outcome: { status, startedAt, completedAt, result, error } }
}

export const commandRowId = (taskId: string, index: number): string => `${taskId}/${index}`

/**
 * Restores tasks from their rows and the rows of their commands.
 * @param store the name of the store in error messages
 * @throws StoreError with the code `STORE_DAMAGED` for a row that is not a valid command task
 */
export function restoreTasks(
  rows: readonly StoredCommandTask[],
  commandRows: readonly StoredCommand[],
  store: string,
): readonly RestoredTask[] {
  const outcomes = new Map<string, StoredCommand[]>()
  for (const row of commandRows) {
    const known = outcomes.get(row.taskId)
    if (known === undefined) outcomes.set(row.taskId, [row])
    else known.push(row)
  }
  return rows.map((row) => restoreTask(row, outcomes.get(row.id) ?? [], store))
}

function restoreTask(
  { id, record, seq, submission }: StoredCommandTask,
  outcomes: readonly StoredCommand[],
  store: string,
): RestoredTask {
  const {
    name,
    intention,
    createdAt,
    metadata,
    commands: pending,
    ...rest
  } = parseStored(taskSchema, record, { store, table: 'commandTasks', id })
  const submitted = {
    id,
    name,
    intention,
    createdAt,
    commands: pending.map((command) =>
      Object.freeze({ ...command, args: toPlainData(command.args) as typeof command.args }),
    ),
    ...(metadata !== undefined && { metadata: toPlainData(metadata) as typeof metadata }),
  }
  const hasEnded = rest.completedAt !== undefined
  const commands: TaskCommand[] = hasEnded
    ? submitted.commands.map((command) => Object.freeze({ ...command, status: 'skipped' as const }))
    : [...submitted.commands]
  for (const { id: row, index, outcome } of outcomes) {
    const command = submitted.commands[index]
    const ended = toPlainData(parseStored(outcomeSchema, outcome, { store, table: 'commands', id: row })) as z.infer<
      typeof outcomeSchema
    >
    if (command !== undefined) commands[index] = Object.freeze({ ...command, ...ended })
  }
  const task = { ...submitted, ...rest, commands } as Task
  return {
    task,
    submitted,
    place: seq,
    // The database returns null for a task without a request. The row then has no field `submission`.
    request:
      submission === undefined
        ? undefined
        : parseStored(requestSchema, submission, { store, table: 'commandTasks', id }),
  }
}

/** The size of a restored task with its results, in bytes of JSON. */
export function heldBytes(submitted: SubmittedTask, { commands }: Task): number {
  return commands.reduce((bytes, { result }) => bytes + resultBytes(result), jsonBytes(submitted))
}

/** Whether two submissions are equal. The instance is not compared. */
export const isSameSubmission = (a: Submission, b: Submission): boolean => textOf(a) === textOf(b)

type Submission = Pick<SubmittedTask, 'name' | 'intention' | 'commands' | 'metadata'>

const textOf = ({ name, intention, commands, metadata }: Submission): string =>
  JSON.stringify([
    ...[name, intention, metadata],
    ...commands.map(({ tool_name, intention: why, args, timeout }) => [tool_name, why, args, timeout]),
  ])

const outcomeSchema = taskCommandSchema.pick({
  status: true,
  startedAt: true,
  completedAt: true,
  result: true,
  error: true,
})

const requestSchema: z.ZodType<SubmitRequest> = z.object({
  key: z.string(),
  instanceId: z.string().optional(),
  queuePosition: z.number(),
})

function parseStored<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  { store, table, id }: { readonly store: string; readonly table: StoreTable; readonly id: string },
): z.output<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const { field, received, expected } = describeIssue(parsed.error, value, 'row')
  throw new StoreError(
    'STORE_DAMAGED',
    `${store}: the row ${preview(id)} of table ${table} is invalid: ${field}: got ${preview(received)}, expected ${expected}.`,
  )
}
