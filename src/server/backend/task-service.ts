/** The operations on tasks that the REST interface and the client socket share. Both return the same errors and lists. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { TaskManager } from '../../command-tasks/task-manager.js'
import { NOT_STORED } from '../../command-tasks/submission.js'
import { summaryOf } from '../../command-tasks/task-record.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { DEFAULT_LIST_LIMIT, type RefusalCode } from '../../protocol/client-messages.js'
import type { Task, TaskStatus, TaskSubmitMessage, TaskSummary } from '../../protocol/command-tasks.js'
import type { EventLog } from './event-log.js'
import { eventsToResume, type FollowedTask } from './followed-task.js'
import type { Eventually } from './eventually.js'

export interface TaskQuery {
  readonly instanceId?: string | undefined
  readonly status?: TaskStatus | 'all' | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

export type Submitted =
  { readonly taskId: string; readonly queuePosition: number } | { readonly error: string; readonly code: RefusalCode }

/** The answer to a submission. While the task is being stored, `accepted` is a promise that says whether it was accepted. */
export type PendingSubmission = Submitted & { readonly accepted?: Promise<boolean> | undefined }

/** Resolves to the answer when the task was stored or refused. */
export function whenAccepted({ accepted, ...submitted }: PendingSubmission): Eventually<Submitted> {
  return accepted === undefined ? submitted : accepted.then((isAccepted) => (isAccepted ? submitted : NOT_STORED))
}

export type Cancelled =
  | { readonly success: true }
  | { readonly success: false; readonly error: string; readonly code: 'TASK_NOT_FOUND' | 'TASK_ENDED' | 'NOT_STORED' }

export type Listed =
  | { readonly tasks: TaskSummary[]; readonly nextCursor?: string }
  | { readonly error: string; readonly code: 'INVALID_CURSOR' }

/** The error for an unknown task. REST and the client socket send the same text. */
export const TASK_NOT_FOUND = 'Task not found'

export interface TaskService {
  submit(message: TaskSubmitMessage, idempotencyKey?: string): Eventually<PendingSubmission>
  /**
   * Lists tasks, the newest first. The next page continues after the last task of the previous page, even if tasks were submitted or removed meanwhile.
   */
  list(query: TaskQuery): Eventually<Listed>
  get(taskId: string): Eventually<Task | undefined>
  cancel(taskId: string): Eventually<Cancelled>
  /**
   * Returns a task, and the events that a client has missed.
   * @param lastEventId the id of the last event that the client has received
   */
  follow(taskId: string, lastEventId?: string): Eventually<FollowedTask | undefined>
}

/** The task service of one process. Its methods return values, not promises, except for `cancel`, which first stores the cancellation. */
export type LocalTaskService = Pick<TaskService, 'cancel'> & {
  [K in Exclude<keyof TaskService, 'cancel'>]: (
    ...args: Parameters<TaskService[K]>
  ) => Exclude<ReturnType<TaskService[K]>, Promise<unknown>>
}

export interface TaskServiceOptions {
  readonly tasks: TaskManager
  readonly events: EventLog
  readonly isEnabled: boolean
  readonly isDraining: () => boolean
}

/** Returns why a server accepts no tasks; undefined if it accepts tasks. */
export function refusalOf({
  isEnabled,
  isDraining,
}: Pick<TaskServiceOptions, 'isEnabled' | 'isDraining'>): Extract<Submitted, { error: string }> | undefined {
  if (!isEnabled) return { error: 'This server accepts no tasks: TASKS_ENABLED is false', code: 'TASKS_DISABLED' }
  return isDraining() ? { error: 'The server is shutting down', code: 'SHUTTING_DOWN' } : undefined
}

export function createTaskService({ tasks, events, ...state }: TaskServiceOptions): LocalTaskService {
  const cursors = createCursors()
  const placeOf = (taskId: string): number => tasks.placeOf(taskId) ?? 0
  return {
    submit: (message, idempotencyKey) => {
      const refused = refusalOf(state)
      if (refused !== undefined) return refused
      const submitted = tasks.submitTask(message, omitUndefined({ idempotencyKey }))
      return 'error' in submitted
        ? submitted
        : { ...submitted, ...omitUndefined({ accepted: tasks.accepted(submitted.taskId) }) }
    },
    list: ({ instanceId, status, limit = DEFAULT_LIST_LIMIT, cursor }) => {
      const before = cursor === undefined ? Infinity : cursors.read(cursor)
      if (before === undefined) return INVALID_CURSOR
      const found = tasks.listTasks(instanceId, status)
      const rest = found.filter(({ id }) => placeOf(id) < before)
      const page = rest.slice(0, limit)
      const last = page.at(-1)
      return {
        tasks: page.map(summaryOf),
        ...(last !== undefined && rest.length > page.length && { nextCursor: cursors.write(placeOf(last.id)) }),
      }
    },
    get: (taskId) => tasks.getTask(taskId),
    follow: (taskId, lastEventId) => {
      const task = tasks.getTask(taskId)
      if (task === undefined) return undefined
      const missed = eventsToResume(events, task, lastEventId)
      return { task, missed, seq: events.lastSeq(taskId), idOf: (seq) => events.idOf(seq) }
    },
    cancel: (taskId) => {
      const task = tasks.getTask(taskId)
      if (task === undefined) return { success: false, error: TASK_NOT_FOUND, code: 'TASK_NOT_FOUND' }
      if (!tasks.cancelTask(taskId)) return { success: false, error: `Task already ${task.status}`, code: 'TASK_ENDED' }
      if (tasks.persistence === undefined) return { success: true }
      return tasks.stored().then(
        (): Cancelled => ({ success: true }),
        () => CANCEL_NOT_STORED,
      )
    },
  }
}

export const INVALID_CURSOR: Listed = {
  error: 'cursor: expected a nextCursor that this server has returned.',
  code: 'INVALID_CURSOR',
}

const CANCEL_NOT_STORED: Cancelled = {
  success: false,
  error:
    'The task was cancelled, but the cancellation is not stored yet. If the server ends now, the task may run again.',
  code: 'NOT_STORED',
}

const SEAL_BYTES = 9

/**
 * Makes and reads the cursors of lists. A cursor contains a position in the order of submission, so it stays valid when a task is removed. It is signed
 * with a key of this process or of the cluster, because the next process counts the positions from the start.
 */
export function createCursors(key: Buffer = randomBytes(32)) {
  const seal = (place: Buffer): Buffer => createHmac('sha256', key).update(place).digest().subarray(0, SEAL_BYTES)
  return {
    write: (place: number): string => {
      const bytes = Buffer.alloc(6)
      bytes.writeUIntBE(place, 0, 6)
      return Buffer.concat([seal(bytes), bytes]).toString('base64url')
    },
    /** Returns the position of a cursor; undefined if another process made the cursor, or if it was forged. */
    read: (cursor: string): number | undefined => {
      const bytes = Buffer.from(cursor, 'base64url')
      if (bytes.length !== SEAL_BYTES + 6) return undefined
      const place = bytes.subarray(SEAL_BYTES)
      return timingSafeEqual(seal(place), bytes.subarray(0, SEAL_BYTES)) ? place.readUIntBE(0, 6) : undefined
    },
  }
}
