/** When runs of each subagent with a start rate have started recently, in a sliding window (promise F18). */
import { DueTimes } from './due-times.js'
import type { StartRate } from './task-admission.js'

export class RateWindows {
  /** The times at which runs have started, by subagent, the earliest first. */
  readonly #starts = new Map<string, readonly number[]>()
  readonly #ends = new DueTimes<string>()

  /** Returns the times of those starts of a subagent that still count. */
  startsOf(name: string): readonly number[] {
    return this.#starts.get(name) ?? []
  }

  /**
   * Counts a start.
   * @returns the names of the subagents whose windows have changed. A window that is over is removed and counts as changed
   */
  count(name: string, { limit, perMs }: StartRate, now: number): string[] {
    const changed: string[] = []
    for (let empty = this.#ends.take(now); empty !== undefined; empty = this.#ends.take(now)) {
      this.#starts.delete(empty)
      changed.push(empty)
    }
    this.restore(name, [...this.startsOf(name), now].slice(-limit), perMs)
    return [name, ...changed]
  }

  /** Returns when the next run may start; undefined if it may start now. */
  nextAt(name: string, { limit, perMs }: StartRate, now: number): number | undefined {
    const at = this.startsOf(name).at(-limit)
    return at === undefined || at + perMs <= now ? undefined : at + perMs
  }

  restore(name: string, starts: readonly number[], perMs: number): void {
    this.#starts.set(name, starts)
    this.#ends.set(name, (starts.at(-1) ?? 0) + perMs)
  }
}
