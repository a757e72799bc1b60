/**
 * The rows of the timeline, which form a tree. Its first level has the phases: running, waiting and ended. Each phase contains the owners and instances,
 * and each of these contains its tasks.
 *
 * A task that a run launched is shown below the task of that run, even if another owner has it now. All tasks of a family are in the same phase: in
 * `running` if one of them runs, otherwise in `waiting` if one of them waits, otherwise in `ended`.
 */
import type { PageTask, PageTaskKind } from '../../wire.js'
import { familiesOf, type Families } from './families.js'

export type Phase = 'running' | 'waiting' | 'ended'

const PHASES: readonly Phase[] = ['running', 'waiting', 'ended']

/** If more tasks than this wait, the phase `waiting` is closed until a person opens it. */
const MAX_WAITING = 20

interface HeadRow {
  /** Unique among all rows. */
  readonly key: string
  readonly isOpen: boolean
  /** The number of tasks in the row that are in this phase by their own state, not because of their family. */
  readonly count: number
  /** All tasks of the row, newest first. While the row is closed, their bars are drawn in it. */
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
  /** The number of tasks above this task in its family. */
  readonly depth: number
}

export type Row = PhaseRow | GroupRow | TaskRow

/** The phases, owners and instances that a person has opened or closed, by the key of their row. */
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
    // The oldest waiting task comes first, because it probably starts next.
    const members = phase === 'waiting' ? group.tasks.toReversed() : group.tasks
    for (const task of members) if (families.rootOf(task) === task) push(task, 0)
  }
  return rows
}

/** Returns the owners and instances of a phase. They are sorted by kind and name, so that they keep their places while tasks change. */
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

/** Returns a function that finds the phase of a task's family: the first phase in the order of `PHASES` that a task of the family is in. */
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

/** Returns the index of the row with this key; -1 if there is none. */
export function indexOfRow(rows: readonly Row[], key: string | undefined): number {
  return key === undefined ? -1 : rows.findIndex((row) => row.key === key)
}

/** Returns the index of the row that contains this row in the tree; -1 for a phase. */
export function indexAbove(rows: readonly Row[], index: number): number {
  const level = levelOf(rows[index])
  return rows.findLastIndex((row, at) => at < index && levelOf(row) < level)
}

/** Returns the level of a row in the tree. Phases are on level 1. */
export function levelOf(row: Row | undefined): number {
  if (row?.type === 'task') return row.depth + 3
  return row?.type === 'group' ? 2 : 1
}
