/** A set of ids with a maximum size. The oldest ids are dropped first. */
export class RecentIds {
  readonly #most: number
  /** In insertion order. */
  readonly #ids = new Set<string>()

  /** @param most the maximum number of ids */
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
