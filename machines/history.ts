/** The kept tasks, active and ended. Their ids are unique (promise A4). The number of ended tasks whose results are not owed is bounded (promise A7). */
import { OwnerShares } from './owner-shares.js'
import { payerOf } from './run-owner.js'
import { isOutstanding, isTerminal, type TaskEntry } from './task-entry.js'

/** The maximum number of prunable records of all owners, and the maximum total size of their texts. */
const MAX_KEPT = { records: 10_000, bytes: 64 * 1024 * 1024 } as const

/**
 * The limits of records whose text was shortened in a message and whose rest was not read. Such a record is kept longer than others: at most 100 of one
 * owner and 1000 of all, with at most 64 MiB of text.
 */
const MAX_UNREAD = { perOwner: () => 100, records: 1000, bytes: 64 * 1024 * 1024 } as const

/** All owners that were released share the room of one owner. */
const RELEASED = ''

/** Finds tasks by id, and selects ended tasks to prune. */
export class History {
  readonly #entries = new Map<string, TaskEntry>()
  readonly #isHeld: (entry: TaskEntry) => boolean
  readonly #bytesOf: (entry: TaskEntry) => number
  /** Ended tasks that may be pruned. */
  readonly #prunable: OwnerShares
  /** Ended tasks whose text was shortened in a message and was not read in full. */
  readonly #unread = new OwnerShares(MAX_UNREAD)

  /**
   * @param limit returns the maximum number of prunable tasks of one owner
   * @param isHeld whether a task must be kept although its result is not owed
   * @param bytesOf returns the approximate size of an ended task's texts, in bytes
   */
  constructor(
    limit: () => number,
    isHeld: (entry: TaskEntry) => boolean = () => false,
    bytesOf: (entry: TaskEntry) => number = () => 0,
  ) {
    this.#prunable = new OwnerShares({ perOwner: limit, ...MAX_KEPT })
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

  /** Whether more tasks are prunable than the limits allow. */
  hasExcess(): boolean {
    return this.#prunable.hasExcess()
  }

  /** Applies a changed limit of prunable tasks. */
  limitChanged(): void {
    this.#prunable.recount()
  }

  /** Records that the host's handlers for the end of a task have run. */
  markHandled(entry: TaskEntry): void {
    entry.isHandled = true
    this.offer(entry)
  }

  /** Makes an ended task prunable, unless its result is owed, its handlers have not run yet, or its record is needed for another reason. */
  offer(entry: TaskEntry): void {
    if (!isTerminal(entry.record) || isOutstanding(entry) || !entry.isHandled) return
    if (this.#prunable.has(entry) || this.#unread.has(entry) || this.#isHeld(entry)) return
    this.#prunable.add(entry, this.#payerOf(entry), this.#bytesOf(entry))
  }

  /** Keeps an ended task that was prunable, for example because its result is owed again. */
  keep(entry: TaskEntry): void {
    this.#prunable.delete(entry)
  }

  /** Removes the earliest prunable task of an owner that has too many. Returns undefined if there is nothing to remove. */
  prune(): TaskEntry | undefined {
    const entry = this.#prunable.takeExcess()
    if (entry !== undefined) this.#entries.delete(entry.record.id)
    return entry
  }

  /** Keeps the record of a task whose text was shortened, until the text is read or `MAX_UNREAD` is exceeded. */
  keepUnread(id: string): void {
    const entry = this.#entries.get(id)
    if (entry === undefined || !isTerminal(entry.record) || this.#unread.has(entry)) return
    const bytes = this.#bytesOf(entry)
    if (bytes > MAX_UNREAD.bytes) return
    this.#unread.add(entry, this.#payerOf(entry), bytes)
    this.keep(entry)
    for (let out = this.#unread.takeExcess(); out !== undefined; out = this.#unread.takeExcess()) this.offer(out)
  }

  markRead(id: string): void {
    const entry = this.#entries.get(id)
    if (entry === undefined || !this.#unread.has(entry)) return
    this.#unread.delete(entry)
    this.offer(entry)
  }

  /** From now on, the records of a released owner count for all released owners together. */
  releaseOwner(owner: string): void {
    this.#prunable.pass(owner, RELEASED)
    this.#unread.pass(owner, RELEASED)
  }

  #payerOf({ record, isDisowned }: TaskEntry): string {
    return isDisowned ? RELEASED : payerOf(record.owner, (id) => this.#entries.get(id)?.record.owner)
  }
}
