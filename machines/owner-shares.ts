/**
 * Ended tasks by owner, within limits of each owner and of all owners together (promise A7). An owner that exceeds its own limit loses its earliest
 * tasks. If all owners together exceed theirs, the owner that takes the most does. So no owner loses a task because of an owner that takes more.
 */
import { DueTimes } from './due-times.js'
import { byEnd, type TaskEntry } from './task-entry.js'

export interface ShareLimits {
  /** Returns the maximum number of tasks of one owner. */
  readonly perOwner: () => number
  /** The maximum number of tasks of all owners. */
  readonly records: number
  /** The maximum total size of their texts, in bytes. One task may exceed it. */
  readonly bytes: number
}

interface Share {
  /** In the order in which the tasks ended. */
  readonly entries: TaskEntry[]
  bytes: number
}

interface Filed {
  readonly owner: string
  readonly bytes: number
}

export class OwnerShares {
  readonly #limits: ShareLimits
  readonly #shares = new Map<string, Share>()
  readonly #filed = new Map<TaskEntry, Filed>()
  /** The owners with more tasks than one owner may have. The one with the task that ended first is the first. */
  readonly #over = new DueTimes<string>()
  /** The owners. The one that takes the most is the first. */
  readonly #heaviest = new DueTimes<string>()
  #bytes = 0

  constructor(limits: ShareLimits) {
    this.#limits = limits
  }

  has(entry: TaskEntry): boolean {
    return this.#filed.has(entry)
  }

  /**
   * @param owner the owner for whom the task counts
   * @param bytes the size of the task's texts, in bytes
   */
  add(entry: TaskEntry, owner: string, bytes: number): void {
    const share = this.#shares.get(owner)
    this.#filed.set(entry, { owner, bytes })
    this.#bytes += bytes
    if (share === undefined) {
      this.#weigh(owner, { entries: [entry], bytes })
      return
    }
    const { entries } = share
    let at = entries.length
    while (at > 0 && byEnd(entries[at - 1] as TaskEntry, entry) > 0) at -= 1
    entries.splice(at, 0, entry)
    share.bytes += bytes
    this.#weigh(owner, share)
  }

  delete(entry: TaskEntry): void {
    const filed = this.#filed.get(entry)
    if (filed === undefined) return
    const share = this.#shares.get(filed.owner) as Share
    this.#filed.delete(entry)
    share.entries.splice(share.entries.indexOf(entry), 1)
    share.bytes -= filed.bytes
    this.#bytes -= filed.bytes
    this.#weigh(filed.owner, share)
  }

  /** From now on, the tasks of an owner count for another one. */
  pass(owner: string, heir: string): void {
    for (const entry of [...(this.#shares.get(owner)?.entries ?? [])]) {
      const { bytes } = this.#filed.get(entry) as Filed
      this.delete(entry)
      this.add(entry, heir, bytes)
    }
  }

  hasExcess(): boolean {
    return this.#over.size > 0 || this.#isOverTotal()
  }

  /** Removes and returns a task that exceeds a limit; undefined if there is none. */
  takeExcess(): TaskEntry | undefined {
    const owner = this.#over.nextKey ?? (this.#isOverTotal() ? this.#heaviest.nextKey : undefined)
    const [entry] = owner === undefined ? [] : (this.#shares.get(owner)?.entries ?? [])
    if (entry !== undefined) this.delete(entry)
    return entry
  }

  /** Applies a changed limit of one owner. */
  recount(): void {
    for (const [owner, share] of this.#shares) this.#compare(owner, share)
  }

  #isOverTotal(): boolean {
    const { perOwner, records, bytes } = this.#limits
    const { size } = this.#filed
    return size > Math.max(records, perOwner()) || (this.#bytes > bytes && size > 1)
  }

  #weigh(owner: string, share: Share): void {
    const { length } = share.entries
    if (length === 0) {
      this.#shares.delete(owner)
      this.#over.delete(owner)
      this.#heaviest.delete(owner)
      return
    }
    this.#shares.set(owner, share)
    this.#compare(owner, share)
    this.#heaviest.set(owner, -Math.max(length / this.#limits.records, share.bytes / this.#limits.bytes))
  }

  #compare(owner: string, { entries }: Share): void {
    const [first] = entries
    if (first !== undefined && entries.length > this.#limits.perOwner()) this.#over.set(owner, first.record.seq)
    else this.#over.delete(owner)
  }
}
