/** Features: code that reacts to changes of tasks. */
import type { StartRate, TaskTransition } from '../../machines/records.js'
import type { WaitEvent } from '../../machines/registry-events.js'
import type { Spending } from '../../machines/spending.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import type { StoredJson } from '../store/store.js'

/**
 * The hooks of a feature. They run after the transition and must not throw. Hooks of one kind run in the order of `features.ts`. `ending`, `pruned`,
 * `counted`, `spent` and `released` run inside the transition and call no host code.
 */
export interface Feature {
  /** The run must stop, because its task was cancelled or has reached a limit. */
  readonly abort?: (entry: TaskEntry, reason: unknown) => void
  /**
   * The run must conclude.
   * @param excess the exceeded budget, in words
   */
  readonly wrapUp?: (entry: TaskEntry, excess: string) => void
  /** A waiting task has a slot. Its run starts. */
  readonly start?: (entry: TaskEntry) => void
  /** The wait of a run is over, and it has its slot again. */
  readonly resumed?: (entry: TaskEntry) => void
  /**
   * A run has failed, and another one follows.
   * @param isInterrupted whether it was interrupted, for example by the end of its process
   */
  readonly repeated?: (entry: TaskEntry, isInterrupted: boolean) => void
  /** The questions or status of an active task have changed, or it has moved to the background. */
  readonly changed?: (entry: TaskEntry) => void
  /**
   * A task ends.
   * @param apply changes the tasks that wait for it, in the same transition
   */
  readonly ending?: (entry: TaskEntry, apply: (event: WaitEvent) => void) => void
  /** The data that the feature stores besides tasks. */
  readonly states?: FeatureStates
  /** Whether the record of a task must be kept although nothing is owed for it. */
  readonly keeps?: (entry: TaskEntry) => boolean
  /** Whether the first task waits for the second one to end. */
  readonly leadsTo?: (entry: TaskEntry, other: TaskEntry) => boolean
  /** Starts of these subagents with this rate were counted. */
  readonly counted?: (rate: StartRate, names: readonly string[]) => void
  /** A task has ended, and the streams were notified. */
  readonly ended?: (entry: TaskEntry, transition: TaskTransition) => void
  /**
   * The record of a task was pruned.
   * @param at when, in ms since the epoch
   */
  readonly pruned?: (entry: TaskEntry, at: number) => void
  /** An owner has used something. */
  readonly spent?: (owner: string, amount: Spending) => void
  /**
   * An owner was released.
   * @param heir the new owner of its tasks; undefined if there is none
   */
  readonly released?: (owner: string, heir: string | undefined) => void
  /**
   * A task was not started, because its launch could not be stored or its id was refused. No result is owed. Called in the change that withdraws the
   * task.
   */
  readonly withdrawn?: (entry: TaskEntry, reason: string) => void
  /** The registry will be disposed. Its streams are still open. */
  readonly closing?: () => void
  /** The streams of the registry have completed. */
  readonly disposed?: () => void
}

export interface FeatureStates {
  readonly feature: string
  /** Called before any task is restored or started. Most features need only `restore`. */
  readonly prepare?: (states: ReadonlyMap<string, StoredJson>) => void
  /**
   * Restores what an earlier process has stored, by id. Called once, even if there is no data, when the tasks are restored and in the same batch.
   * Must not throw; it reports what it cannot read.
   */
  readonly restore: (states: ReadonlyMap<string, StoredJson>) => void
}

/** Creates a feature for a registry. `TaskRegistry.use` finds the feature by this function. */
export type FeatureMaker<Registry, F extends Feature> = (registry: Registry) => F

type Hook = Exclude<keyof Feature, 'states'>

export class Features<Registry> {
  readonly #made = new Map<FeatureMaker<Registry, Feature>, Feature>()
  readonly #byHook = new Map<Hook, Feature[]>()

  /** Returns the feature of a maker, and creates it on the first call. Its hooks run after those of earlier features. */
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

  /** Whether any feature must keep the record of a task. */
  keep(entry: TaskEntry): boolean {
    return this.#byHook.get('keeps')?.some((feature) => feature.keeps?.(entry)) === true
  }

  /** Whether, according to any feature, the first task waits for the second one to end. */
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
