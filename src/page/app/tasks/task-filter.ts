/** The filter and the order of the task table. Both are in the address. */
import { omitUndefined } from '../../../data/omit-undefined.js'
import type { PageTask, PageTaskState } from '../../wire.js'
import { isRun } from '../text/owners.js'
import { STATES, lengthOf } from '../text/states.js'

export const SORTS = ['created', 'title', 'state', 'group', 'subagent', 'duration'] as const
export type SortColumn = (typeof SORTS)[number]

export interface TaskFilter {
  /** Words that must all occur in the task. Case is ignored. */
  readonly text: string
  /** Empty for all states. */
  readonly states: readonly PageTaskState[]
  readonly owner?: string
  readonly instance?: string
  readonly subagent?: string
  readonly sort: SortColumn
  readonly isAscending: boolean
}

/** Reads the filter from the parameters of an address. Unknown values are ignored. */
export function readFilter(query: URLSearchParams): TaskFilter {
  const named = (name: string): string | undefined => query.get(name) ?? undefined
  const wanted = named('state')?.split(',') ?? []
  const sort = named('sort') ?? '-created'
  const column = SORTS.find((one) => one === sort.replace(/^-/, ''))
  const [owner, instance, subagent] = [named('owner'), named('instance'), named('subagent')]
  return {
    text: named('text') ?? '',
    states: STATES.filter((state) => wanted.includes(state)),
    ...omitUndefined({ owner, instance, subagent }),
    sort: column ?? 'created',
    isAscending: column !== undefined && !sort.startsWith('-'),
  }
}

/**
 * Returns the tasks that match, sorted.
 * @param tasks the newest first
 */
export function filterTasks(tasks: readonly PageTask[], filter: TaskFilter, now: number): readonly PageTask[] {
  const found = tasks.filter(matcher(filter))
  if (filter.sort === 'created') return filter.isAscending ? found.reverse() : found
  const compare = comparer(filter.sort, now)
  const direction = filter.isAscending ? 1 : -1
  return found.sort((a, b) => direction * compare(a, b))
}

function matcher({ text, states, owner, instance, subagent }: TaskFilter): (task: PageTask) => boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  return (task) =>
    (states.length === 0 || states.includes(task.state)) &&
    (owner === undefined || (task.kind === 'async' && task.group === owner)) &&
    (instance === undefined || (task.kind === 'command' && task.group === instance)) &&
    (subagent === undefined || task.subagent === subagent) &&
    (words.length === 0 || hasWords(task, words))
}

function hasWords({ title, id, group, subagent = '', error = '' }: PageTask, words: readonly string[]): boolean {
  const text = `${title}\n${id}\n${group}\n${subagent}\n${error}`.toLowerCase()
  return words.every((word) => text.includes(word))
}

function comparer(sort: Exclude<SortColumn, 'created'>, now: number): (a: PageTask, b: PageTask) => number {
  switch (sort) {
    case 'duration':
      return (a, b) => lengthOf(a, now) - lengthOf(b, now)
    case 'state':
      return (a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state)
    case 'title':
    case 'group':
      return (a, b) => compareTexts(a[sort], b[sort])
    case 'subagent':
      return (a, b) => compareTexts(a.subagent ?? '', b.subagent ?? '')
  }
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** The choices that the filter offers. The count of a state is the number of tasks that the page shows if only this state is selected. */
export interface FilterChoices {
  readonly states: ReadonlyMap<PageTaskState, number>
  readonly owners: readonly string[]
  readonly instances: readonly string[]
  readonly subagents: readonly string[]
}

export function choicesOf(tasks: readonly PageTask[], filter: TaskFilter): FilterChoices {
  const matches = matcher({ ...filter, states: [] })
  const states = new Map<PageTaskState, number>()
  const owners = new Set<string>()
  const instances = new Set<string>()
  const subagents = new Set<string>()
  for (const task of tasks) {
    const { state, kind, group, subagent } = task
    states.set(state, (states.get(state) ?? 0) + (matches(task) ? 1 : 0))
    if (kind === 'command') instances.add(group)
    else if (!isRun(group)) owners.add(group)
    if (subagent !== undefined) subagents.add(subagent)
  }
  return { states, owners: [...owners].sort(), instances: [...instances].sort(), subagents: [...subagents].sort() }
}
