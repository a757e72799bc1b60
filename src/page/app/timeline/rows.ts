/**
 * The rows of the timeline form a tree. On its first level are the phases: running, waiting and ended. Each phase contains owners and instances,
 * and these contain their tasks.
 *
 * A launched task is below the task that launched it, whichever owner has it now. A whole family is in the phase `running` while one of its tasks
 * runs, and otherwise in `waiting` while one of them waits.
 */
import type { PageTask, PageTaskKind } from '../../wire.js'
import { familiesOf, type Families } from './families.js'

export type Phase = 'running' | 'waiting' | 'ended'

/** In the order in which they are shown. */
const PHASES: readonly Phase[] = ['running', 'waiting', 'ended']

/** With more tasks than this, the phase `waiting` is closed until a person opens it. */
const MAX_WAITING = 20

interface HeadRow {
  /** Unique among rows. */
  readonly key: string
  readonly isOpen: boolean
  /** The number of its tasks that are in this phase themselves, and not only through their family. */
  readonly count: number
  /** All of its tasks, the newest first. Their bars are drawn in this row while it is closed. */
  readonly tasks: readonly PageTask[]
}

export interface PhaseRow extends HeadRow {
  readonly type: 'phase'
  readonly phase: Phase
}

export interface GroupRow extends HeadRow {
  readonly type: 'group'
  readonly kind: PageTaskKind
  readonly name: string
}

export interface TaskRow {
  readonly type: 'task'
  readonly key: string
  readonly task: PageTask
  /** 0 for a task that is not below another task. */
  readonly depth: number
}

export type Row = PhaseRow | GroupRow | TaskRow

/** Which phases and groups a person has opened or closed, by key. */
export type Toggled = ReadonlyMap<string, boolean>

/** @param tasks the newest first */
export function rowsOf(tasks: readonly PageTask[], toggled: Toggled): readonly Row[] {
  const families = familiesOf(tasks)
  const phases = familyPhases(tasks, families)
  const inPhase: Readonly<Record<Phase, PageTask[]>> = { running: [], waiting: [], ended: [] }
  for (const task of tasks) inPhase[phases(task)].push(task)
  return PHASES.flatMap((phase) => phaseRows(phase, inPhase[phase], families, toggled))
}

function phaseRows(phase: Phase, tasks: readonly PageTask[], families: Families, toggled: Toggled): Row[] {
  if (tasks.length === 0) return []
  const key = `phase:${phase}`
  const count = countIn(phase, tasks)
  const isOpen = toggled.get(key) ?? (phase !== 'waiting' || count <= MAX_WAITING)
  const rows: Row[] = [{ type: 'phase', key, phase, isOpen, count, tasks }]
  if (!isOpen) return rows
  const push = (task: PageTask, depth: number): void => {
    rows.push({ type: 'task', key: task.key, task, depth })
    for (const child of families.childrenOf(task)) push(child, depth + 1)
  }
  for (const group of groupsOf(phase, tasks, families, toggled)) {
    rows.push(group)
    if (!group.isOpen) continue
    // The oldest waiting task is likely to start next.
    const members = phase === 'waiting' ? group.tasks.toReversed() : group.tasks
    for (const task of members) if (families.rootOf(task) === task) push(task, 0)
  }
  return rows
}

/** Sorted by kind and name, so that a group keeps its place while tasks come and go. */
function groupsOf(phase: Phase, tasks: readonly PageTask[], families: Families, toggled: Toggled): GroupRow[] {
  const groups = new Map<string, PageTask[]>()
  for (const task of tasks) {
    const { kind, group: name } = families.rootOf(task)
    const key = `${phase}:${kind}:${name}`
    const members = groups.get(key)
    if (members) members.push(task)
    else groups.set(key, [task])
  }
  return [...groups]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([key, members]): GroupRow[] => {
      const [first] = members
      if (first === undefined) return []
      const { kind, group: name } = families.rootOf(first)
      const count = countIn(phase, members)
      return [{ type: 'group', key, kind, name, isOpen: toggled.get(key) ?? true, count, tasks: members }]
    })
}

/** Returns the phase of a task's family, which is the first phase that any task of the family is in. */
function familyPhases(tasks: readonly PageTask[], families: Families): (task: PageTask) => Phase {
  const phases = new Map<PageTask, Phase>()
  for (const task of tasks) {
    const root = families.rootOf(task)
    const [phase, before] = [phaseOf(task), phases.get(root)]
    if (before === undefined || PHASES.indexOf(phase) < PHASES.indexOf(before)) phases.set(root, phase)
  }
  return (task) => phases.get(families.rootOf(task)) ?? phaseOf(task)
}

function phaseOf({ state, endedAt }: PageTask): Phase {
  if (endedAt !== undefined) return 'ended'
  return state === 'queued' ? 'waiting' : 'running'
}

function countIn(phase: Phase, tasks: readonly PageTask[]): number {
  return tasks.reduce((sum, task) => (phaseOf(task) === phase ? sum + 1 : sum), 0)
}

/** -1 when there is no such row. */
export function indexOfRow(rows: readonly Row[], key: string | undefined): number {
  return key === undefined ? -1 : rows.findIndex((row) => row.key === key)
}

/** The index of the row above it in the tree; -1 for a phase. */
export function indexAbove(rows: readonly Row[], index: number): number {
  const level = levelOf(rows[index])
  return rows.findLastIndex((row, at) => at < index && levelOf(row) < level)
}

/** The level in the tree; a phase has 1. */
export function levelOf(row: Row | undefined): number {
  if (row?.type === 'task') return row.depth + 3
  return row?.type === 'group' ? 2 : 1
}
