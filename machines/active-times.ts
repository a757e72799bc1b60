/** Measures how long the runs of durable tasks have worked. Time in which a run only waits does not count (promise F20). */
import { PerTask } from './per-task.js'
import type { TaskEntry } from './task-entry.js'

interface Account {
  /** In ms. */
  ranMs: number
  /** When the current work began; undefined while the run does not work. */
  since: number | undefined
  hasBegun: boolean
}

export class ActiveTimes {
  readonly #accounts = new PerTask<Account>()

  /** @param ranMs how long its runs have worked in earlier processes; undefined if no run has begun */
  add(entry: TaskEntry, ranMs?: number): void {
    this.#accounts.set(entry, { ranMs: ranMs ?? 0, since: undefined, hasBegun: ranMs !== undefined })
  }

  /** Whether the time of a task is measured, which is the case for durable tasks. */
  has(entry: TaskEntry): boolean {
    return this.#accounts.get(entry) !== undefined
  }

  /** Whether a run of a durable task has begun. */
  hasBegun(entry: TaskEntry): boolean {
    return this.#accounts.get(entry)?.hasBegun === true
  }

  /** Whether its time currently counts. Always true for a task that is not durable. */
  isWorking(entry: TaskEntry): boolean {
    const account = this.#accounts.get(entry)
    return account === undefined || account.since !== undefined
  }

  /** Starts counting. Returns how long the task has worked before, in ms; 0 for a task that is not durable. */
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

  /** In ms. */
  of(entry: TaskEntry, now: number): number {
    const { ranMs = 0, since = now } = this.#accounts.get(entry) ?? {}
    return ranMs + now - since
  }
}
