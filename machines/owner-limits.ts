/** Limits of each owner in a pool, so that the tasks of one owner do not keep those of the others from starting (promise H9). */

export interface OwnerLimits {
  /** Returns how many slots of the pool the tasks of one owner may hold; -1 for no limit. `max` is the limit of the pool. */
  readonly running: (max: number) => number
  /** How many tasks of one owner may wait in the queue of the pool. */
  readonly queued: number
  /** The maximum total size of what is held for these waiting tasks, in bytes. */
  readonly queuedBytes: number
  /** Returns the owner against whose limits a task counts. For the owner of a run's tasks, this is the owner of the run. */
  readonly payerOf: (owner: string) => string
}

/** A number for each owner. Only owners with another number than 0 take memory. */
export class CountByOwner {
  readonly #counts = new Map<string, number>()

  of(owner: string): number {
    return this.#counts.get(owner) ?? 0
  }

  add(owner: string, by: number): void {
    const count = this.of(owner) + by
    if (count === 0) this.#counts.delete(owner)
    else this.#counts.set(owner, count)
  }
}
