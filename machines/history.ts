/** The kept tasks, active and ended. Their ids are unique (promise A4). The number of ended tasks whose results are not owed is bounded (promise A7). */
import { BinaryHeap } from './binary-heap.js'
import { byEnd, isOutstanding, isTerminal, type TaskEntry } from './task-entry.js'

/**
 * A record is kept longer if its text was shortened in a message and nobody has read the rest. These are the maximum number of such records and the
 * maximum size of their texts. The oldest of them are dropped first.
 */
const MAX_UNREAD = { records: 100, bytes: 64 * 1024 * 1024 } as const

/** Finds tasks by id, and selects ended tasks to prune. */
export class History {
  readonly #entries = new Map<string, TaskEntry>()
  readonly #limit: () => number
  readonly #isHeld: (entry: TaskEntry) => boolean
  /** Ended tasks that may be pruned, in the order in which they ended. */
  readonly #prunable = new BinaryHeap<TaskEntry>((a, b) => byEnd(a, b) < 0)
  /** Ended tasks whose text was shortened in a message and was not read in full, with the size of their texts in bytes. */
  readonly #unread = new Map<TaskEntry, number>()
  readonly #bytesOf: (entry: TaskEntry) => number
  #unreadBytes = 0
  /** Tasks in `#prunable` that must not be pruned after all: their text was shortened, or their result is owed again. */
  readonly #kept = new Set<TaskEntry>()

  /**
   * @param limit returns the maximum number of prunable tasks
   * @param isHeld whether a task must be kept although its result is not owed
   * @param bytesOf returns the approximate size of an ended task's texts, in bytes
   */
  constructor(
    limit: () => number,
    isHeld: (entry: TaskEntry) => boolean = () => false,
    bytesOf: (entry: TaskEntry) => number = () => 0,
  ) {
    this.#limit = limit
    this.#isHeld = isHeld
    this.#bytesOf = bytesOf
  }

  get size(): number {
    return this.#entries.size
  }

  get(id: string): TaskEntry | undefined {
    return this.#entries.get(id)
  }

  /** All kept tasks, in the order of registration. */
  entries(): IterableIterator<TaskEntry> {
    return this.#entries.values()
  }

  add(entry: TaskEntry): void {
    this.#entries.set(entry.record.id, entry)
  }

  /** Whether more tasks are prunable than the limit allows. */
  hasExcess(): boolean {
    return this.#prunable.size - this.#kept.size > this.#limit()
  }

  /** Records that the host's handlers for the end of a task have run. */
  markHandled(entry: TaskEntry): void {
    if (entry.pruning === 'unhandled') entry.pruning = 'handled'
    this.offer(entry)
  }

  /** Makes an ended task prunable, unless its result is owed, its handlers have not run yet, or its record is needed for another reason. */
  offer(entry: TaskEntry): void {
    if (!isTerminal(entry.record) || isOutstanding(entry)) return
    if (entry.pruning === 'unhandled' || this.#unread.has(entry) || this.#isHeld(entry)) return
    if (entry.pruning === 'offered') {
      this.#kept.delete(entry)
      return
    }
    entry.pruning = 'offered'
    this.#prunable.push(entry)
  }

  /** Keeps an ended task that was prunable, for example because its result is owed again. */
  keep(entry: TaskEntry): void {
    if (entry.pruning === 'offered') this.#kept.add(entry)
  }

  /** Removes the earliest prunable task if there are more than the limit allows. Returns undefined if there is nothing to remove. */
  prune(): TaskEntry | undefined {
    while (this.hasExcess()) {
      const entry = this.#prunable.pop()
      if (entry === undefined) return undefined
      entry.pruning = 'handled'
      // The task becomes prunable again when its text is read or its result is delivered.
      if (this.#kept.delete(entry)) continue
      this.#entries.delete(entry.record.id)
      return entry
    }
    return undefined
  }

  /** Keeps the record of a task whose text was shortened, until the text is read or `MAX_UNREAD` is exceeded. */
  keepUnread(id: string): void {
    const entry = this.#entries.get(id)
    if (entry === undefined || !isTerminal(entry.record) || this.#unread.has(entry)) return
    const bytes = this.#bytesOf(entry)
    if (bytes > MAX_UNREAD.bytes) return
    this.#unread.set(entry, bytes)
    this.#unreadBytes += bytes
    this.keep(entry)
    for (const oldest of this.#unread.keys()) {
      if (this.#unread.size <= MAX_UNREAD.records && this.#unreadBytes <= MAX_UNREAD.bytes) return
      this.#release(oldest)
    }
  }

  markRead(id: string): void {
    const entry = this.#entries.get(id)
    if (entry !== undefined) this.#release(entry)
  }

  #release(entry: TaskEntry): void {
    const bytes = this.#unread.get(entry)
    if (bytes === undefined) return
    this.#unread.delete(entry)
    this.#unreadBytes -= bytes
    this.offer(entry)
  }
}
