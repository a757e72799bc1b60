/**
 * Families: the tasks that the run of another task launches (promise F5). The run owns these tasks until it ends. After that, they and their
 * undelivered results belong to the owner of the run's task.
 */
import { holdsSlot } from './task-status.js'
import type { Ledger } from './ledger.js'
import { byRegistration, type TaskEntry } from './task-entry.js'

/** The name of a run as owner is this prefix and the id of its task. */
const RUN_OWNER_PREFIX = 'run:'

/** Returns the name under which the run of a task owns the tasks that it launches. */
export const ownerOfRun = (taskId: string): string => RUN_OWNER_PREFIX + taskId

/** Returns the id of the task to which a run belongs; undefined if the owner is not a run. */
export const runOfOwner = (owner: string): string | undefined =>
  owner.startsWith(RUN_OWNER_PREFIX) ? owner.slice(RUN_OWNER_PREFIX.length) : undefined

/** The maximum size of a family. */
export interface FamilyLimits {
  /** The maximum depth of nested launches: 1 for children that launch nothing. */
  readonly maxDepth: number
  /** The maximum number of tasks of one run that are active or have undelivered results. */
  readonly maxChildren: number
}

/** Why a run may not launch a task. */
export type FamilyRefusal = 'parent-ended' | 'too-deep' | 'too-many'

/** Tracks which runs own tasks. */
export class Families {
  readonly limits: FamilyLimits
  readonly #ledger: Ledger
  readonly #onRelease: (owner: string, heir: string | undefined) => void
  readonly #parents = new Set<string>()

  /** @param onRelease called when a run is no longer an owner; must not throw */
  constructor(limits: FamilyLimits, ledger: Ledger, onRelease: (owner: string, heir: string | undefined) => void) {
    this.limits = limits
    this.#ledger = ledger
    this.#onRelease = onRelease
  }

  /** Returns why the run of this task may not launch another task; undefined if it may. */
  refusalOf(parent: TaskEntry): FamilyRefusal | undefined {
    const { id, depth = 0 } = parent.record
    const isRunning = parent.ref !== undefined && holdsSlot(parent.record.status)
    if (!isRunning || parent.graceMs === undefined) return 'parent-ended'
    if (depth >= this.limits.maxDepth) return 'too-deep'
    const owner = ownerOfRun(id)
    return this.#ledger.outstanding(owner) >= this.limits.maxChildren ? 'too-many' : undefined
  }

  /** Records the owner of a task that was registered, resumed or restored. */
  add({ record }: TaskEntry): void {
    this.setOwner(record.owner)
  }

  /** Records that an owner, which may be a run, owns tasks or the data of a feature. */
  setOwner(owner: string): void {
    const runId = runOfOwner(owner)
    if (runId !== undefined) this.#parents.add(runId)
  }

  /** The active tasks of a run, in the order of registration. */
  liveChildren({ record: { id } }: TaskEntry): TaskEntry[] {
    if (!this.#parents.has(id)) return NONE
    const owner = ownerOfRun(id)
    return [...this.#ledger.running(owner), ...this.#ledger.queued(owner)].sort(byRegistration)
  }

  /**
   * Ends the ownership of a run. What the run owned passes to the owner of its task, or to nobody if that owner was released. Returns false if the run
   * owned nothing.
   */
  release({ record: { id, owner }, isDisowned }: TaskEntry): boolean {
    if (!this.#parents.delete(id)) return false
    const heir = isDisowned ? undefined : owner
    this.#ledger.releaseOwner(ownerOfRun(id), heir)
    this.#onRelease(ownerOfRun(id), heir)
    return true
  }
}

const NONE: TaskEntry[] = []
