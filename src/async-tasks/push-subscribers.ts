/** The owners whose messages the host delivers: what their own tools return is not a delivery. */

export class PushSubscribers {
  readonly #byOwner = new Map<string, Set<object>>()

  /** Adds a subscriber. Returns an unsubscribe function. */
  add(owner: string): () => void {
    const subscribers = this.#byOwner.get(owner) ?? new Set()
    const subscriber = {}
    this.#byOwner.set(owner, subscribers.add(subscriber))
    return () => {
      subscribers.delete(subscriber)
      if (subscribers.size === 0 && this.#byOwner.get(owner) === subscribers) this.#byOwner.delete(owner)
    }
  }

  has(owner: string): boolean {
    return this.#byOwner.has(owner)
  }

  /** Removes all subscribers of an owner. */
  remove(owner: string): void {
    this.#byOwner.delete(owner)
  }
}
