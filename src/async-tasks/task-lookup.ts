/** Finds tasks by an id or a prefix, as models and people write them. */
import type { AsyncTaskInfo } from '../../machines/records.js'
import { isTerminal, isUndelivered } from '../../machines/task-entry.js'
import { toOneLine } from '../text/control-characters.js'
import { defined } from '../defined.js'
import { isSeenBy } from './families/families.js'
import { listedIds } from './listed-ids.js'
import { prunedTasks, type PrunedTask } from './recovery/pruned-tasks.js'
import type { TaskRegistry } from './registry.js'
import { shortIds } from './short-ids.js'
import { isoTime } from '../text/duration.js'

/** The part of a manager that a lookup uses. */
interface TaskSource {
  getTask(id: string): AsyncTaskInfo | undefined
  getAllTasks(): AsyncTaskInfo[]
  readonly registry: TaskRegistry
}

export type TaskLookup =
  | { readonly type: 'found'; readonly task: AsyncTaskInfo }
  | { readonly type: 'ambiguous'; readonly candidates: readonly AsyncTaskInfo[] }
  /** `pruned`: the task that had this id, if its record was pruned. */
  | { readonly type: 'unknown'; readonly pruned?: PrunedTask }

/**
 * Finds the task whose id equals or starts with `idOrPrefix`, among the tasks that one owner sees, or all tasks. An exact id takes precedence.
 * @param canBeMeant if several tasks match, only those for which this is true are candidates, or all of them if it is true for no task
 */
export function lookUpTask(
  manager: TaskSource,
  idOrPrefix: string,
  owner?: string,
  canBeMeant?: (task: AsyncTaskInfo) => boolean,
): TaskLookup {
  const isVisible = (task: AsyncTaskInfo): boolean => owner === undefined || isSeenBy(manager, task, owner)
  const exact = manager.getTask(idOrPrefix)
  if (exact !== undefined && isVisible(exact)) return { type: 'found', task: exact }
  const listed = manager.getTask(manager.registry.use(listedIds).idOf(idOrPrefix) ?? '')
  if (listed !== undefined && isVisible(listed)) return { type: 'found', task: listed }
  const candidates = meantOf(lookUpPrefix(visibleTasks(manager, owner), idOrPrefix), canBeMeant)
  const [task] = candidates
  if (task === undefined) {
    const pruned = manager.registry.use(prunedTasks).find(idOrPrefix, owner)
    return { type: 'unknown', ...defined({ pruned }) }
  }
  return candidates.length === 1 ? { type: 'found', task } : { type: 'ambiguous', candidates }
}

/** The items that can be meant, or all items if there are none. */
export function meantOf<Item>(
  items: readonly Item[],
  canBeMeant: (item: Item) => boolean = () => true,
): readonly Item[] {
  const meant = items.filter(canBeMeant)
  return meant.length === 0 ? items : meant
}

/** Whether a task can be ended or sent a message. */
export const hasNotEnded = (task: AsyncTaskInfo): boolean => !isTerminal(task)

/** Whether a task has not ended, or its result was not delivered yet. */
export const canBeWaitedFor = (task: AsyncTaskInfo): boolean => hasNotEnded(task) || isUndelivered(task)

export const asks = ({ questions }: AsyncTaskInfo): boolean => questions !== undefined

/** The items whose id starts with a prefix. An empty prefix matches nothing. */
export function lookUpPrefix<Item extends { readonly id: string }>(items: readonly Item[], prefix: string): Item[] {
  return prefix === '' ? [] : items.filter(({ id }) => id.startsWith(prefix))
}

/** The kept tasks of one owner with those that their runs have launched, or all kept tasks, in the order of registration. */
export function visibleTasks(manager: TaskSource, owner?: string): AsyncTaskInfo[] {
  const all = manager.getAllTasks()
  return owner === undefined ? all : all.filter((task) => isSeenBy(manager, task, owner))
}

/**
 * Returns short ids that are unique among all kept tasks. A task keeps its displayed short id while its record is kept. Only a later task whose whole
 * id is that text takes it over.
 */
export function shortTaskIds(manager: TaskSource): (task: Pick<AsyncTaskInfo, 'id'>) => string {
  const listed = manager.registry.use(listedIds)
  const short = shortIds(manager.getAllTasks().map((task) => task.id))
  return ({ id }) => {
    const before = listed.shortOf(id)
    if (before !== undefined && (before === id || manager.getTask(before) === undefined)) return before
    const shown = short.get(id)
    if (shown === undefined) return id
    listed.set(id, shown)
    return shown
  }
}

/** Whether a name identifies a task with certainty: it is the whole id, or a prefix that a list has displayed. */
export function isCertain(manager: TaskSource, idOrPrefix: string, task: AsyncTaskInfo): boolean {
  return idOrPrefix === task.id || manager.registry.use(listedIds).shortOf(task.id) !== undefined
}

export function prunedText({ id, subagentName, prunedAt }: PrunedTask): string {
  return `Task ${id} (${toOneLine(subagentName)}) has ended, and its record was pruned at ${isoTime(prunedAt)}.`
}
