/**
 * Knows the launches in the background whose tasks do not exist yet, because their subagent is looked up or their commands are submitted first. A model
 * often launches tasks and waits for them in one step, and its calls are made in parallel.
 */
import type { Feature } from './feature.js'

export class PendingLaunches implements Feature {
  readonly #byOwner = new Map<string, Set<Promise<unknown>>>()

  /**
   * Adds a launch for an owner until its promise has settled.
   * @returns the same promise
   */
  track<T>(owner: string, launch: Promise<T>): Promise<T> {
    const launches = this.#byOwner.get(owner) ?? new Set()
    this.#byOwner.set(owner, launches.add(launch))
    const remove = (): void => {
      launches.delete(launch)
      if (launches.size === 0 && this.#byOwner.get(owner) === launches) this.#byOwner.delete(owner)
    }
    launch.then(remove, remove)
    return launch
  }

  disposed(): void {
    this.#byOwner.clear()
  }

  /** Resolves when the pending launches of the owner have settled; without an owner, those of all owners. Undefined if there are none. */
  settled(owner: string | undefined): Promise<unknown> | undefined {
    const launches = owner === undefined ? [...this.#byOwner.values()] : [this.#byOwner.get(owner) ?? []]
    const pending = launches.flatMap((of) => [...of])
    return pending.length === 0 ? undefined : Promise.allSettled(pending)
  }
}

export const pendingLaunches = (): PendingLaunches => new PendingLaunches()
