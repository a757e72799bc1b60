/** The retained tasks, running and ended: ids are unique among them (A4), and the ended ones are bounded (A7). */
import { BinaryHeap } from './binary-heap.js'
import { byEnd, isTerminal, type TaskEntry } from './task-entry.js'

/** How many records with a cut, unread text are kept beyond the history limit. */
const MAX_UNREAD_RECORDS = 100

const isOutstanding = ({ record: { delivery } }: TaskEntry): boolean => delivery === 'owed' || delivery === 'leased'

/** Finds tasks by id, and picks the ended ones that may be pruned. */
export class History {
  readonly #entries = new Map<string, TaskEntry>()
  readonly #limit: () => number
  readonly #isHeld: (entry: TaskEntry) => boolean
  /** Ended tasks that owe nothing, the earliest ended first. */
  readonly #prunable = new BinaryHeap<TaskEntry>((a, b) => byEnd(a, b) < 0)
  /** Ended tasks whose text was cut, and the rest was not read. */
  readonly #unread = new Set<TaskEntry>()
  #terminal = 0

  /**
   * @param limit how many ended tasks may be kept
   * @param isHeld whether a task must be kept although it owes nothing
   */
  constructor(limit: () => number, isHeld: (entry: TaskEntry) => boolean = () => false) {
    this.#limit = limit
    this.#isHeld = isHeld
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
    if (isTerminal(entry.record)) this.#terminal += 1
  }

  /** A retained task has ended. */
  end(): void {
    this.#terminal += 1
  }

  /** Whether a record could be pruned now. */
  hasExcess(): boolean {
    return this.#terminal > this.#limit() && this.#prunable.size > 0
  }

  /** The handlers of a task's end have run. */
  markHandled(entry: TaskEntry): void {
    if (entry.pruning === 'unhandled') entry.pruning = 'handled'
    this.offer(entry)
  }

  /** Queues an ended task for pruning once it owes nothing, its handlers have run and no one has to read the rest of it. */
  offer(entry: TaskEntry): void {
    if (!isTerminal(entry.record) || isOutstanding(entry)) return
    if (entry.pruning !== 'handled' || this.#unread.has(entry) || this.#isHeld(entry)) return
    entry.pruning = 'queued'
    this.#prunable.push(entry)
  }

  /** Removes the earliest ended task that may go, while the history is over its limit. */
  prune(): TaskEntry | undefined {
    while (this.hasExcess()) {
      const entry = this.#prunable.pop()
      if (entry === undefined) return undefined
      entry.pruning = 'handled'
      // Its text was cut, or it is owed again, after it had been queued: it is offered again when it is read, or delivered.
      if (this.#unread.has(entry) || isOutstanding(entry)) continue
      this.#entries.delete(entry.record.id)
      this.#terminal -= 1
      return entry
    }
    return undefined
  }

  /** Keeps a record whose text was cut until it is read; of those, the newest hundred. */
  keepUnread(id: string): void {
    const entry = this.#entries.get(id)
    if (entry === undefined || !isTerminal(entry.record)) return
    this.#unread.add(entry)
    const [oldest] = this.#unread
    if (this.#unread.size > MAX_UNREAD_RECORDS && oldest !== undefined) this.#release(oldest)
  }

  markRead(id: string): void {
    const entry = this.#entries.get(id)
    if (entry !== undefined) this.#release(entry)
  }

  #release(entry: TaskEntry): void {
    if (this.#unread.delete(entry)) this.offer(entry)
  }
}
