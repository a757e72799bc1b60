/** Families: the tasks that the run of another task launches (promise F5). Validates such launches, and gives the run its `context.children`. */
import type { FamilyLimits } from '../../../machines/parts/families.js'
import type { FamilyRefusal } from '../../../machines/registry-events.js'
import { ownerOfRun, runOfOwner } from '../../../machines/run-owner.js'
import type { AsyncTaskInfo } from '../../../machines/records.js'
import type { TaskAdmission } from '../../../machines/task-admission.js'
import { isTerminal, type TaskEntry } from '../../../machines/task-entry.js'
import type { RunChildren, WaitOptions, WaitResult } from '../../engine/children.js'
import { unawaited } from '../../isolation/unawaited.js'
import { FamilyError, InvalidInputError } from '../../errors.js'
import type { CancelOptions } from '../../protocol/async-tasks.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { runWaits } from '../named-slots/run-waits.js'
import { taskWatchers } from '../../async-tasks/task-watchers.js'

/** The part of the manager that the functions of this file use. */
export interface FamilyHost {
  readonly registry: TaskRegistry
  waitFor(ids: readonly string[], options: WaitOptions): Promise<WaitResult>
  cancelTask(id: string, options?: CancelOptions | string): boolean
}

/** The fields that a launch by a run adds to the new task. */
export function childFields({ record: { id, depth = 0 } }: TaskEntry, kind: 'command' | undefined) {
  return {
    owner: ownerOfRun(id),
    parentId: id,
    depth: depth + 1,
    // A command takes a slot of the pool of commands, even if a run launches it.
    pool: kind ?? 'child',
  } as const satisfies Partial<TaskAdmission>
}

/** Returns `parent`, its own parent, and so on, as far as the records of these tasks are kept. */
export function tasksAbove(history: TaskRegistry['history'], parent: TaskEntry | undefined): readonly TaskEntry[] {
  const above = new Set<TaskEntry>()
  for (let at = parent; at !== undefined && !above.has(at); at = history.get(at.record.parentId ?? '')) above.add(at)
  return [...above]
}

/**
 * Returns the task that `parentId` of an input names; undefined without `parentId`.
 * @throws INVALID_INPUT
 */
export function parentOf(
  { history }: TaskRegistry,
  { parentId, owner }: { readonly parentId?: string | undefined; readonly owner?: string | undefined },
): TaskEntry | undefined {
  if (parentId === undefined) return undefined
  const parent = history.get(parentId)
  if (parent === undefined) throw new InvalidInputError('input.parentId', parentId, 'the id of a task that is kept')
  if (owner !== undefined && owner !== ownerOfRun(parentId)) {
    throw new InvalidInputError(
      'input.owner',
      owner,
      `nothing or ${JSON.stringify(ownerOfRun(parentId))}, because a task with a parentId belongs to the run of that parent`,
    )
  }
  return parent
}

/**
 * Refuses an owner that is the run of an ended or unknown task, because such an owner would never receive results.
 * @throws INVALID_INPUT
 */
export function checkOwner({ history }: TaskRegistry, owner: string, field: string): void {
  const runId = runOfOwner(owner)
  if (runId === undefined || history.get(runId)?.ref !== undefined) return
  throw new InvalidInputError(field, owner, 'an owner, or "run:" and the id of a task that has not ended')
}

/**
 * Checks the new owner (the heir) for the tasks of an owner. Refuses, besides the cases of `checkOwner`, a run below the owner itself: its own task
 * would be among those that it receives.
 * @throws INVALID_INPUT
 */
export function checkHeir(registry: TaskRegistry, heir: string, owner: string): void {
  if (heir === owner) return
  const field = 'input.to'
  checkOwner(registry, heir, field)
  const above = new Set<string>()
  for (let at: string | undefined = heir; at !== undefined && !above.has(at); at = ownerAbove(registry, at)) {
    above.add(at)
  }
  if (!above.has(owner)) return
  throw new InvalidInputError(field, heir, `an owner other than a run that belongs to ${JSON.stringify(owner)} itself`)
}

/** Returns the owner of the task to which a run belongs; undefined for an owner that is not a run. */
function ownerAbove({ history }: TaskRegistry, owner: string): string | undefined {
  const runId = runOfOwner(owner)
  return runId === undefined ? undefined : history.get(runId)?.record.owner
}

/** The error for a run that launches a task after it has ended or while it is being stopped. */
export const endedError = (parentId: string): FamilyError =>
  new FamilyError(
    'PARENT_ENDED',
    parentId,
    `Task ${parentId} has ended or is being stopped, so its run may not launch more tasks.`,
  )

export function familyError(
  refusal: FamilyRefusal,
  parentId: string,
  { maxDepth, maxChildren }: FamilyLimits,
): FamilyError {
  switch (refusal) {
    case 'parent-ended':
      return endedError(parentId)
    case 'too-deep':
      return new FamilyError(
        'FAMILY_LIMIT',
        parentId,
        `Task ${parentId} has the maximum depth (${maxDepth}, maxFamilyDepth), so its run may not launch tasks.`,
      )
    case 'too-many':
      return new FamilyError(
        'FAMILY_LIMIT',
        parentId,
        `Task ${parentId} has the maximum number of children (${maxChildren}, maxChildrenPerTask) that are active or whose results its run has not taken. Wait for some of them, or cancel some.`,
      )
  }
}

/** One run of a task. `isCurrent` returns false when the task has a later run. */
export interface CurrentRun {
  readonly signal: AbortSignal
  readonly isCurrent: () => boolean
}

/** @throws INVALID_INPUT */
export function checkIds(ids: unknown): void {
  if (ids === undefined || (Array.isArray(ids) && ids.every((id) => typeof id === 'string'))) return
  throw new InvalidInputError('ids', ids, 'an array of ids of tasks')
}

export function childrenOf(manager: FamilyHost, entry: TaskEntry, { signal, isCurrent }: CurrentRun): RunChildren {
  const owner = ownerOfRun(entry.record.id)
  const { ledger, history } = manager.registry
  const watchers = manager.registry.use(taskWatchers)
  const waits = manager.registry.use(runWaits)
  const ids = (): string[] =>
    !isCurrent()
      ? []
      : [...ledger.owed(owner), ...ledger.running(owner), ...ledger.queued(owner)].map(({ record }) => record.id)
  const waitFor = async (named: readonly string[] = ids(), options: WaitOptions = {}): Promise<WaitResult> => {
    checkIds(named)
    // The task may end or be retried while this run continues. The waits of this run end then.
    const left = new AbortController()
    const leaveOnceOver = (): void => {
      if (!isCurrent() || isTerminal(entry.record)) left.abort()
    }
    const signals = [signal, left.signal, ...(options.signal === undefined ? [] : [options.signal])]
    const isOwn = (id: string): boolean => isCurrent() && history.get(id)?.record.owner === owner
    const others = named.filter((id) => !isOwn(id))
    const own = named.filter(isOwn)
    // Only a wait without a time limit can be part of a deadlock, so only such a wait is recorded.
    const endWait =
      options.timeoutMs === undefined &&
      waits.begin(
        entry,
        own.flatMap((id) => history.get(id) ?? []),
        options.mode ?? 'all',
      )
    watchers.add(entry, leaveOnceOver)
    try {
      const result = await manager.waitFor(own, { ...options, signal: AbortSignal.any(signals) })
      return { ...result, unknown: [...result.unknown, ...others] }
    } finally {
      if (endWait !== false) endWait()
      watchers.remove(entry, leaveOnceOver)
    }
  }
  return {
    ids,
    waitFor: (named, options) => unawaited(() => waitFor(named, options)),
    cancel: (id, options) => isCurrent() && history.get(id)?.record.owner === owner && manager.cancelTask(id, options),
  }
}

interface TaskSource {
  getTask(id: string): AsyncTaskInfo | undefined
}

/** Whether an owner may see a task: it owns the task, its parent, or another task above it. */
export function isSeenBy(manager: TaskSource, task: AsyncTaskInfo, owner: string): boolean {
  for (let at: AsyncTaskInfo | undefined = task; at !== undefined; at = owningTask(manager, at)) {
    if (at.owner === owner) return true
  }
  return false
}

/** Returns the owner of the topmost task of a family. */
export function rootOwner(manager: TaskSource, task: AsyncTaskInfo): string {
  let top = task
  for (let at = owningTask(manager, top); at !== undefined; at = owningTask(manager, at)) top = at
  return top.owner
}

/**
 * Returns the parent of a task that belongs to a run. Restored records of a host may refer to each other in a circle, so only a task of a smaller
 * depth counts as parent.
 */
function owningTask(manager: TaskSource, task: AsyncTaskInfo): AsyncTaskInfo | undefined {
  const runId = runOfOwner(task.owner)
  const owner = runId === undefined ? undefined : manager.getTask(runId)
  return owner !== undefined && (owner.depth ?? 0) < (task.depth ?? 0) ? owner : undefined
}

/** Whether the result of a task is for a run, and that run is not the reader. */
export function isOfOtherRun(task: AsyncTaskInfo, reader: string | undefined): boolean {
  return runOfOwner(task.owner) !== undefined && task.owner !== reader
}

/** A task in a list, with the level of its indentation. */
export interface Placed {
  readonly task: AsyncTaskInfo
  readonly level: number
}

/** Orders tasks as a tree: each task is followed by those of its children that are in the list. Otherwise the given order is kept. */
export function toTree(tasks: readonly AsyncTaskInfo[]): readonly Placed[] {
  if (tasks.every(({ parentId }) => parentId === undefined)) return tasks.map((task) => ({ task, level: 0 }))
  const byId = new Map(tasks.map((task) => [task.id, task]))
  const children = new Map<string | undefined, AsyncTaskInfo[]>()
  for (const task of tasks) {
    const parent = byId.get(task.parentId ?? '')
    const above = parent !== undefined && (parent.depth ?? 0) < (task.depth ?? 0) ? parent.id : undefined
    children.set(above, [...(children.get(above) ?? []), task])
  }
  const placed: Placed[] = []
  const place = (above: string | undefined, level: number): void => {
    for (const task of children.get(above) ?? []) {
      placed.push({ task, level })
      place(task.id, level + 1)
    }
  }
  place(undefined, 0)
  return placed
}

type Ownership = Pick<AsyncTaskInfo, 'owner'>

/**
 * Returns the owner of a task after its process has died. A run that died with the process owns no tasks any more. Its tasks pass to the owner of its
 * own task.
 */
export function livingOwner(
  task: Ownership,
  findTask: (id: string) => Ownership | undefined,
  isAlive: (id: string) => boolean,
): string {
  let at = task
  const seen = new Set<string>()
  for (let runId = runOfOwner(at.owner); runId !== undefined && !isAlive(runId); runId = runOfOwner(at.owner)) {
    const above = findTask(runId)
    // Restored records of a host may refer to each other in a circle.
    if (above === undefined || seen.has(runId)) return FALLBACK_OWNER
    seen.add(runId)
    at = above
  }
  return at.owner
}

/** Returns the owner of a task that was found in the store. A run keeps its tasks if its own task continues or waits. */
export function presentOwner({ history }: TaskRegistry, stored: Ownership): string {
  return livingOwner(
    stored,
    (id) => history.get(id)?.record,
    (id) => history.get(id)?.ref !== undefined,
  )
}

/** The new owner of tasks if the task of their dead run is unknown. */
const FALLBACK_OWNER = 'main'

/** Returns the records of a dead process. Tasks of runs get new owners, because these runs have died too. */
export function inheritFromLost(records: readonly AsyncTaskInfo[]): readonly AsyncTaskInfo[] {
  if (records.every((record) => runOfOwner(record.owner) === undefined)) return records
  const byId = new Map(records.map((record) => [record.id, record]))
  return records.map((record) => {
    const owner = livingOwner(
      record,
      (id) => byId.get(id),
      () => false,
    )
    return owner === record.owner ? record : Object.freeze({ ...record, owner })
  })
}
