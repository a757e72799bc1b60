/**
 * One row for each field of a task record. What treats all fields alike follows from these rows: what a run notes, what ends with a run, what is stored
 * and restored, what workers send, and what messages and the page show.
 */
import type { AsyncTaskInfo, RunningTaskInfo } from './records.js'

type FieldOf<Task> = Task extends unknown ? keyof Task : never

/** The names of all fields that a record can have in any status. */
export type RecordField = FieldOf<AsyncTaskInfo>

/** The type of a field, in all statuses in which it can be set. */
export type FieldValue<F extends RecordField, Task = AsyncTaskInfo> = Task extends unknown
  ? F extends keyof Task
    ? Exclude<Task[F], undefined>
    : never
  : never

interface FieldRow {
  /** What its values are. `src/protocol/record-fields.ts` has a schema for each kind. */
  readonly kind: string
  /** Who sets it. `note`: it changes while the task runs, and no other field depends on it (`task.note`). */
  readonly by: 'launch' | 'registry' | 'note' | 'end' | 'delivery'
  /**
   * How long a store keeps it: `always`, also in the history; while the task is `unpruned`, so not in the history; while it is `active`; or `never`.
   * The first two are restored.
   */
  readonly stored: 'always' | 'unpruned' | 'active' | 'never'
  /** Whether it belongs to the current run, so that the next run begins without it. */
  readonly isOfRun?: true
  /** Whether a task that continues or repeats this one takes it over. */
  readonly isTerm?: true
  /** The method of a run's context that sets it. A worker sends the calls of this method to the host. */
  readonly method?: string
  /** The name under which the page shows the value unchanged. */
  readonly label?: string
  /** The name under which the message with the result has the value unchanged, near its end. `check_async_tasks` shows it under the name of the field. */
  readonly shownAs?: string
}

export const RECORD_FIELDS = {
  id: { kind: 'name', by: 'launch', stored: 'always' },
  subagentName: { kind: 'name', by: 'launch', stored: 'always' },
  goalPrompt: { kind: 'text', by: 'launch', stored: 'always' },
  owner: { kind: 'owner', by: 'launch', stored: 'always' },
  status: { kind: 'status', by: 'registry', stored: 'always' },
  launchedAt: { kind: 'time', by: 'launch', stored: 'always' },
  seq: { kind: 'seq', by: 'registry', stored: 'always' },
  delivery: { kind: 'delivery', by: 'registry', stored: 'always' },
  completedAt: { kind: 'time', by: 'end', stored: 'always' },
  notifiedAt: { kind: 'time', by: 'delivery', stored: 'always' },
  isRepeat: { kind: 'flag', by: 'delivery', stored: 'always' },
  startedAt: { kind: 'time', by: 'registry', stored: 'always', isOfRun: true },
  timeoutMs: { kind: 'duration', by: 'launch', stored: 'always', isTerm: true },
  parentId: { kind: 'name', by: 'launch', stored: 'always' },
  depth: { kind: 'count', by: 'launch', stored: 'always' },
  runningChildren: { kind: 'names', by: 'end', stored: 'always' },
  after: { kind: 'dependencies', by: 'launch', stored: 'always' },
  waitsFor: { kind: 'names', by: 'registry', stored: 'active' },
  concurrencyKey: { kind: 'name', by: 'launch', stored: 'always', isTerm: true },
  attempts: { kind: 'attempts', by: 'registry', stored: 'always' },
  budget: { kind: 'budget', by: 'launch', stored: 'always', isTerm: true },
  idleMs: { kind: 'duration', by: 'launch', stored: 'always', isTerm: true, label: 'Idle limit (ms)' },
  spent: { kind: 'spent', by: 'registry', stored: 'always' },
  attempt: { kind: 'count', by: 'registry', stored: 'always' },
  output: { kind: 'output', by: 'end', stored: 'always' },
  error: { kind: 'text', by: 'end', stored: 'always' },
  errorName: { kind: 'text', by: 'end', stored: 'always' },
  errorCode: { kind: 'text', by: 'end', stored: 'always' },
  cause: { kind: 'live', by: 'end', stored: 'never' },
  cancelReason: { kind: 'text', by: 'end', stored: 'always', label: 'Cancelled' },
  lateOutput: { kind: 'output', by: 'end', stored: 'always' },
  continues: { kind: 'name', by: 'launch', stored: 'always' },
  questions: { kind: 'questions', by: 'registry', stored: 'active', isOfRun: true },
  progress: { kind: 'progress', by: 'note', stored: 'always', isOfRun: true, method: 'report' },
  messagesSent: { kind: 'count', by: 'note', stored: 'always' },
  session: { kind: 'session', by: 'note', stored: 'always' },
  outputTail: { kind: 'text', by: 'end', stored: 'always', shownAs: 'output_tail' },
  outputFile: { kind: 'text', by: 'note', stored: 'unpruned', label: 'Output file', shownAs: 'output_file' },
  isNote: { kind: 'mark', by: 'launch', stored: 'always' },
  isForeground: { kind: 'mark', by: 'launch', stored: 'never' },
  kind: { kind: 'command', by: 'launch', stored: 'always' },
  command: { kind: 'texts', by: 'launch', stored: 'always' },
  pid: { kind: 'integer', by: 'note', stored: 'always' },
  exitCode: { kind: 'integer', by: 'note', stored: 'always' },
  signal: { kind: 'text', by: 'note', stored: 'always' },
  endedProcesses: { kind: 'count', by: 'note', stored: 'always' },
  abortController: { kind: 'live', by: 'launch', stored: 'never' },
} as const satisfies Readonly<Record<RecordField, FieldRow>>

type Rows = typeof RECORD_FIELDS

type FieldsWith<Part> = { [F in RecordField]: Rows[F] extends Part ? F : never }[RecordField]

const FIELDS = Object.keys(RECORD_FIELDS) as RecordField[]

const fieldsWith = <const Column extends keyof FieldRow, const Value extends FieldRow[Column]>(
  column: Column,
  ...values: readonly Value[]
): FieldsWith<Record<Column, Value>>[] =>
  FIELDS.filter((field) => values.includes((RECORD_FIELDS[field] as FieldRow)[column] as Value)) as never

/** Fields that change while the task runs. No other field depends on them. */
export const NOTED_FIELDS = fieldsWith('by', 'note')
export type NotedFields = Pick<RunningTaskInfo, (typeof NOTED_FIELDS)[number]>

/** The terms of a launch. */
export const TERM_FIELDS = fieldsWith('isTerm', true)
export type LaunchTerms = { readonly [F in (typeof TERM_FIELDS)[number]]?: FieldValue<F> | undefined }

export const RUN_FIELDS = new Set(fieldsWith('isOfRun', true))

export const UNSTORED_FIELDS = new Set(fieldsWith('stored', 'never'))

/** The fields that the history does not have. */
export const UNPRUNED_FIELDS = new Set(fieldsWith('stored', 'unpruned'))

/** The fields that are restored when the task has ended. */
export const RESTORED_FIELDS = fieldsWith('stored', 'always', 'unpruned')
export type RestoredField = (typeof RESTORED_FIELDS)[number]

/** The fields that a method of a run's context sets. */
export type ReportedField = FieldsWith<{ method: string }>
export const REPORTED_FIELDS = FIELDS.filter((field): field is ReportedField => 'method' in RECORD_FIELDS[field])
export type ReportMethod = Rows[ReportedField]['method']

/** The fields that the page shows as they are. */
export type LabelledField = FieldsWith<{ label: string }>
export const LABELLED_FIELDS = FIELDS.filter((field): field is LabelledField => 'label' in RECORD_FIELDS[field])

/** The fields that messages and `check_async_tasks` show as they are. */
type ShownField = FieldsWith<{ shownAs: string }>
export const SHOWN_FIELDS = FIELDS.filter((field): field is ShownField => 'shownAs' in RECORD_FIELDS[field])
