/** What REST and the client socket both do with tasks: the same refusals, the same lists. */
import type { TaskManager } from '../command-tasks/task-manager.js'
import { summaryOf } from '../command-tasks/task-record.js'
import { DEFAULT_LIST_LIMIT, type RefusalCode } from '../protocol/client-messages.js'
import type { Task, TaskStatus, TaskSubmitMessage, TaskSummary } from '../protocol/command-tasks.js'
import { createCursors } from './cursors.js'

export interface TaskQuery {
  readonly instanceId?: string | undefined
  readonly status?: TaskStatus | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

export type Submitted =
  { readonly taskId: string; readonly queuePosition: number } | { readonly error: string; readonly code: RefusalCode }

export type Cancelled =
  | { readonly success: true }
  | { readonly success: false; readonly error: string; readonly code: 'TASK_NOT_FOUND' | 'TASK_ENDED' }

export type Listed =
  | { readonly tasks: TaskSummary[]; readonly nextCursor?: string }
  | { readonly error: string; readonly code: 'INVALID_CURSOR' }

/** The text of seed 004. */
export const TASK_NOT_FOUND = 'Task not found'

export interface TaskService {
  submit(message: TaskSubmitMessage): Submitted
  /** Newest first. A page goes on where the one before ended, whatever was submitted or forgotten since. */
  list(query: TaskQuery): Listed
  get(taskId: string): Task | undefined
  cancel(taskId: string): Cancelled
}

export interface TaskServiceOptions {
  readonly tasks: TaskManager
  readonly isEnabled: boolean
  readonly isDraining: () => boolean
}

export function createTaskService({ tasks, isEnabled, isDraining }: TaskServiceOptions): TaskService {
  const cursors = createCursors()
  const placeOf = (taskId: string): number => tasks.placeOf(taskId) ?? 0
  return {
    submit: (message) => {
      if (!isEnabled) return { error: 'This server takes no tasks: TASKS_ENABLED is false', code: 'TASKS_DISABLED' }
      if (isDraining()) return { error: 'The server is shutting down', code: 'SHUTTING_DOWN' }
      return tasks.submitTask(message)
    },
    list: ({ instanceId, status, limit = DEFAULT_LIST_LIMIT, cursor }) => {
      const before = cursor === undefined ? Infinity : cursors.read(cursor)
      if (before === undefined) {
        return {
          error: 'cursor: expected a nextCursor that this server gave since it was started.',
          code: 'INVALID_CURSOR',
        }
      }
      const found = tasks.listTasks(instanceId, status).reverse()
      const rest = found.filter(({ id }) => placeOf(id) < before)
      const page = rest.slice(0, limit)
      const last = page.at(-1)
      return {
        tasks: page.map(summaryOf),
        ...(last !== undefined && rest.length > page.length && { nextCursor: cursors.write(placeOf(last.id)) }),
      }
    },
    get: (taskId) => tasks.getTask(taskId),
    cancel: (taskId) => {
      const task = tasks.getTask(taskId)
      if (task === undefined) return { success: false, error: TASK_NOT_FOUND, code: 'TASK_NOT_FOUND' }
      if (tasks.cancelTask(taskId)) return { success: true }
      return { success: false, error: `Task already ${task.status}`, code: 'TASK_ENDED' }
    },
  }
}
