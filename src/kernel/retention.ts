/**
 * Items that are kept for a while and dropped again, the earliest first: when there are too many, when they hold too much, or when they are too
 * old. What may not be dropped yet counts as well (`hold`): a task that runs, beside those that have ended.
 */
import { elapsedMs, unrefTimer, type Clock, type TimerLabel } from '../clock.js'

export interface RetentionOptions<Item extends object> {
  /** The most that `add` and `hold` count. Default: no limit. */
  readonly maxCount?: number
  /** The largest sum of sizes, in the unit of the owner: bytes or characters. Default: no limit. */
  readonly maxSize?: number
  /** Called with each item that is dropped, when it no longer counts. It must not throw. */
  readonly onDropped: (item: Item) => void
  /** Items that go although there is room for them. Default: none. */
  readonly sweep?: Sweep<Item>
}

/** Looks again and again for what is too old, as long as there is an item. */
export interface Sweep<Item extends object> {
  readonly clock: Clock
  /** How often, in ms. */
  readonly everyMs: number
  readonly label: TimerLabel
  /** Whether the earliest item is to go. @param ageMs how long ago it was added */
  readonly isObsolete: (item: Item, ageMs: number) => boolean
}

/** An item that is kept: it can be removed or resized. */
export interface Retained {
  /** What it holds. */
  readonly size: number
}

class Place<Item extends object> implements Retained {
  /** Undefined when it is gone: nothing else must keep it alive. */
  item: Item | undefined
  size: number
  readonly count: number
  /** When it was added, on the clock of `elapsedMs`; 0 without a sweep. */
  readonly at: number

  constructor(item: Item, size: number, count: number, at: number) {
    this.item = item
    this.size = size
    this.count = count
    this.at = at
  }
}

/** Fewer places than this are never moved. */
const MIN_COMPACTED = 32

export class Retention<Item extends object> {
  readonly #options: RetentionOptions<Item>
  /** The items from `#first` on. An array, because the first entry of a map is slow to find after many deletions. */
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

  /** How many items can be dropped. */
  get length(): number {
    return this.#length
  }

  /** What is counted, with what `hold` counts. */
  get count(): number {
    return this.#count
  }

  /** What all hold, with what `hold` counts. */
  get size(): number {
    return this.#size
  }

  /** Counts what cannot be dropped yet, also beyond the limits. */
  hold(size: number, count = 0): void {
    this.#size += size
    this.#count += count
  }

  /** Ends what `hold` has counted. */
  giveBack(size: number, count = 0): void {
    this.hold(-size, -count)
  }

  /** Makes room by dropping items, and holds `size`. Returns false, with nothing held, when the rest is too large. */
  take(size: number): boolean {
    const { maxSize = Infinity } = this.#options
    while (this.#size + size > maxSize) if (!this.#dropFirst()) return false
    this.#size += size
    return true
  }

  /**
   * Adds the latest item: it may be dropped from now on, by the next `trim`.
   * @param size what it holds
   * @param count what it counts as
   * @param ageMs how long ago it would have been added: not less than the items before it
   */
  add(item: Item, size = 0, count = 1, ageMs = 0): Retained {
    const { sweep } = this.#options
    const place = new Place(item, size, count, sweep === undefined ? 0 : elapsedMs(sweep.clock) - ageMs)
    this.#places.push(place)
    this.#length += 1
    this.hold(size, count)
    return place
  }

  /** An item has become larger or smaller. Does nothing for one that is gone. */
  resize(retained: Retained, size: number): void {
    const place = retained as Place<Item>
    if (place.item === undefined) return
    this.#size += size - place.size
    place.size = size
  }

  /** Takes an item out, without a call of `onDropped`. Does nothing for one that is gone. */
  remove(retained: Retained): void {
    this.#takeOut(retained as Place<Item>)
  }

  /** Drops what is too much. */
  trim(): void {
    const { maxCount = Infinity, maxSize = Infinity } = this.#options
    while (this.#count > maxCount || this.#size > maxSize) if (!this.#dropFirst()) break
    this.#sweepLater()
  }

  /** Drops what is obsolete, and what is too much. */
  sweep(): void {
    const { sweep } = this.#options
    if (sweep !== undefined) this.dropWhile(sweep.isObsolete)
    this.trim()
  }

  /** Drops the earliest items, up to the first one that is not obsolete. Returns how many. */
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

  /** Ends the sweeps. What is kept stays, and `trim` goes on. */
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

  /** Returns false when there is none. */
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
    // It must not keep the process alive.
    unrefTimer(this.#timer)
  }
}
