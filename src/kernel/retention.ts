/**
 * Keeps items for a while and drops the earliest when there are too many, when they are too large, or when they are too old. Items that may not be
 * dropped yet, such as running tasks, count as well (`hold`).
 */
import { elapsedMs, unrefTimer, type Clock, type TimerLabel } from '../clock.js'

export interface RetentionOptions<Item extends object> {
  /** The maximum count of `add` and `hold` together. Default: no limit. */
  readonly maxCount?: number
  /** The maximum sum of sizes, in bytes or characters as the owner measures them. Default: no limit. */
  readonly maxSize?: number
  /** Called with each dropped item, when it no longer counts. Must not throw. */
  readonly onDropped: (item: Item) => void
  /** Drops items even if there is room for them. Default: none. */
  readonly sweep?: Sweep<Item>
}

/** Checks periodically for items that are too old, while there are items. */
export interface Sweep<Item extends object> {
  readonly clock: Clock
  /** The period in ms. */
  readonly everyMs: number
  readonly label: TimerLabel
  /**
   * Whether to drop the earliest item.
   * @param ageMs how long ago it was added
   */
  readonly isObsolete: (item: Item, ageMs: number) => boolean
}

/** A handle to a kept item, to remove or resize it. */
export interface Retained {
  readonly size: number
}

interface Place<Item extends object> extends Retained {
  /** Undefined once the item is dropped, so that this place does not keep it alive. */
  item: Item | undefined
  size: number
  readonly count: number
  /** When it was added, on the clock of `elapsedMs`; 0 without a sweep. */
  readonly at: number
}

/** Below this length the array is not compacted. */
const MIN_COMPACTED = 32

export class Retention<Item extends object> {
  readonly #options: RetentionOptions<Item>
  /** The items from `#first` on. An array, because finding the first entry of a map is slow after many deletions. */
  #places: Place<Item>[] = []
  #first = 0
  /** How many items can be dropped. */
  #length = 0
  #count = 0
  #size = 0
  #timer: unknown
  #isClosed = false

  constructor(options: RetentionOptions<Item>) {
    this.#options = options
  }

  get length(): number {
    return this.#length
  }

  /** The total count, including `hold`. */
  get count(): number {
    return this.#count
  }

  /** The total size, including `hold`. */
  get size(): number {
    return this.#size
  }

  /** Counts an item that cannot be dropped yet, even beyond the limits. */
  hold(size: number, count = 0): void {
    this.#size += size
    this.#count += count
  }

  /** Undoes `hold`. */
  giveBack(size: number, count = 0): void {
    this.hold(-size, -count)
  }

  /** Drops items until `size` fits, and holds `size`. Returns false, and holds nothing, if it does not fit. */
  take(size: number): boolean {
    const { maxSize = Infinity } = this.#options
    while (this.#size + size > maxSize) if (!this.#dropFirst()) return false
    this.#size += size
    return true
  }

  /**
   * Adds the latest item. The next `trim` may drop it.
   * @param ageMs the age of the item; not more than that of the items before it
   */
  add(item: Item, size = 0, count = 1, ageMs = 0): Retained {
    const { sweep } = this.#options
    const at = sweep === undefined ? 0 : elapsedMs(sweep.clock) - ageMs
    const place: Place<Item> = { item, size, count, at }
    this.#places.push(place)
    this.#length += 1
    this.hold(size, count)
    return place
  }

  /** Changes the size of an item. No effect if the item is gone. */
  resize(retained: Retained, size: number): void {
    const place = retained as Place<Item>
    if (place.item === undefined) return
    this.#size += size - place.size
    place.size = size
  }

  /** Removes an item without calling `onDropped`. No effect if the item is gone. */
  remove(retained: Retained): void {
    this.#takeOut(retained as Place<Item>)
  }

  /** Drops items beyond the limits. */
  trim(): void {
    const { maxCount = Infinity, maxSize = Infinity } = this.#options
    while (this.#count > maxCount || this.#size > maxSize) if (!this.#dropFirst()) break
    this.#sweepLater()
  }

  /** Drops obsolete items, and items beyond the limits. */
  sweep(): void {
    const { sweep } = this.#options
    if (sweep !== undefined) this.dropWhile(sweep.isObsolete)
    this.trim()
  }

  /** Drops the earliest items up to the first that is not obsolete. Returns how many. */
  dropWhile(isObsolete: (item: Item, ageMs: number) => boolean): number {
    const { sweep } = this.#options
    const now = sweep === undefined ? 0 : elapsedMs(sweep.clock)
    let dropped = 0
    for (let first = this.#findFirst(); first?.item !== undefined; first = this.#findFirst()) {
      if (!isObsolete(first.item, now - first.at)) break
      this.#dropFirst()
      dropped += 1
    }
    return dropped
  }

  /** Stops the sweeps. Items stay, and `trim` still works. */
  close(): void {
    this.#isClosed = true
    const { sweep } = this.#options
    if (this.#timer !== undefined) sweep?.clock.clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #findFirst(): Place<Item> | undefined {
    for (; this.#first < this.#places.length; this.#first += 1) {
      const place = this.#places[this.#first]
      if (place?.item !== undefined) return place
    }
    return undefined
  }

  /** Returns false if there is no item. */
  #dropFirst(): boolean {
    const place = this.#findFirst()
    const item = place?.item
    if (place === undefined || item === undefined) return false
    this.#takeOut(place)
    this.#options.onDropped(item)
    return true
  }

  #takeOut(place: Place<Item>): void {
    if (place.item === undefined) return
    place.item = undefined
    this.#length -= 1
    this.giveBack(place.size, place.count)
    if (this.#places.length < Math.max(MIN_COMPACTED, 2 * this.#length)) return
    this.#places = this.#places.filter(({ item }) => item !== undefined)
    this.#first = 0
  }

  #sweepLater(): void {
    const { sweep } = this.#options
    if (sweep === undefined || this.#timer !== undefined || this.#length === 0 || this.#isClosed) return
    this.#timer = sweep.clock.setTimeout(
      () => {
        this.#timer = undefined
        this.sweep()
      },
      sweep.everyMs,
      sweep.label,
    )
    // The timer must not keep the process alive.
    unrefTimer(this.#timer)
  }
}
