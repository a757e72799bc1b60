/** Measures how long the runs of durable tasks have worked. While a run only waits, its time does not count (promise F20). */
import { TaskData } from './task-data.js'
import type { TaskEntry } from './task-entry.js'

interface Account {
  /** The time that has counted so far, in ms, without the time since `since`. */
  ranMs: number
  /** When the run began to work, in ms; undefined while no run works. */
  since: number | undefined
  hasBegun: boolean
}

export class ActiveTimes {
  readonly #accounts = new TaskData<Account>()

  /** @param ranMs how long the runs have worked in earlier processes, in ms; undefined if no run has begun */
  add(entry: TaskEntry, ranMs?: number): void {
    this.#accounts.set(entry, { ranMs: ranMs ?? 0, since: undefined, hasBegun: ranMs !== undefined })
  }

  /** Whether the time of a task is measured. This is so for durable tasks only. */
  has(entry: TaskEntry): boolean {
    return this.#accounts.get(entry) !== undefined
  }

  /** Whether a run of a durable task has begun. */
  hasBegun(entry: TaskEntry): boolean {
    return this.#accounts.get(entry)?.hasBegun === true
  }

  /** Whether the time of a task counts now. Always true for a task that is not durable. */
  isWorking(entry: TaskEntry): boolean {
    const account = this.#accounts.get(entry)
    return account === undefined || account.since !== undefined
  }

  /** Starts counting. Returns how long the runs of the task have worked before, in ms; 0 for a task that is not durable. */
  begin(entry: TaskEntry, now: number): number {
    const account = this.#accounts.get(entry)
    if (account === undefined) return 0
    account.since ??= now
    account.hasBegun = true
    return account.ranMs
  }

  /** Stops counting, because the run waits or has ended. */
  stop(entry: TaskEntry, now: number): void {
    const account = this.#accounts.get(entry)
    if (account?.since === undefined) return
    account.ranMs += now - account.since
    account.since = undefined
  }

  /** Returns how long the runs of a task have worked, in ms. */
  of(entry: TaskEntry, now: number): number {
    const { ranMs = 0, since = now } = this.#accounts.get(entry) ?? {}
    return ranMs + now - since
  }
}
