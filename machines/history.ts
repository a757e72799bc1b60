/** The kept tasks, active and ended. Their ids are unique (promise A4), and the number of ended tasks with nothing owed is bounded (promise A7). */
import { BinaryHeap } from './binary-heap.js'
import { byEnd, isOutstanding, isTerminal, type TaskEntry } from './task-entry.js'

/** The newest records with shortened, unread text are kept beyond the history limit, up to this number and this many bytes in total. */
const MAX_UNREAD = { records: 100, bytes: 64 * 1024 * 1024 } as const

/** Finds tasks by id, and selects ended ones to prune. */
export class History {
  readonly #entries = new Map<string, TaskEntry>()
  readonly #limit: () => number
  readonly #isHeld: (entry: TaskEntry) => boolean
  /** Ended tasks with nothing owed, in the order in which they ended. */
  readonly #prunable = new BinaryHeap<TaskEntry>((a, b) => byEnd(a, b) < 0)
  /** Ended tasks whose text was shortened and has not been read in full, with their size in bytes. */
  readonly #unread = new Map<TaskEntry, number>()
  readonly #bytesOf: (entry: TaskEntry) => number
  #unreadBytes = 0
  /** Tasks in `#prunable` that must stay after all: their text was shortened, or they are owed again. */
  readonly #kept = new Set<TaskEntry>()

  /**
   * @param limit the maximum of ended tasks with nothing owed, besides those with unread text
   * @param isHeld whether a task must be kept although nothing is owed
   * @param bytesOf the approximate size of an ended task's texts, in bytes
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

  /** Whether a record must be pruned now. */
  hasExcess(): boolean {
    return this.#prunable.size - this.#kept.size > this.#limit()
  }

  /** Notes that the handlers of a task's end have run. */
  markHandled(entry: TaskEntry): void {
    if (entry.pruning === 'unhandled') entry.pruning = 'handled'
    this.offer(entry)
  }

  /** Queues an ended task for pruning, if nothing is owed, its handlers have run and its text need not be kept. */
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

  /** Keeps an ended task that is owed again. */
  keep(entry: TaskEntry): void {
    if (entry.pruning === 'offered') this.#kept.add(entry)
  }

  /** Removes the earliest prunable task if the history exceeds its limit. */
  prune(): TaskEntry | undefined {
    while (this.hasExcess()) {
      const entry = this.#prunable.pop()
      if (entry === undefined) return undefined
      entry.pruning = 'handled'
      // It is queued again when it is read or delivered.
      if (this.#kept.delete(entry)) continue
      this.#entries.delete(entry.record.id)
      return entry
    }
    return undefined
  }

  /** Keeps a record whose text was shortened until it is read, within `MAX_UNREAD`. */
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
