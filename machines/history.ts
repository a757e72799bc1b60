/** The retained tasks, running and ended: ids are unique among them (A4), and the ended ones that owe nothing are bounded (A7). */
import { BinaryHeap } from './binary-heap.js'
import { byEnd, isOutstanding, isTerminal, type TaskEntry } from './task-entry.js'

/** The newest records with a cut, unread text are kept besides the history limit: so many, and so many bytes in all (64 MiB). */
const MAX_UNREAD = { records: 100, bytes: 64 * 1024 * 1024 } as const

/** Finds tasks by id, and picks the ended ones that may be pruned. */
export class History {
  readonly #entries = new Map<string, TaskEntry>()
  readonly #limit: () => number
  readonly #isHeld: (entry: TaskEntry) => boolean
  /** Ended tasks that owe nothing, the earliest ended first. */
  readonly #prunable = new BinaryHeap<TaskEntry>((a, b) => byEnd(a, b) < 0)
  /** Ended tasks whose text was cut, and the rest was not read, with their bytes. */
  readonly #unread = new Map<TaskEntry, number>()
  readonly #bytesOf: (entry: TaskEntry) => number
  #unreadBytes = 0
  /** Those of `#prunable` that must stay: their text was cut, or they are owed again, after they had been queued. */
  readonly #kept = new Set<TaskEntry>()

  /**
   * @param limit how many ended tasks that owe nothing may be kept besides those that have still to be read
   * @param isHeld whether a task must be kept although it owes nothing
   * @param bytesOf about how much the texts of an ended task take, in bytes
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

  /** Every retained task, in the order of registration. */
  entries(): IterableIterator<TaskEntry> {
    return this.#entries.values()
  }

  add(entry: TaskEntry): void {
    this.#entries.set(entry.record.id, entry)
  }

  /** Whether a record is to be pruned now. */
  hasExcess(): boolean {
    return this.#prunable.size - this.#kept.size > this.#limit()
  }

  /** The handlers of a task's end have run. */
  markHandled(entry: TaskEntry): void {
    if (entry.pruning === 'unhandled') entry.pruning = 'handled'
    this.offer(entry)
  }

  /** Queues an ended task for pruning once it owes nothing, its handlers have run and no one has to read the rest of it. */
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

  /** An ended task is owed again. */
  keep(entry: TaskEntry): void {
    if (entry.pruning === 'offered') this.#kept.add(entry)
  }

  /** Removes the earliest ended task that may go, while the history is over its limit. */
  prune(): TaskEntry | undefined {
    while (this.hasExcess()) {
      const entry = this.#prunable.pop()
      if (entry === undefined) return undefined
      entry.pruning = 'handled'
      // It is offered again when it is read, or delivered.
      if (this.#kept.delete(entry)) continue
      this.#entries.delete(entry.record.id)
      return entry
    }
    return undefined
  }

  /** Keeps a record whose text was cut until it is read; of those, the newest that `MAX_UNREAD` allows. */
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
