/**
 * Knows the owners to which the host delivers messages: an auto-trigger runs for the owner, or the host calls `beforeTurn`. A result of these owners
 * stays owed when `check_async_tasks` shows it, because a message will deliver it. For all other owners, showing the whole result delivers it.
 */
import type { Feature } from '../../async-tasks/feature.js'
import { OwnerTable } from '../../async-tasks/owner-table.js'

export class PushSubscribers implements Feature {
  readonly #byOwner = new Map<string, Set<object>>()
  /** The owners for which the host has begun a turn (`beforeTurn`). If it is full, the one whose last turn is the oldest is forgotten until its next. */
  readonly #inTurns = new OwnerTable<true>()
  #serves: ((owner: string) => boolean) | undefined

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

  /** Sets which owners receive a message as soon as something is owed to them. */
  serve(serves: (owner: string) => boolean): void {
    this.#serves = serves
  }

  /** Records that the host begins a turn of an owner. The message of that turn contains what is owed. */
  noteTurn(owner: string): void {
    this.#inTurns.set(owner, true)
  }

  /** Whether the host delivers messages to this owner. */
  has(owner: string): boolean {
    return this.#byOwner.has(owner) || this.#inTurns.has(owner) || this.#serves?.(owner) === true
  }

  /** Removes all subscribers of an owner. */
  released(owner: string): void {
    this.#byOwner.delete(owner)
    this.#inTurns.delete(owner)
  }
}

export const pushSubscribers = (): PushSubscribers => new PushSubscribers()
