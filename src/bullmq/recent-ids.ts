/** A bounded set of the ids that were added last. */
export class RecentIds {
  readonly #most: number
  /** In insertion order. */
  readonly #ids = new Set<string>()

  /** @param most the size of the set; the oldest ids are dropped */
  constructor(most: number) {
    this.#most = most
  }

  /** Adds an id. Returns whether it is new. */
  add(id: string): boolean {
    if (this.#ids.has(id)) return false
    this.#ids.add(id)
    for (const oldest of this.#ids) {
      if (this.#ids.size <= this.#most) break
      this.#ids.delete(oldest)
    }
    return true
  }
}
