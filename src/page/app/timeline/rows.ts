/**
 * The rows of the timeline: a line for each owner and each instance, and under it one for each of its tasks, the newest first. What a task has
 * launched is under it, in the order of its launch, whoever owns that now.
 */
import type { PageTask, PageTaskKind } from '../../wire.js'

export interface GroupRow {
  readonly type: 'group'
  /** Unique among rows. */
  readonly key: string
  readonly kind: PageTaskKind
  readonly name: string
  readonly isOpen: boolean
  /** How many have not ended. */
  readonly live: number
  /** Drawn in the group's own row while it is closed. */
  readonly tasks: readonly PageTask[]
}

export interface TaskRow {
  readonly type: 'task'
  readonly key: string
  readonly task: PageTask
  /** 0 for a task that is under no other. */
  readonly depth: number
}

export type Row = GroupRow | TaskRow

/** @param tasks the newest first @param closed the keys of the groups that are closed */
export function rowsOf(tasks: readonly PageTask[], closed: ReadonlySet<string>): readonly Row[] {
  const families = familiesOf(tasks)
  const groups = new Map<string, PageTask[]>()
  for (const task of tasks) {
    const key = groupKey(families.rootOf(task))
    const group = groups.get(key)
    if (group) group.push(task)
    else groups.set(key, [task])
  }
  const rows: Row[] = []
  const push = (task: PageTask, depth: number): void => {
    rows.push({ type: 'task', key: task.key, task, depth })
    for (const child of families.childrenOf(task)) push(child, depth + 1)
  }
  // By name, so that a group stays where it is while others come and go.
  for (const [key, members] of [...groups].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const [first] = members
    if (first === undefined) continue
    const { kind, group: name } = families.rootOf(first)
    const isOpen = !closed.has(key)
    const live = members.reduce((sum, { endedAt }) => sum + (endedAt === undefined ? 1 : 0), 0)
    rows.push({ type: 'group', key, kind, name, isOpen, live, tasks: members })
    if (!isOpen) continue
    for (const task of members) if (families.rootOf(task) === task) push(task, 0)
  }
  return rows
}

interface Families {
  /** The task above all others that have led to it, as far as they are known. */
  rootOf(task: PageTask): PageTask
  /** The oldest first. */
  childrenOf(task: PageTask): readonly PageTask[]
}

function familiesOf(tasks: readonly PageTask[]): Families {
  if (tasks.every(({ parentKey }) => parentKey === undefined)) return { rootOf: (task) => task, childrenOf: () => [] }
  const byKey = new Map(tasks.map((task) => [task.key, task]))
  const roots = new Map<string, PageTask>()
  const children = new Map<string, PageTask[]>()
  const parentOf = ({ parentKey, kind }: PageTask): PageTask | undefined => {
    const parent = parentKey === undefined ? undefined : byKey.get(parentKey)
    // A command task stays in the lane of its instance.
    return parent?.kind === kind ? parent : undefined
  }
  const rootOf = (task: PageTask): PageTask => {
    const known = roots.get(task.key)
    if (known) return known
    // Tasks that claim to have launched each other end here.
    roots.set(task.key, task)
    const parent = parentOf(task)
    const root = parent ? rootOf(parent) : task
    roots.set(task.key, root)
    return root
  }
  for (const task of tasks.toReversed()) {
    const parent = parentOf(task)
    if (!parent || rootOf(task) === task) continue
    const siblings = children.get(parent.key)
    if (siblings) siblings.push(task)
    else children.set(parent.key, [task])
  }
  return { rootOf, childrenOf: ({ key }) => children.get(key) ?? [] }
}

function groupKey({ kind, group }: PageTask): string {
  return `group:${kind}:${group}`
}

/** The row that keys move to, and where it lies. */
export function indexOfRow(rows: readonly Row[], key: string | undefined): number {
  return key === undefined ? -1 : rows.findIndex((row) => row.key === key)
}

/** Where the row above it in the tree is; -1 for a group. */
export function indexAbove(rows: readonly Row[], index: number): number {
  const level = levelOf(rows[index])
  return rows.findLastIndex((row, at) => at < index && levelOf(row) < level)
}

/** 1 for a group. */
export function levelOf(row: Row | undefined): number {
  return row?.type === 'task' ? row.depth + 2 : 1
}
