/** Measures the run time of tasks with a budget. Finds tasks whose time limit has passed, or whose time to conclude is over (promise F10). */
import { DueTimes } from '../due-times.js'
import type { TaskEntry } from '../task-entry.js'

export interface TimeBudget {
  /** How long all runs of the task may take together, in ms; undefined for no limit. */
  readonly runMs: number | undefined
  /** How long a run may take to conclude after a budget is exceeded, in ms. */
  readonly wrapUpMs: number
}

interface Account extends TimeBudget {
  /** How long the earlier runs of the task took, in ms. */
  ranMs: number
  /** When the current run started; undefined between runs. */
  startedAt: number | undefined
  isWrapping: boolean
}

export class BudgetTimes {
  readonly #accounts = new Map<TaskEntry, Account>()
  readonly #dues = new DueTimes<TaskEntry>()

  /** @param ranMs how long earlier runs took, in ms */
  add(entry: TaskEntry, { runMs, wrapUpMs }: TimeBudget, ranMs: number): void {
    this.#accounts.set(entry, { runMs, wrapUpMs, ranMs, startedAt: undefined, isWrapping: false })
  }

  start(entry: TaskEntry, now: number): void {
    const account = this.#accounts.get(entry)
    if (account === undefined) return
    account.startedAt = now
    account.isWrapping = false
    if (account.runMs !== undefined) this.#dues.set(entry, now + Math.max(account.runMs - account.ranMs, 0))
  }

  /** Stops counting while the run only waits. */
  pause(entry: TaskEntry, now: number): void {
    if (this.#accounts.get(entry)?.isWrapping === false) this.stop(entry, now)
  }

  /** Continues counting after the wait of a run. */
  resume(entry: TaskEntry, now: number): void {
    if (this.#accounts.get(entry)?.isWrapping === false) this.start(entry, now)
  }

  /** Begins the time in which the run must conclude. */
  wrapUp(entry: TaskEntry, now: number): void {
    const account = this.#accounts.get(entry)
    if (account === undefined) return
    account.isWrapping = true
    this.#dues.set(entry, now + account.wrapUpMs)
  }

  /** Removes the time limits, because the run was asked to stop. */
  conclude(entry: TaskEntry): void {
    this.#dues.delete(entry)
  }

  /**
   * Stops counting, because the run has ended or is being stopped. Returns the time of all runs in ms, or undefined if the budget does not limit time.
   */
  stop(entry: TaskEntry, now: number): number | undefined {
    const account = this.#accounts.get(entry)
    if (account === undefined) return undefined
    this.#dues.delete(entry)
    if (account.startedAt !== undefined) account.ranMs += now - account.startedAt
    account.startedAt = undefined
    return account.runMs === undefined ? undefined : account.ranMs
  }

  delete(entry: TaskEntry): void {
    this.#dues.delete(entry)
    this.#accounts.delete(entry)
  }

  get next(): number | undefined {
    return this.#dues.next
  }

  get nextEntry(): TaskEntry | undefined {
    return this.#dues.nextKey
  }

  /** Returns the next task whose time is over. `isWrapping` is true if the time to conclude is over, and false if the time limit has passed. */
  take(now: number): { readonly entry: TaskEntry; readonly isWrapping: boolean } | undefined {
    const entry = this.#dues.take(now)
    return entry && { entry, isWrapping: this.#accounts.get(entry)?.isWrapping === true }
  }
}
