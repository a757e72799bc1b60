/** Features: parts of the manager, such as schedules and monitors, that react to changes of tasks. */
import type { StartRate, TaskTransition } from '../../machines/records.js'
import type { WaitEvent } from '../../machines/registry-events.js'
import type { Spending } from '../../machines/spending.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import type { StoredJson } from '../store/store.js'

/**
 * The hooks of a feature. They must not throw. Hooks with the same name run in the order of `features.ts`. Most hooks run after the transition, when
 * host code may run too. But `ending`, `pruned`, `counted`, `spent` and `released` run inside the transition and must not call host code.
 */
export interface Feature {
  /** The run of the task must stop, because the task was cancelled or has reached a limit. */
  readonly abort?: (entry: TaskEntry, reason: unknown) => void
  /**
   * The run of the task must conclude, because a budget is exceeded.
   * @param excess the exceeded budget, in words
   */
  readonly wrapUp?: (entry: TaskEntry, excess: string) => void
  /** A queued task has received a slot, so its run starts. */
  readonly start?: (entry: TaskEntry) => void
  /** The wait of a durable run is over, and the run has its slot again. */
  readonly resumed?: (entry: TaskEntry) => void
  /**
   * A run has failed, and the task will be run again.
   * @param isInterrupted whether the run was interrupted, for example because its process died
   */
  readonly repeated?: (entry: TaskEntry, isInterrupted: boolean) => void
  /** The questions or status of an active task have changed, or it has moved to the background. */
  readonly changed?: (entry: TaskEntry) => void
  /**
   * A task is ending. Other tasks may wait for that.
   * @param apply changes a waiting task in the same transition
   */
  readonly ending?: (entry: TaskEntry, apply: (event: WaitEvent) => void) => void
  /** How the feature restores the data that it has stored in rows of its own. */
  readonly states?: FeatureStates
  /** Whether the record of a task must not be pruned yet, although no result of the task is owed. */
  readonly keeps?: (entry: TaskEntry) => boolean
  /** Whether `entry` cannot continue before `other` has ended. */
  readonly leadsTo?: (entry: TaskEntry, other: TaskEntry) => boolean
  /** Starts of runs of these subagents were counted, because each subagent has a start rate. */
  readonly counted?: (rate: StartRate, names: readonly string[]) => void
  /** A task has ended, and the streams were notified. */
  readonly ended?: (entry: TaskEntry, transition: TaskTransition) => void
  /**
   * The record of a task was pruned.
   * @param at when, in ms since the epoch
   */
  readonly pruned?: (entry: TaskEntry, at: number) => void
  /** A task of this owner has used tokens or other resources. */
  readonly spent?: (owner: string, amount: Spending) => void
  /** The host has released an owner. */
  readonly released?: (owner: string, heir: string | undefined) => void
  /**
   * A task was not started, because its launch could not be stored or its id was refused. No result is owed for it. The hook runs in the change that
   * ends the task.
   */
  readonly withdrawn?: (entry: TaskEntry, reason: string) => void
  /** The registry will be disposed. Its streams are still open. */
  readonly closing?: () => void
  /** The streams of the registry have completed. */
  readonly disposed?: () => void
}

export interface FeatureStates {
  readonly feature: string
  /** Called with the stored data before any task is restored or started. Most features need only `restore`. */
  readonly prepare?: (states: ReadonlyMap<string, StoredJson>) => void
  /**
   * Restores the rows of an earlier process. `states` has them by id; it is empty if there are none. Called once, while the tasks are restored, in the
   * same batch. Must not throw: it reports rows that it cannot read.
   */
  readonly restore: (states: ReadonlyMap<string, StoredJson>) => void
}

/** Creates a feature of a registry. The function itself is the key with which `TaskRegistry.use` finds the feature again. */
export type FeatureMaker<Registry, F extends Feature> = (registry: Registry) => F

type Hook = Exclude<keyof Feature, 'states'>

export class Features<Registry> {
  readonly #made = new Map<FeatureMaker<Registry, Feature>, Feature>()
  readonly #byHook = new Map<Hook, Feature[]>()

  /** Returns the feature that `make` has created, or creates it. The hooks of a new feature run after those of the existing features. */
  use<F extends Feature>(registry: Registry, make: FeatureMaker<Registry, F>): F {
    const present = this.#made.get(make)
    if (present !== undefined) return present as F
    const feature = make(registry)
    this.#made.set(make, feature)
    for (const hook of HOOKS) {
      if (feature[hook] === undefined) continue
      const features = this.#byHook.get(hook)
      if (features === undefined) this.#byHook.set(hook, [feature])
      else features.push(feature)
    }
    return feature
  }

  states(): FeatureStates[] {
    return Array.from(this.#made.values()).flatMap(({ states }) => states ?? [])
  }

  /** Whether any feature needs the record of a task. */
  keep(entry: TaskEntry): boolean {
    return this.#byHook.get('keeps')?.some((feature) => feature.keeps?.(entry)) === true
  }

  /** Whether a feature knows that `entry` cannot continue before `other` has ended. */
  leadsTo(entry: TaskEntry, other: TaskEntry): boolean {
    return this.#byHook.get('leadsTo')?.some((feature) => feature.leadsTo?.(entry, other)) === true
  }

  run<H extends Hook>(hook: H, ...args: Parameters<NonNullable<Feature[H]>>): void {
    for (const feature of this.#byHook.get(hook) ?? []) {
      ;(feature[hook] as (...args: unknown[]) => void)(...args)
    }
  }
}

const HOOKS = Object.keys({
  abort: true,
  wrapUp: true,
  start: true,
  resumed: true,
  repeated: true,
  changed: true,
  ending: true,
  keeps: true,
  leadsTo: true,
  counted: true,
  ended: true,
  pruned: true,
  spent: true,
  released: true,
  withdrawn: true,
  closing: true,
  disposed: true,
} satisfies Record<Hook, true>) as Hook[]
