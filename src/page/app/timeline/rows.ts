/** The rows of the timeline: a line for each owner and each instance, and under it one for each of its tasks, the newest first. */
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
}

export type Row = GroupRow | TaskRow

/** @param tasks the newest first @param closed the keys of the groups that are closed */
export function rowsOf(tasks: readonly PageTask[], closed: ReadonlySet<string>): readonly Row[] {
  const groups = new Map<string, PageTask[]>()
  for (const task of tasks) {
    const key = groupKey(task)
    const group = groups.get(key)
    if (group) group.push(task)
    else groups.set(key, [task])
  }
  const rows: Row[] = []
  // By name, so that a group stays where it is while others come and go.
  for (const [key, members] of [...groups].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const [first] = members
    if (first === undefined) continue
    const isOpen = !closed.has(key)
    const live = members.reduce((sum, { endedAt }) => sum + (endedAt === undefined ? 1 : 0), 0)
    rows.push({ type: 'group', key, kind: first.kind, name: first.group, isOpen, live, tasks: members })
    if (isOpen) for (const task of members) rows.push({ type: 'task', key: task.key, task })
  }
  return rows
}

function groupKey({ kind, group }: PageTask): string {
  return `group:${kind}:${group}`
}

/** The row that keys move to, and where it lies. */
export function indexOfRow(rows: readonly Row[], key: string | undefined): number {
  return key === undefined ? -1 : rows.findIndex((row) => row.key === key)
}
