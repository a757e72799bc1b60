/** Finds tasks by an id or the beginning of an id, as models and people write them. */
import type { AsyncTaskInfo } from '../../../machines/records.js'
import { isTerminal, isUndelivered } from '../../../machines/task-entry.js'
import { toOneLine } from '../../data/control-characters.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { isSeenBy } from '../families/families.js'
import { listedIds } from './listed-ids.js'
import { prunedTasks, type PrunedTask } from '../history/pruned-tasks.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { shortIds } from './short-ids.js'
import { isoTime } from '../../data/duration.js'

interface TaskSource {
  getTask(id: string): AsyncTaskInfo | undefined
  getAllTasks(): AsyncTaskInfo[]
  readonly registry: TaskRegistry
}

export type TaskLookup =
  | { readonly type: 'found'; readonly task: AsyncTaskInfo }
  | { readonly type: 'ambiguous'; readonly candidates: readonly AsyncTaskInfo[] }
  /** `pruned` is the task that had this id, if its record was pruned. */
  | { readonly type: 'unknown'; readonly pruned?: PrunedTask }

/**
 * Finds the task whose id equals or starts with `idOrPrefix`. With `owner`, only tasks that this owner may see are found. An exact id takes
 * precedence.
 * @param canBeMeant narrows down several matches: the candidates are those for which it is true, or all matches if it is true for none
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
    return { type: 'unknown', ...omitUndefined({ pruned }) }
  }
  return candidates.length === 1 ? { type: 'found', task } : { type: 'ambiguous', candidates }
}

/** Returns the items for which `canBeMeant` is true, or all items if it is true for none. */
export function meantOf<Item>(
  items: readonly Item[],
  canBeMeant: (item: Item) => boolean = () => true,
): readonly Item[] {
  const meant = items.filter(canBeMeant)
  return meant.length === 0 ? items : meant
}

/** Whether a task can still be cancelled or receive a message. */
export const hasNotEnded = (task: AsyncTaskInfo): boolean => !isTerminal(task)

/** Whether a wait for a task is useful: the task has not ended, or its result was not delivered yet. */
export const canBeWaitedFor = (task: AsyncTaskInfo): boolean => hasNotEnded(task) || isUndelivered(task)

export const asks = ({ questions }: AsyncTaskInfo): boolean => questions !== undefined

/** Returns the items whose id starts with a prefix. An empty prefix matches nothing. */
export function lookUpPrefix<Item extends { readonly id: string }>(items: readonly Item[], prefix: string): Item[] {
  return prefix === '' ? [] : items.filter(({ id }) => id.startsWith(prefix))
}

/**
 * Returns the tasks of an owner and those that their runs have launched, or all tasks, in the order of registration. The result contains only kept
 * tasks.
 */
export function visibleTasks(manager: TaskSource, owner?: string): AsyncTaskInfo[] {
  const all = manager.getAllTasks()
  return owner === undefined ? all : all.filter((task) => isSeenBy(manager, task, owner))
}

/**
 * Returns a function from tasks to short ids that are unique among all kept tasks. Once displayed, the short id of a task stays the same, unless a
 * later task gets exactly that text as its whole id.
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

/** Whether a name certainly means this task: it is the whole id, or the short id that a list has displayed. */
export function isCertain(manager: TaskSource, idOrPrefix: string, task: AsyncTaskInfo): boolean {
  return idOrPrefix === task.id || manager.registry.use(listedIds).shortOf(task.id) !== undefined
}

export function prunedText({ id, subagentName, prunedAt }: PrunedTask): string {
  return `Task ${id} (${toOneLine(subagentName)}) has ended, and its record was pruned at ${isoTime(prunedAt)}.`
}
