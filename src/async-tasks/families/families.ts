/** The tasks that a run launches: what their launch needs, and what the run can do with them (promise F5). */
import type { FamilyLimits, FamilyRefusal } from '../../../machines/families.js'
import { ownerOfRun, runOfOwner } from '../../../machines/families.js'
import type { AsyncTaskInfo, TaskAdmission } from '../../../machines/records.js'
import { isTerminal, type TaskEntry } from '../../../machines/task-entry.js'
import type { RunChildren, WaitOptions, WaitResult } from '../../engine/children.js'
import { unawaited } from '../../callbacks/unawaited.js'
import { FamilyError, InvalidInputError } from '../../errors.js'
import type { CancelOptions } from '../../protocol/async-tasks.js'
import type { TaskRegistry } from '../registry.js'
import { runWaits } from '../named-slots/run-waits.js'
import { taskWatchers } from '../task-watchers.js'

/** The part of a manager that families use. */
export interface FamilyHost {
  readonly registry: TaskRegistry
  waitFor(ids: readonly string[], options: WaitOptions): Promise<WaitResult>
  cancelTask(id: string, options?: CancelOptions | string): boolean
}

/** Additional fields for the admission of a child. */
export function childFields({ record: { id, depth = 0 } }: TaskEntry, kind: 'command' | undefined) {
  return {
    owner: ownerOfRun(id),
    parentId: id,
    depth: depth + 1,
    // A program always uses the pool of commands.
    pool: kind ?? 'child',
  } as const satisfies Partial<TaskAdmission>
}

/** The task whose run launches a new one, and its kept ancestors. */
export function tasksAbove(history: TaskRegistry['history'], parent: TaskEntry | undefined): readonly TaskEntry[] {
  const above = new Set<TaskEntry>()
  for (let at = parent; at !== undefined && !above.has(at); at = history.get(at.record.parentId ?? '')) above.add(at)
  return [...above]
}

/**
 * Returns the task that an input names as the parent.
 * @throws InvalidInputError
 */
export function parentOf(
  { history }: TaskRegistry,
  { parentId, owner }: { readonly parentId?: string | undefined; readonly owner?: string | undefined },
): TaskEntry | undefined {
  if (parentId === undefined) return undefined
  const parent = history.get(parentId)
  if (parent === undefined) throw new InvalidInputError('input.parentId', parentId, 'the id of a task')
  if (owner !== undefined && owner !== ownerOfRun(parentId)) {
    throw new InvalidInputError(
      'input.owner',
      owner,
      `nothing, or ${ownerOfRun(parentId)}: the run of its parent is the owner`,
    )
  }
  return parent
}

/**
 * Refuses a run as owner if its task has ended or is unknown, because its results could not be delivered.
 * @throws InvalidInputError
 */
export function checkOwner({ history }: TaskRegistry, owner: string, field: string): void {
  const runId = runOfOwner(owner)
  if (runId === undefined || history.get(runId)?.ref !== undefined) return
  throw new InvalidInputError(field, owner, 'an owner, or run: and the id of a task that has not ended')
}

/**
 * Also refuses an heir that is a run which belongs to the owner itself.
 * @throws InvalidInputError
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
  throw new InvalidInputError(
    field,
    heir,
    `an owner that does not belong to ${JSON.stringify(owner)} itself, as that run does`,
  )
}

/** Returns the owner of the task whose run is this owner. */
function ownerAbove({ history }: TaskRegistry, owner: string): string | undefined {
  const runId = runOfOwner(owner)
  return runId === undefined ? undefined : history.get(runId)?.record.owner
}

/** The error of a launch by a run that has ended or is being stopped. */
export const endedError = (parentId: string): FamilyError =>
  new FamilyError(
    'PARENT_ENDED',
    parentId,
    `Task ${parentId} has ended or is being stopped: its run launches no more tasks.`,
  )

/** The error for a refused launch of a run. */
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
        `Task ${parentId} is ${maxDepth} levels deep, the most that there may be: its run launches no tasks.`,
      )
    case 'too-many':
      return new FamilyError(
        'FAMILY_LIMIT',
        parentId,
        `Task ${parentId} has ${maxChildren} tasks that run or whose results it has not taken, the most that it may have. Wait for some of them, or cancel some.`,
      )
  }
}

/** A run. Its task may already have a later run. */
export interface CurrentRun {
  readonly signal: AbortSignal
  readonly isCurrent: () => boolean
}

/** @throws InvalidInputError */
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
    // A task may end or be retried while its run continues. The waits of that run then end.
    const left = new AbortController()
    const leaveOnceOver = (): void => {
      if (!isCurrent() || isTerminal(entry.record)) left.abort()
    }
    const signals = [signal, left.signal, ...(options.signal === undefined ? [] : [options.signal])]
    const isOwn = (id: string): boolean => isCurrent() && history.get(id)?.record.owner === owner
    const others = named.filter((id) => !isOwn(id))
    const own = named.filter(isOwn)
    // A wait with a time limit ends by itself.
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

/** Whether an owner sees a task: it owns the task or one above it. */
export function isSeenBy(manager: TaskSource, task: AsyncTaskInfo, owner: string): boolean {
  for (let at: AsyncTaskInfo | undefined = task; at !== undefined; at = owningTask(manager, at)) {
    if (at.owner === owner) return true
  }
  return false
}

/** The owner of the topmost task of a family. */
export function rootOwner(manager: TaskSource, task: AsyncTaskInfo): string {
  let top = task
  for (let at = owningTask(manager, top); at !== undefined; at = owningTask(manager, at)) top = at
  return top.owner
}

/** Returns the task whose run owns another one. Foreign records may refer to each other, so only a task of a smaller depth counts. */
function owningTask(manager: TaskSource, task: AsyncTaskInfo): AsyncTaskInfo | undefined {
  const runId = runOfOwner(task.owner)
  const owner = runId === undefined ? undefined : manager.getTask(runId)
  return owner !== undefined && (owner.depth ?? 0) < (task.depth ?? 0) ? owner : undefined
}

/** Whether the result of a task belongs to a run other than the reader. */
export function isOfOtherRun(task: AsyncTaskInfo, reader: string | undefined): boolean {
  return runOfOwner(task.owner) !== undefined && task.owner !== reader
}

/** A task in a list, with its indentation. */
export interface Placed {
  readonly task: AsyncTaskInfo
  readonly level: number
}

/** Orders tasks as a tree: each is followed by its listed children. Otherwise the given order is kept. */
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

/** Returns the owner of a task after its process has died. A dead run owns no tasks; they pass to the owner of its own task. */
export function livingOwner(
  task: Ownership,
  findTask: (id: string) => Ownership | undefined,
  isAlive: (id: string) => boolean,
): string {
  let at = task
  const seen = new Set<string>()
  for (let runId = runOfOwner(at.owner); runId !== undefined && !isAlive(runId); runId = runOfOwner(at.owner)) {
    const above = findTask(runId)
    // Foreign records may refer to each other.
    if (above === undefined || seen.has(runId)) return FALLBACK_OWNER
    seen.add(runId)
    at = above
  }
  return at.owner
}

/** Returns the current owner of a stored task. A run keeps its tasks if its own task continues or waits. */
export function presentOwner({ history }: TaskRegistry, stored: Ownership): string {
  return livingOwner(
    stored,
    (id) => history.get(id)?.record,
    (id) => history.get(id)?.ref !== undefined,
  )
}

/** The owner for tasks of a run whose own task is unknown. */
const FALLBACK_OWNER = 'main'

/** The records of a dead process, with the tasks of its runs passed to living owners. */
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
