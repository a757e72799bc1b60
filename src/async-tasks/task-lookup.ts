/** Finds tasks by an id or a prefix of one, as models and people write them. */
import type { AsyncTaskInfo } from '../../machines/records.js'
import { isTerminal } from '../../machines/task-entry.js'
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

/** The result of a lookup. */
export type TaskLookup =
  | { readonly type: 'found'; readonly task: AsyncTaskInfo }
  | { readonly type: 'ambiguous'; readonly candidates: readonly AsyncTaskInfo[] }
  /** `pruned`: the task that had this id, of which no record is left. */
  | { readonly type: 'unknown'; readonly pruned?: PrunedTask }

/**
 * The task whose id is or starts with `idOrPrefix`, among those that one owner sees, or all. An exact id takes precedence over longer ones.
 * @param canBeMeant of several tasks, only these are candidates; if there are none of these, all are
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

/** The items that can be meant; all of them if none can. */
export function meantOf<Item>(
  items: readonly Item[],
  canBeMeant: (item: Item) => boolean = () => true,
): readonly Item[] {
  const meant = items.filter(canBeMeant)
  return meant.length === 0 ? items : meant
}

/** What a call that ends a task, or sends it a message, can mean. */
export const hasNotEnded = (task: AsyncTaskInfo): boolean => !isTerminal(task)

/** What an answer can mean. */
export const asks = ({ questions }: AsyncTaskInfo): boolean => questions !== undefined

/** The items whose id starts with a prefix. An empty prefix matches none. */
export function lookUpPrefix<Item extends { readonly id: string }>(items: readonly Item[], prefix: string): Item[] {
  return prefix === '' ? [] : items.filter(({ id }) => id.startsWith(prefix))
}

/** The retained tasks of one owner with those that their runs have launched, or of all, in the order of registration. */
export function visibleTasks(manager: TaskSource, owner?: string): AsyncTaskInfo[] {
  const all = manager.getAllTasks()
  return owner === undefined ? all : all.filter((task) => isSeenBy(manager, task, owner))
}

/**
 * Short ids that are unique among all retained tasks, of every owner. A task keeps the one that it was shown under, so that it means
 * no other task while its record is kept; only a later task whose whole id is that text takes it over.
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

/** Whether a name means a task for certain: its whole id, or a prefix of a task that a list has shown. */
export function isCertain(manager: TaskSource, idOrPrefix: string, task: AsyncTaskInfo): boolean {
  return idOrPrefix === task.id || manager.registry.use(listedIds).shortOf(task.id) !== undefined
}

/** Says what became of a task that was pruned. */
export function prunedText({ id, subagentName, prunedAt }: PrunedTask): string {
  return `Task ${id} (${toOneLine(subagentName)}) has ended, and its record was pruned at ${isoTime(prunedAt)}.`
}
