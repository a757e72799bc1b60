/** Finds tasks by what a model or a person writes: an id, or the start of one (seed 002). */
import type { AsyncTaskInfo } from '../../machines/records.js'
import type { AsyncTaskManager } from './manager.js'
import { shortIds } from './short-ids.js'

/** What an id or a prefix stands for. */
export type TaskLookup =
  | { readonly type: 'found'; readonly task: AsyncTaskInfo }
  | { readonly type: 'ambiguous'; readonly candidates: readonly AsyncTaskInfo[] }
  | { readonly type: 'unknown' }

/** The task that `idOrPrefix` stands for, among one owner's tasks or all. An exact id beats a longer one. */
export function lookUpTask(manager: AsyncTaskManager, idOrPrefix: string, owner?: string): TaskLookup {
  const isVisible = (task: AsyncTaskInfo): boolean => owner === undefined || task.owner === owner
  const exact = manager.getTask(idOrPrefix)
  if (exact !== undefined && isVisible(exact)) return { type: 'found', task: exact }
  if (idOrPrefix === '') return { type: 'unknown' }
  const candidates = visibleTasks(manager, owner).filter((task) => task.id.startsWith(idOrPrefix))
  const [task] = candidates
  if (task === undefined) return { type: 'unknown' }
  return candidates.length === 1 ? { type: 'found', task } : { type: 'ambiguous', candidates }
}

/** One owner's retained tasks, or everyone's, in the order of registration. */
export function visibleTasks(manager: AsyncTaskManager, owner?: string): AsyncTaskInfo[] {
  const all = manager.getAllTasks()
  return owner === undefined ? all : all.filter((task) => task.owner === owner)
}

/** The short id of every retained task, whoever owns it: what a list shows can always be written back. */
export function shortTaskIds(manager: AsyncTaskManager): (task: AsyncTaskInfo) => string {
  const short = shortIds(manager.getAllTasks().map((task) => task.id))
  return ({ id }) => short.get(id) ?? id
}
