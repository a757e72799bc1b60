/** The ids that were added last. */
export class RecentIds {
  readonly #most: number
  /** The oldest first. */
  readonly #ids = new Set<string>()

  /** @param most how many are known; the oldest are forgotten */
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
