/** A single timer for many due times. It is set for the next one. */
import {
  clearLongTimeout,
  elapsedMs,
  setLongTimeout,
  type Clock,
  type LongTimer,
  type TimerLabel,
} from '../../clock.js'

export class DeadlineTimer {
  readonly #clock: Clock
  readonly #onDue: () => void
  #present: { readonly at: number; readonly timer: LongTimer } | undefined

  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  /**
   * Sets the timer for the next time (`at` on the clock of `elapsedMs`), or clears it. A timer that is already set for an earlier time stays, and the
   * next one is set when it fires.
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
