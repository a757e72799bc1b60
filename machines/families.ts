/**
 * Families: the tasks that a run launches (F5). While its run lasts, a task owns them, as an owner of its own; when it ends, they and what is
 * owed for them pass to its owner.
 */
import { holdsSlot } from './task-status.js'
import type { Ledger } from './ledger.js'
import { byRegistration, type TaskEntry } from './task-entry.js'

/** The owner of what a run launches is this and the id of its task. */
const RUN_OWNER_PREFIX = 'run:'

/** The owner of the tasks that the run of a task launches, while it lasts. */
export const ownerOfRun = (taskId: string): string => RUN_OWNER_PREFIX + taskId

/** The id of the task whose run is this owner; undefined for another owner. */
export const runOfOwner = (owner: string): string | undefined =>
  owner.startsWith(RUN_OWNER_PREFIX) ? owner.slice(RUN_OWNER_PREFIX.length) : undefined

/** How large a family may be. */
export interface FamilyLimits {
  /** How deep: 1 for children that launch nothing. */
  readonly maxDepth: number
  /** How many tasks of one run may run or be owed to it. */
  readonly maxChildren: number
}

/** Why a run may not launch a task. */
export type FamilyRefusal = 'parent-ended' | 'too-deep' | 'too-many'

/** Knows which tasks own others. */
export class Families {
  readonly limits: FamilyLimits
  readonly #ledger: Ledger
  readonly #onRelease: (owner: string, heir: string | undefined) => void
  /** The ids of the tasks whose runs own others. */
  readonly #parents = new Set<string>()

  /** @param onRelease called when a run ceases to be an owner; it must not throw */
  constructor(limits: FamilyLimits, ledger: Ledger, onRelease: (owner: string, heir: string | undefined) => void) {
    this.limits = limits
    this.#ledger = ledger
    this.#onRelease = onRelease
  }

  /** Why this task may not launch another one; undefined when it may. */
  refusalOf(parent: TaskEntry): FamilyRefusal | undefined {
    const { id, depth = 0 } = parent.record
    const isRunning = parent.ref !== undefined && holdsSlot(parent.record.status)
    if (!isRunning || parent.graceMs === undefined) return 'parent-ended'
    if (depth >= this.limits.maxDepth) return 'too-deep'
    const owner = ownerOfRun(id)
    return this.#ledger.outstanding(owner) >= this.limits.maxChildren ? 'too-many' : undefined
  }

  /** A task was admitted, resumed or restored. */
  add({ record }: TaskEntry): void {
    this.setOwner(record.owner)
  }

  /** Tasks, or what a feature keeps, have this owner from now on. */
  setOwner(owner: string): void {
    const runId = runOfOwner(owner)
    if (runId !== undefined) this.#parents.add(runId)
  }

  /** The tasks of a run that have not ended, in the order of registration. */
  liveChildren({ record: { id } }: TaskEntry): TaskEntry[] {
    if (!this.#parents.has(id)) return NONE
    const owner = ownerOfRun(id)
    return [...this.#ledger.running(owner), ...this.#ledger.queued(owner)].sort(byRegistration)
  }

  /** A run has ended: what it owned passes to the owner of its task, or to no one when that is gone. False when it owned nothing. */
  release({ record: { id, owner }, isDisowned }: TaskEntry): boolean {
    if (!this.#parents.delete(id)) return false
    const heir = isDisowned ? undefined : owner
    this.#ledger.releaseOwner(ownerOfRun(id), heir)
    this.#onRelease(ownerOfRun(id), heir)
    return true
  }
}

const NONE: TaskEntry[] = []
