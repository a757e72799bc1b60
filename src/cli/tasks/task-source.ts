/** Where the commands of `agent-tasks tasks` find tasks: a server, a page, or a store. */
import { lookUpPrefix, meantOf } from '../../async-tasks/task-lookup.js'
import { TaskServerError } from '../../client/client-errors.js'
import type { TaskQuestion } from '../../../machines/records.js'
import type { AsyncTaskStatus } from '../../../machines/task-status.js'
import type { ListedTask, TaskRef, TaskState } from './listed-task.js'

/** Which tasks are wanted. */
export interface TaskFilter {
  readonly status?: AsyncTaskStatus | TaskState
  readonly kind?: ListedTask['kind']
  readonly owner?: string
  readonly subagent?: string
  readonly instance?: string
}

/** A task with everything that its source knows of it. */
export interface ShownTask extends ListedTask {
  /** The output of an async task. */
  readonly result?: unknown
  /** Of a command task. */
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
  /** A page does not name it. */
  readonly errorCode?: string
}

export interface TaskSource {
  /** What messages call it, such as `The server`. */
  readonly name: string
  /** At most `limit` tasks, newest first. @throws InvalidInputError for a filter that it cannot apply */
  list(limit: number, filter?: TaskFilter): Promise<readonly ListedTask[]>
  /** @throws TaskServerError when there is no such task, or several */
  find(idOrPrefix: string, canBeMeant?: (task: ListedTask) => boolean): Promise<TaskRef>
  show(task: TaskRef): Promise<ShownTask>
  /** Resolves with false when it had ended. @throws InvalidInputError when tasks cannot be cancelled here */
  cancel(task: TaskRef, reason: string | undefined): Promise<boolean>
  /** The tasks, and from then on those that have changed. @throws the reason of the signal, ConnectionError */
  changes(options: ChangesOptions): AsyncIterable<readonly ListedTask[]>
}

export interface ChangesOptions {
  /** The most tasks that are compared, where tasks are listed again and again. */
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
 * The task of an id, or of a unique prefix of one.
 * @param canBeMeant if several tasks match, only those for which this is true are candidates, or all of them if it is true for no task
 * @throws TaskServerError when there is no such task, or several
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

/** The tasks of a list that were not in the one before, or differ from it. */
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
