/** The sources from which the commands of `agent-tasks tasks` read tasks: a server, a page or a store. */
import { lookUpPrefix, meantOf } from '../../features/task-ids/task-lookup.js'
import { TaskServerError } from '../../client/client-errors.js'
import type { TaskQuestion } from '../../../machines/records.js'
import type { AsyncTaskStatus } from '../../../machines/task-status.js'
import type { ListedTask, TaskRef, TaskState } from './listed-task.js'

export interface TaskFilter {
  readonly status?: AsyncTaskStatus | TaskState
  readonly kind?: ListedTask['kind']
  readonly owner?: string
  readonly subagent?: string
  readonly instance?: string
}

export interface ShownTask extends ListedTask {
  /** The output of an async task. */
  readonly result?: unknown
  /** The commands of a command task. */
  readonly commands?: readonly ShownCommand[]
  /** The open questions of an async task. */
  readonly questions?: readonly TaskQuestion[]
}

export interface ShownCommand {
  readonly tool_name: string
  readonly status: string
  readonly args?: unknown
  readonly result?: unknown
  readonly error?: string
  /** The code of the error. A page does not send it. */
  readonly errorCode?: string
}

export interface TaskSource {
  /** What messages call the source, such as `The server`. */
  readonly name: string
  /**
   * Lists at most `limit` tasks, the newest first.
   * @throws INVALID_INPUT for a filter that this source cannot apply
   */
  list(limit: number, filter?: TaskFilter): Promise<readonly ListedTask[]>
  /**
   * Finds a task by its id or a unique prefix.
   * @throws AgentTasksError when no task matches, or several
   */
  find(idOrPrefix: string, canBeMeant?: (task: ListedTask) => boolean): Promise<TaskRef>
  show(task: TaskRef): Promise<ShownTask>
  /**
   * Cancels a task. Resolves with false if the task had already ended, and with how long its program may take to end, in ms, if it is being stopped.
   * @throws INVALID_INPUT if this source cannot cancel tasks
   */
  cancel(task: TaskRef, reason: string | undefined): Promise<boolean | { readonly stopsWithinMs: number }>
  /**
   * Changes the deadline of a task (`seconds`, null for none), or asks it to conclude. Undefined if this source cannot.
   * @throws AgentTasksError with the reason, if the task cannot be changed
   */
  readonly act?: (task: TaskRef, action: 'conclude' | 'deadline', body: object) => Promise<void>
  /**
   * Yields all tasks first, and then the tasks that have changed.
   * @throws the reason of the signal when it aborts
   * @throws AgentTasksError when the connection is lost
   */
  changes(options: ChangesOptions): AsyncIterable<readonly ListedTask[]>
}

export interface ChangesOptions {
  /** The maximum number of tasks that are compared, for a source that finds changes by listing the tasks again. */
  readonly limit: number
  readonly intervalMs: number
  readonly signal: AbortSignal
}

export const matches = (task: ListedTask, { status, kind, owner, subagent, instance }: TaskFilter): boolean =>
  (status === undefined || task.status === status || task.state === status) &&
  (kind === undefined || task.kind === kind) &&
  (owner === undefined || task.owner === owner) &&
  (subagent === undefined || task.subagent === subagent) &&
  (instance === undefined || task.instanceId === instance)

/**
 * Finds the task with an id or a unique prefix in a list.
 * @param canBeMeant if several tasks match the prefix, only those for which this returns true count; if it returns true for none, all count
 * @throws AgentTasksError when no task matches, or several
 */
export function pickTask(
  tasks: readonly ListedTask[],
  idOrPrefix: string,
  canBeMeant?: (task: ListedTask) => boolean,
): ListedTask {
  const exact = tasks.filter(({ task_id }) => task_id === idOrPrefix)
  const named = tasks.map((task) => ({ id: task.task_id, task }))
  const found = exact.length > 0 ? exact : lookUpPrefix(named, idOrPrefix).map(({ task }) => task)
  const candidates = meantOf(found, canBeMeant)
  const [task] = candidates
  if (task === undefined) throw new TaskServerError('TASK_NOT_FOUND', `There is no task ${idOrPrefix}.`)
  if (candidates.length === 1) return task
  const some = candidates.slice(0, 5).map(({ task_id, status }) => `${task_id} (${status})`)
  throw new TaskServerError('TASK_AMBIGUOUS', `${idOrPrefix} could be ${some.join(', ')}. Write more of the id.`)
}

/** Returns a function that compares each list with the previous list. It returns the tasks that are new or different. */
export function createComparison(): (tasks: readonly ListedTask[]) => readonly ListedTask[] {
  let known = new Map<string, string>()
  return (tasks) => {
    const present = new Map(tasks.map((task) => [`${task.kind}:${task.task_id}`, JSON.stringify(task)]))
    const changed = tasks.filter(({ kind, task_id }) => {
      const key = `${kind}:${task_id}`
      return known.get(key) !== present.get(key)
    })
    known = present
    return changed
  }
}
