/** A set of keys with due times, such as reservations that expire and deadlines that pass. */
import { BinaryHeap } from './binary-heap.js'

interface Due<Key> {
  readonly key: Key
  readonly at: number
  /** A number that increases with each key. It orders keys with the same due time. */
  readonly order: number
}

/** How many outdated items the heap may contain, in addition to the number of keys, before it is rebuilt. */
const MAX_STALE = 64

/** Adding a key, removing a key and finding the earliest key take logarithmic amortised time. */
export class DueTimes<Key> {
  readonly #dues = new Map<Key, Due<Key>>()
  #heap = DueTimes.#newHeap<Key>()
  #order = 0

  static #newHeap<Key>(): BinaryHeap<Due<Key>> {
    return new BinaryHeap((a, b) => a.at < b.at || (a.at === b.at && a.order < b.order))
  }

  get size(): number {
    return this.#dues.size
  }

  has(key: Key): boolean {
    return this.#dues.has(key)
  }

  timeOf(key: Key): number | undefined {
    return this.#dues.get(key)?.at
  }

  /** Sets the due time of a key. Replaces an earlier due time of the same key. */
  set(key: Key, at: number): void {
    const due = { key, at, order: (this.#order += 1) }
    this.#dues.set(key, due)
    this.#heap.push(due)
    this.#limitStale()
  }

  /** Removes a key. Returns false if the key does not exist. */
  delete(key: Key): boolean {
    if (!this.#dues.delete(key)) return false
    this.#limitStale()
    return true
  }

  /** The earliest due time; undefined if there is no key. */
  get next(): number | undefined {
    return this.#earliest()?.at
  }

  /** The key with the earliest due time; undefined if there is no key. */
  get nextKey(): Key | undefined {
    return this.#earliest()?.key
  }

  /** Removes and returns the earliest key that is due at `now`. */
  take(now: number): Key | undefined {
    const due = this.#earliest()
    if (due === undefined || due.at > now) return undefined
    this.#heap.pop()
    this.#dues.delete(due.key)
    return due.key
  }

  /** Removes and returns all keys that are due at `now`, in the order of their times. */
  takeAll(now: number): Key[] {
    const keys: Key[] = []
    for (let key = this.take(now); key !== undefined; key = this.take(now)) keys.push(key)
    return keys
  }

  #earliest(): Due<Key> | undefined {
    for (;;) {
      const due = this.#heap.peek()
      if (due === undefined || this.#dues.get(due.key) === due) return due
      this.#heap.pop()
    }
  }

  #limitStale(): void {
    if (this.#heap.size > 2 * this.#dues.size + MAX_STALE) this.#dropStale()
  }

  #dropStale(): void {
    this.#heap = DueTimes.#newHeap()
    for (const due of this.#dues.values()) this.#heap.push(due)
  }
}
