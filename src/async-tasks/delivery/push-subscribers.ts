/**
 * Knows the owners to which the host delivers messages: an auto-trigger runs for the owner, or the host calls `beforeTurn`. A result of these owners
 * stays owed when `check_async_tasks` shows it, because a message will deliver it. For all other owners, showing the whole result delivers it.
 */
import type { Feature } from '../feature.js'

/** The maximum number of owners with turns to remember. Beyond it, the owner whose last turn is the oldest is forgotten until its next turn. */
const MAX_TURN_OWNERS = 1000

export class PushSubscribers implements Feature {
  readonly #byOwner = new Map<string, Set<object>>()
  /** The owners for which the host has begun a turn (`beforeTurn`). */
  readonly #inTurns = new Set<string>()

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

  /** Records that the host begins a turn of an owner. The message of that turn contains what is owed. */
  noteTurn(owner: string): void {
    this.#inTurns.delete(owner)
    this.#inTurns.add(owner)
    const [oldest] = this.#inTurns
    if (this.#inTurns.size > MAX_TURN_OWNERS && oldest !== undefined) this.#inTurns.delete(oldest)
  }

  /** Whether the host delivers messages to this owner. */
  has(owner: string): boolean {
    return this.#byOwner.has(owner) || this.#inTurns.has(owner)
  }

  /** Removes all subscribers of an owner. */
  released(owner: string): void {
    this.#byOwner.delete(owner)
    this.#inTurns.delete(owner)
  }
}

export const pushSubscribers = (): PushSubscribers => new PushSubscribers()
