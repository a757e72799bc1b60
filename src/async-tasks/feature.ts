/** Features: parts of the manager, such as schedules and monitors, that react to changes of tasks. */
import type { TaskTransition } from '../../machines/transitions.js'
import type { StartRate } from '../../machines/task-admission.js'
import type { WaitEvent } from '../../machines/registry-events.js'
import type { Usage } from '../../machines/usage.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import type { Run } from '../engine/engine.js'
import type { ResolvedRunner } from '../engine/runner.js'
import type { AgentTasksError } from '../errors.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import type { RunFields } from '../protocol/run-fields.js'
import type { WAIT_REASONS } from '../protocol/telemetry.js'
import type { StoredDelivery, StoredJson } from '../store/store.js'

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
  /** Creates the error of a launch that the feature refuses, before anything has changed. Undefined if it does not refuse it. */
  readonly refusal?: (launch: CheckedLaunch) => AgentTasksError | undefined
  /** A queued task has received a slot, so its run starts. */
  readonly start?: (entry: TaskEntry) => void
  /**
   * The engine has accepted a run of the task. After an abort, the task waits `graceMs` for it.
   * @param isResumed whether an earlier process has started the run
   */
  readonly runStarted?: (
    entry: TaskEntry,
    run: Run,
    runner: ResolvedRunner,
    graceMs: number,
    isResumed: boolean,
  ) => void
  /** A run has settled, and so its task may end. Not called for a run that the process has left. */
  readonly runEnded?: (entry: TaskEntry, run: Run) => void
  /** The wait of a durable run is over, and the run has its slot again. */
  readonly resumed?: (entry: TaskEntry) => void
  /**
   * A run has failed, and the task will be run again.
   * @param isInterrupted whether the run was interrupted, for example because its process died
   */
  readonly repeated?: (entry: TaskEntry, isInterrupted: boolean) => void
  /** A run has reported progress or another field, or has appended to its output (`text`). */
  readonly reported?: (entry: TaskEntry, text?: string) => void
  /** The questions or status of an active task have changed, or it has moved to the background. Not called for a run that begins with the launch. */
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
  /**
   * Why a queued task does not start, other than for want of a slot of its pool. What holds all tasks of its owner is an `ownerHold`.
   * @param nameOf returns the id of a task as the reader knows it
   */
  readonly waitReason?: (entry: TaskEntry, nameOf: NameOf) => WaitReason | undefined
  /** Why no task of an owner starts; undefined if they start. */
  readonly ownerHold?: (owner: string) => OwnerHold | undefined
  /** Lines above a list of the tasks of an owner, or of all owners. */
  readonly listLines?: (owner: string | undefined) => readonly string[]
  /** Whether an owed result may be delivered now. */
  readonly mayDeliver?: (entry: TaskEntry) => boolean
  /** Whether a message of an earlier process has arrived; undefined if the feature does not know. Then the answer of the host counts. */
  readonly wasDelivered?: (delivery: StoredDelivery) => boolean | undefined
  /** Starts of runs of these subagents were counted, because each subagent has a start rate. */
  readonly counted?: (rate: StartRate, names: readonly string[]) => void
  /** A task has ended, and the streams were notified. */
  readonly ended?: (entry: TaskEntry, transition: TaskTransition) => void
  /**
   * The record of a task was pruned.
   * @param at when, in ms since the epoch
   */
  readonly pruned?: (entry: TaskEntry, at: number) => void
  /** A task of this owner has used tokens or other resources, possibly in an earlier process (`isEarlier`). */
  readonly spent?: (owner: string, amount: Usage, isEarlier?: boolean) => void
  /** The host has released an owner. */
  readonly released?: (owner: string, heir: string | undefined) => void
  /**
   * A task was not started, because its launch could not be stored or its id was refused. No result is owed for it. The hook runs in the change that
   * ends the task.
   */
  readonly withdrawn?: (entry: TaskEntry, reason: string) => void
  /** The process ends, and the next one goes on with the task. Called for each active task of a suspended registry, after `disposed`. */
  readonly suspended?: (entry: TaskEntry, how: Suspension) => void
  /** The registry will be disposed. Its streams are still open. */
  readonly closing?: () => void
  /** The streams of the registry have completed. */
  readonly disposed?: () => void
}

/** A launch whose input was checked. */
export interface CheckedLaunch {
  readonly input: Omit<LaunchTaskInput, keyof RunFields>
  readonly definition: ResolvedRunner
}

export type NameOf = (task: { readonly id: string }) => string

/** Why a task does not start. */
export interface WaitReason {
  /** The reason in metrics. */
  readonly kind: (typeof WAIT_REASONS)[number]
  /** The reason in lists, such as `waits for task-1`. */
  readonly text: string
}

/** Why no task of an owner starts. */
export interface OwnerHold extends WaitReason {
  /** Since when, in ms since the epoch. */
  readonly since: number
  /** What a new task waits for, as a sentence without a full stop. */
  readonly sentence: string
  /** How long the tasks wait, such as `until …`. */
  readonly until: string
  /** Creates the error of a launch that cannot wait. */
  readonly refusal: () => AgentTasksError
}

/** Why a queued task does not start, other than for want of a slot of its pool. */
export interface WaitReasons {
  readonly own?: WaitReason | undefined
  /** What holds all tasks of its owner. */
  readonly ofOwner?: OwnerHold | undefined
}

/** What a suspended task was doing: it waited, or its run goes on without this process, or its run is aborted with this reason. */
export type Suspension = 'queued' | 'left' | Error

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

type Arguments<H extends Hook> = Parameters<NonNullable<Feature[H]>>

type Answer<H extends Hook> = ReturnType<NonNullable<Feature[H]>>

/** Hooks that return the answer of a feature. */
type Question = 'waitReason' | 'ownerHold' | 'wasDelivered' | 'refusal'

export class Features<Registry> {
  readonly #made = new Map<FeatureMaker<Registry, Feature>, Feature>()
  readonly #byHook = new Map<Hook, readonly Feature[]>()

  /** Returns the feature that `make` has created, or creates it. The hooks of a new feature run after those of the existing features. */
  use<F extends Feature>(registry: Registry, make: FeatureMaker<Registry, F>): F {
    const present = this.#made.get(make)
    if (present !== undefined) return present as F
    const feature = make(registry)
    this.#made.set(make, feature)
    this.#byHook.clear()
    return feature
  }

  states(): FeatureStates[] {
    return Array.from(this.#made.values()).flatMap(({ states }) => states ?? [])
  }

  /** Returns the answer of the first feature that has one. */
  first<H extends Question>(hook: H, ...args: Arguments<H>): Answer<H> | undefined {
    for (const feature of this.#with(hook)) {
      const answer = (feature[hook] as (...args: unknown[]) => Answer<H>)(...args)
      if (answer !== undefined) return answer
    }
    return undefined
  }

  /** Whether any feature says yes. */
  any<H extends 'keeps' | 'leadsTo'>(hook: H, ...args: Arguments<H>): boolean {
    return this.#with(hook).some((feature) => (feature[hook] as (...args: unknown[]) => boolean)(...args))
  }

  /** Whether all features that have the hook say yes. */
  all(hook: 'mayDeliver', ...args: Arguments<'mayDeliver'>): boolean {
    return this.#with(hook).every((feature) => feature[hook]?.(...args))
  }

  listLines(owner: string | undefined): string[] {
    return this.#with('listLines').flatMap((feature) => feature.listLines?.(owner) ?? [])
  }

  run<H extends Hook>(hook: H, ...args: Arguments<H>): void {
    for (const feature of this.#with(hook)) {
      ;(feature[hook] as (...args: unknown[]) => void)(...args)
    }
  }

  #with(hook: Hook): readonly Feature[] {
    const known = this.#byHook.get(hook)
    if (known !== undefined) return known
    const found = [...this.#made.values()].filter((feature) => feature[hook] !== undefined)
    this.#byHook.set(hook, found)
    return found
  }
}
