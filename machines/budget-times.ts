/** The run time of the tasks that have a budget, and when it, or the time to wrap up, is used up (F10). */
import { DueTimes } from './due-times.js'
import type { TaskEntry } from './task-entry.js'

/** What a budget says about time. */
export interface TimeBudget {
  /** How long the runs of the task may take in all, in ms; undefined for no limit. */
  readonly runMs: number | undefined
  /** How long a run may take to conclude once a budget is exceeded, in ms. */
  readonly wrapUpMs: number
}

interface Account extends TimeBudget {
  /** How long the earlier runs took, in ms. */
  ranMs: number
  /** When the present run started; undefined while there is none. */
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

  /** A run starts. */
  start(entry: TaskEntry, now: number): void {
    const account = this.#accounts.get(entry)
    if (account === undefined) return
    account.startedAt = now
    account.isWrapping = false
    if (account.runMs !== undefined) this.#dues.set(entry, now + Math.max(account.runMs - account.ranMs, 0))
  }

  /** The run only waits from now on: that does not count. */
  pause(entry: TaskEntry, now: number): void {
    if (this.#accounts.get(entry)?.isWrapping === false) this.stop(entry, now)
  }

  /** A run that has only waited works again. */
  resume(entry: TaskEntry, now: number): void {
    if (this.#accounts.get(entry)?.isWrapping === false) this.start(entry, now)
  }

  /** A budget is exceeded: the time to wrap up begins. */
  wrapUp(entry: TaskEntry, now: number): void {
    const account = this.#accounts.get(entry)
    if (account === undefined) return
    account.isWrapping = true
    this.#dues.set(entry, now + account.wrapUpMs)
  }

  /** The run is asked to stop: no limit on its time is left. */
  conclude(entry: TaskEntry): void {
    this.#dues.delete(entry)
  }

  /** The run has ended, or is being stopped. Returns how long all runs took, in ms, where time is limited. */
  stop(entry: TaskEntry, now: number): number | undefined {
    const account = this.#accounts.get(entry)
    if (account === undefined) return undefined
    this.#dues.delete(entry)
    if (account.startedAt !== undefined) account.ranMs += now - account.startedAt
    account.startedAt = undefined
    return account.runMs === undefined ? undefined : account.ranMs
  }

  /** The task has ended. */
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

  /** The next task whose time is used up: `isWrapping` when it was that to wrap up. */
  take(now: number): { readonly entry: TaskEntry; readonly isWrapping: boolean } | undefined {
    const entry = this.#dues.take(now)
    return entry && { entry, isWrapping: this.#accounts.get(entry)?.isWrapping === true }
  }
}
