/**
 * What is due at a time of the clock on the wall. Timers go by another clock, because this one may be set: it is looked at every 30 s at least.
 */
import { DueTimes } from '../../../machines/due-times.js'
import { elapsedMs, type Clock } from '../../clock.js'
import { DeadlineTimer } from './deadline-timer.js'

/** How long a timer may be, in ms. */
const MAX_TIMER_MS = 30_000

export class WallTimes<Key> {
  readonly #clock: Clock
  readonly #nameOf: (key: Key) => string
  readonly #dues = new DueTimes<Key>()
  readonly #timer: DeadlineTimer

  /** @param onDue something may be due: takes it. @param nameOf what the timer of a key is called */
  constructor(clock: Clock, onDue: (now: number) => void, nameOf: (key: Key) => string) {
    this.#clock = clock
    this.#nameOf = nameOf
    this.#timer = new DeadlineTimer(clock, () => {
      onDue(clock.now())
      this.#setTimer()
    })
  }

  /** @param at in ms since the epoch */
  set(key: Key, at: number): void {
    this.#dues.set(key, at)
    this.#setTimer()
  }

  delete(key: Key): void {
    if (this.#dues.delete(key)) this.#setTimer()
  }

  /** Removes and returns what is due first, if it is due at `now`. */
  take(now: number): Key | undefined {
    const due = this.#dues.take(now)
    if (due === undefined) this.#setTimer()
    return due
  }

  #setTimer(): void {
    const { next, nextKey } = this.#dues
    if (next === undefined || nextKey === undefined) {
      this.#timer.set(undefined, () => ({ name: '' }))
      return
    }
    const wait = Math.min(Math.max(0, next - this.#clock.now()), MAX_TIMER_MS)
    const kind = wait === MAX_TIMER_MS ? { kind: 'poll' as const } : undefined
    this.#timer.set(elapsedMs(this.#clock) + wait, () => ({ name: this.#nameOf(nextKey), ...kind }))
  }
}
