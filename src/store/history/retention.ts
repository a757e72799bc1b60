/**
 * Keeps items for a while. Drops the earliest items if there are too many, if they are too large, or if they are too old. Items that must not be
 * dropped yet, such as running tasks, count as well (`hold`).
 */
import { elapsedMs, unrefTimer, type Clock, type TimerLabel } from '../../system/clock.js'

export interface RetentionOptions<Item extends object> {
  /** The maximum number of items, including those of `hold`. Default: no limit. */
  readonly maxCount?: number
  /** The maximum total size of the items, in a unit of the caller such as bytes. Default: no limit. */
  readonly maxSize?: number
  /** Called with each dropped item, after its count and size are subtracted. Must not throw. */
  readonly onDropped: (item: Item) => void
  /** How items are dropped because of their age, even if there is room for them. Default: they are not. */
  readonly sweep?: Sweep<Item>
}

/** A periodic check for items that are too old. The timer is set only while there are items. */
export interface Sweep<Item extends object> {
  readonly clock: Clock
  /** The period in ms. */
  readonly everyMs: number
  readonly label: TimerLabel
  /**
   * Whether to drop the earliest item because of its age.
   * @param ageMs the time since the item was added, in ms
   */
  readonly isObsolete: (item: Item, ageMs: number) => boolean
}

/** A handle to a kept item, to remove or resize it. */
export interface Retained {
  readonly size: number
}

interface Place<Item extends object> extends Retained {
  /** Undefined when the item was dropped, so that it can be freed from memory although its place in the array remains. */
  item: Item | undefined
  size: number
  readonly count: number
  /** When the item was added, on the clock of `elapsedMs`; 0 without a sweep. */
  readonly at: number
}

/** A shorter array is not compacted. */
const MIN_COMPACTED = 32

export class Retention<Item extends object> {
  readonly #options: RetentionOptions<Item>
  /** The items, from `#first` on. This is an array and not a map, because finding the first entry of a map is slow after many deletions. */
  #places: Place<Item>[] = []
  #first = 0
  /** The number of items in `#places` that were not dropped. */
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

  /** The number of items, including those of `hold`. */
  get count(): number {
    return this.#count
  }

  /** The total size of the items, including those of `hold`. */
  get size(): number {
    return this.#size
  }

  /** Counts an item that must not be dropped yet. Its count and size may exceed the limits. */
  hold(size: number, count = 0): void {
    this.#size += size
    this.#count += count
  }

  /** Subtracts what `hold` has added. */
  giveBack(size: number, count = 0): void {
    this.hold(-size, -count)
  }

  /** Reserves `size`, after dropping as many items as necessary. Returns false, and reserves nothing, if it does not fit even then. */
  take(size: number): boolean {
    const { maxSize = Infinity } = this.#options
    while (this.#size + size > maxSize) if (!this.#dropFirst()) return false
    this.#size += size
    return true
  }

  /**
   * Adds an item. The next `trim` may drop it.
   * @param ageMs the age of the item. Not older than the items that were added before
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

  /** Changes the size of an item. Has no effect on an item that was dropped or removed. */
  resize(retained: Retained, size: number): void {
    const place = retained as Place<Item>
    if (place.item === undefined) return
    this.#size += size - place.size
    place.size = size
  }

  /** Removes an item without calling `onDropped`. Has no effect on an item that was dropped or removed. */
  remove(retained: Retained): void {
    this.#takeOut(retained as Place<Item>)
  }

  /** Drops the earliest items until the others are within the limits. */
  trim(): void {
    const { maxCount = Infinity, maxSize = Infinity } = this.#options
    while (this.#count > maxCount || this.#size > maxSize) if (!this.#dropFirst()) break
    this.#sweepLater()
  }

  /** Drops items that are too old, and then as many as exceed the limits. */
  sweep(): void {
    const { sweep } = this.#options
    if (sweep !== undefined) this.dropWhile(sweep.isObsolete)
    this.trim()
  }

  /** Drops the earliest items, until one of them is not obsolete. Returns how many were dropped. */
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

  /** Stops the periodic checks. The items stay, and `trim` still works. */
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

  /** Drops the earliest item. Returns false if there is none. */
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
    // Without this, the timer would keep the process alive.
    unrefTimer(this.#timer)
  }
}
