/** One timer for many due times. It is always set for the earliest of them. */
import {
  clearLongTimeout,
  elapsedMs,
  setLongTimeout,
  type Clock,
  type LongTimer,
  type TimerLabel,
} from '../../system/clock.js'

export class DeadlineTimer {
  readonly #clock: Clock
  readonly #onDue: () => void
  #present: { readonly at: number; readonly timer: LongTimer } | undefined

  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  /**
   * Sets the timer for the time `at` on the clock of `elapsedMs`, or clears it if `at` is undefined. If the timer is already set for an earlier time,
   * it stays: its callback sets the next timer.
   */
  set(at: number | undefined, labelOf: () => TimerLabel): void {
    const present = this.#present
    if (present !== undefined && at !== undefined && present.at <= at) return
    if (present !== undefined) clearLongTimeout(this.#clock, present.timer)
    this.#present = undefined
    if (at === undefined) return
    const onTimeout = (): void => {
      this.#present = undefined
      this.#onDue()
    }
    const timer = setLongTimeout(this.#clock, onTimeout, Math.max(0, at - elapsedMs(this.#clock)), labelOf())
    this.#present = { at, timer }
  }
}
