/**
 * Families: the tasks that the run of another task launches (promise F5). The run owns these tasks until it ends. After that, they and their
 * undelivered results belong to the owner of the run's task.
 */
import { ownerOfRun, runOfOwner } from '../run-owner.js'
import { holdsSlot } from '../task-status.js'
import type { Ledger } from '../ledger.js'
import type { ActiveTimes } from '../active-times.js'
import type { AdmissionRefusal, FamilyRefusal } from '../registry-events.js'
import { byRegistration, type TaskEntry } from '../task-entry.js'
import type { Handlers, Registration, RegistryCore, RegistryPart } from './part.js'

/** The maximum size of a family. */
export interface FamilyLimits {
  /** The maximum depth of nested launches: 1 for children that launch nothing. */
  readonly maxDepth: number
  /** The maximum number of tasks of one run that are active or have undelivered results. */
  readonly maxChildren: number
}

/** Tracks which runs own tasks. */
export class Families {
  readonly limits: FamilyLimits
  readonly #ledger: Ledger
  readonly #onRelease: (owner: string, heir: string | undefined) => void
  readonly #parents = new Set<string>()

  /** @param onRelease called when an owner is released, after its tasks have passed to its heir; must not throw */
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
    this.pass(ownerOfRun(id), isDisowned ? undefined : owner)
    return true
  }

  /** Passes what an owner has to its heir, or to nobody. */
  pass(owner: string, heir: string | undefined): void {
    this.#ledger.releaseOwner(owner, heir)
    this.#onRelease(owner, heir)
  }
}

const NONE: TaskEntry[] = []

export interface FamiliesOptions {
  readonly families: Families
  readonly active: ActiveTimes
}

export class FamiliesPart implements RegistryPart {
  readonly #core: RegistryCore
  readonly #options: FamiliesOptions

  constructor(core: RegistryCore, options: FamiliesOptions) {
    this.#core = core
    this.#options = options
  }

  readonly on: Handlers<'owner.release' | 'task.withdraw' | 'tasks.transfer'> = {
    'owner.release': ({ owner, heir }) => {
      this.#options.families.pass(owner, heir)
      this.#core.ownerChanged(owner)
      if (heir === undefined) this.#core.history.releaseOwner(owner)
      else this.#inherit(heir)
      this.#core.prune()
    },
    'task.withdraw': ({ entry, error, errorCode }, { defer }) => {
      // The tasks that its run was to own pass to its owner, who still receives their results.
      this.#release(entry)
      // Nobody receives the result of this task, because `stored()` reports the failure to the caller.
      entry.isDisowned = true
      defer(() => entry.ref?.send({ type: 'task.fail', error, errorCode }))
    },
    'tasks.transfer': ({ owner, heir, ids }) => {
      this.#core.ledger.transfer(owner, heir, ids)
      this.#core.ownerChanged(owner)
      this.#inherit(heir)
    },
  }

  refuse({ parent }: Registration): AdmissionRefusal | undefined {
    return parent && this.#options.families.refusalOf(parent)
  }

  add(entry: TaskEntry): void {
    this.#options.families.add(entry)
  }

  stop(entry: TaskEntry, _now: number, isLast: boolean): void {
    // The children of a durable task belong to its next run too.
    if (!isLast && !this.#options.active.has(entry)) this.#release(entry)
  }

  ended(entry: TaskEntry): void {
    this.#release(entry)
  }

  /** Passes the tasks that a run has launched to the owner of its task. */
  #release(entry: TaskEntry): void {
    if (this.#options.families.release(entry)) this.#core.ownerChanged(entry.record.owner)
  }

  #inherit(heir: string): void {
    this.#options.families.setOwner(heir)
    this.#core.ownerChanged(heir)
  }
}
