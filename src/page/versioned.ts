/**
 * A collection that can list its changes since each version, so that the server needs no queue for a reader. A reader that was away or is slow receives
 * the current state of the changed items (promise G4 in docs/guarantees.md). The collection forgets old removals. A reader with an older version has to
 * read all items again.
 */

import { heldBytes } from './texts.js'

/** Numbers the changes of several collections in one sequence. */
export class Versions {
  #last = 0

  get last(): number {
    return this.#last
  }

  next(): number {
    return ++this.#last
  }
}

export interface Difference<Item> {
  readonly changed: readonly Item[]
  readonly removed: readonly string[]
}

/**
 * The maximum number of remembered removals, and the maximum size of their ids in bytes. The oldest removals are forgotten when there are twice as many.
 */
const MAX_REMOVALS = 20_000
const MAX_REMOVAL_BYTES = 4 * 1024 * 1024

export class Versioned<Item> {
  readonly #versions: Versions
  readonly #maxRemovals: number
  readonly #items = new Map<string, { readonly item: Item; version: number }>()
  /** The version of each remembered removal, earliest first. */
  readonly #removals = new Map<string, number>()
  /** The changes in the order of their versions. `#compact` removes a change when a later change of the same item has replaced it. */
  #changes: { readonly version: number; readonly id: string }[] = []
  #removalBytes = 0
  /** Removals up to this version may be missing. */
  #forgottenUpTo = 0

  constructor(versions: Versions, maxRemovals = MAX_REMOVALS) {
    this.#versions = versions
    this.#maxRemovals = maxRemovals
  }

  get size(): number {
    return this.#items.size
  }

  get(id: string): Item | undefined {
    return this.#items.get(id)?.item
  }

  /** All items, in the order in which they were added. */
  *values(): Generator<Item, void> {
    for (const { item } of this.#items.values()) yield item
  }

  versionOf(id: string): number {
    return this.#items.get(id)?.version ?? 0
  }

  add(id: string, item: Item): void {
    if (this.#removals.delete(id)) this.#removalBytes -= heldBytes(id)
    this.#items.set(id, { item, version: this.#note(id) })
  }

  touch(id: string): void {
    const entry = this.#items.get(id)
    if (entry !== undefined) entry.version = this.#note(id)
  }

  remove(id: string): void {
    if (!this.#items.delete(id)) return
    this.#removals.set(id, this.#note(id))
    this.#removalBytes += heldBytes(id)
    // Removals are forgotten many at a time, because finding the first entry of a Map is slow after many deletions.
    if (this.#removals.size > 2 * this.#maxRemovals || this.#removalBytes > 2 * MAX_REMOVAL_BYTES) {
      this.#forgetRemovals()
      this.#compact()
    }
  }

  /** Returns the changes since a version; undefined if some of them are forgotten. */
  since(version: number): Difference<Item> | undefined {
    if (version < this.#forgottenUpTo) return undefined
    const changed: Item[] = []
    const removed: string[] = []
    for (let at = this.#firstAfter(version); at < this.#changes.length; at += 1) {
      const change = this.#changes[at]
      if (change === undefined) break
      const entry = this.#items.get(change.id)
      if (entry?.version === change.version) changed.push(entry.item)
      else if (entry === undefined && this.#removals.get(change.id) === change.version) removed.push(change.id)
    }
    return { changed, removed }
  }

  #forgetRemovals(): void {
    for (const [oldest, version] of this.#removals) {
      if (this.#removals.size <= this.#maxRemovals && this.#removalBytes <= MAX_REMOVAL_BYTES) return
      this.#removals.delete(oldest)
      this.#removalBytes -= heldBytes(oldest)
      this.#forgottenUpTo = version
    }
  }

  #note(id: string): number {
    const version = this.#versions.next()
    this.#changes.push({ version, id })
    if (this.#changes.length > 2 * (this.#items.size + this.#removals.size) + 1000) this.#compact()
    return version
  }

  #compact(): void {
    const last = this.#changes.length - 1
    this.#changes = this.#changes.filter(
      ({ version, id }, index) =>
        // The last change is always kept, because its item receives the version only after `#note`.
        index === last || (this.#items.get(id)?.version ?? this.#removals.get(id)) === version,
    )
  }

  #firstAfter(version: number): number {
    let [low, high] = [0, this.#changes.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#changes[middle]?.version ?? Infinity) <= version) low = middle + 1
      else high = middle
    }
    return low
  }
}
