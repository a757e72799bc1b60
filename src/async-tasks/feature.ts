/** Features: what is done at the changes of tasks besides keeping their records. */
import type { StartRate, TaskTransition } from '../../machines/records.js'
import type { WaitEvent } from '../../machines/registry-events.js'
import type { Spending } from '../../machines/spending.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import type { StoredJson } from '../store/store.js'

/**
 * The hooks of a feature. They run after the transition, outside of it, and must not throw. Hooks of one kind run in the order of `features.ts`.
 * `ending`, `pruned`, `counted`, `spent` and `released` run inside the transition: they call no code of the host.
 */
export interface Feature {
  /** The run is to stop: its task was cancelled, or has reached a limit. */
  readonly abort?: (entry: TaskEntry, reason: unknown) => void
  /** The run is to conclude. @param excess the budget that was exceeded, in words */
  readonly wrapUp?: (entry: TaskEntry, excess: string) => void
  /** A task that has waited has a slot: its run starts. */
  readonly start?: (entry: TaskEntry) => void
  /** A run that has only waited works on: it has its slot again. */
  readonly resumed?: (entry: TaskEntry) => void
  /** A run has failed, and another one follows. @param isInterrupted it was interrupted, as by the end of a process */
  readonly repeated?: (entry: TaskEntry, isInterrupted: boolean) => void
  /** The questions of a task have changed, or its status has, or it has moved to the background, and it has not ended. */
  readonly changed?: (entry: TaskEntry) => void
  /** A task ends. @param apply changes what waits for it, in the same transition */
  readonly ending?: (entry: TaskEntry, apply: (event: WaitEvent) => void) => void
  /** What it keeps in the store besides tasks. */
  readonly states?: FeatureStates
  /** Whether the record of a task must be kept although it owes nothing. */
  readonly keeps?: (entry: TaskEntry) => boolean
  /** Whether the first task cannot go on before the second one has ended. */
  readonly leadsTo?: (entry: TaskEntry, other: TaskEntry) => boolean
  /** Starts of these subagents were counted, which have this rate. */
  readonly counted?: (rate: StartRate, names: readonly string[]) => void
  /** A task has ended; the streams have been notified. */
  readonly ended?: (entry: TaskEntry, transition: TaskTransition) => void
  /** The record of a task is not kept any longer. @param at when, in ms since the epoch */
  readonly pruned?: (entry: TaskEntry, at: number) => void
  /** An owner has spent something. */
  readonly spent?: (owner: string, amount: Spending) => void
  /** An owner has gone. @param heir to whom its tasks pass; undefined when nobody gets them */
  readonly released?: (owner: string, heir: string | undefined) => void
  /** A task was not started, because its launch could not be stored, or was refused for its id: nothing is owed for it. In the change that withdraws it. */
  readonly withdrawn?: (entry: TaskEntry, reason: string) => void
  /** The registry is about to be disposed: its streams are still open. */
  readonly closing?: () => void
  /** The streams of the registry are complete. */
  readonly disposed?: () => void
}

export interface FeatureStates {
  readonly feature: string
  /** The same before any task is restored: no task has started yet. Most features need only `restore`. */
  readonly prepare?: (states: ReadonlyMap<string, StoredJson>) => void
  /**
   * Takes over what an earlier process has stored, by id. Called once, also without any, when the tasks are restored, in the same batch. It must not
   * throw: what it cannot read it reports.
   */
  readonly restore: (states: ReadonlyMap<string, StoredJson>) => void
}

/** Makes a feature for a registry. It is also the key by which `TaskRegistry.use` finds it. */
export type FeatureMaker<Registry, F extends Feature> = (registry: Registry) => F

type Hook = Exclude<keyof Feature, 'states'>

/** The features of one registry. */
export class Features<Registry> {
  readonly #made = new Map<FeatureMaker<Registry, Feature>, Feature>()
  readonly #byHook = new Map<Hook, Feature[]>()

  /** The feature of a maker, which is made at the first call. Its hooks follow those of the features that were made before. */
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

  /** Whether a feature must keep the record of a task. */
  keep(entry: TaskEntry): boolean {
    return this.#byHook.get('keeps')?.some((feature) => feature.keeps?.(entry)) === true
  }

  /** Whether the first task cannot go on before the second one has ended, as a feature knows. */
  leadsTo(entry: TaskEntry, other: TaskEntry): boolean {
    return this.#byHook.get('leadsTo')?.some((feature) => feature.leadsTo?.(entry, other)) === true
  }

  /** Runs the hooks of one kind. */
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
