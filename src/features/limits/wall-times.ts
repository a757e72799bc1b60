/**
 * Keeps what is due at times of the system clock. Timers use the monotonic clock, while the system time may be set. So it is compared with the due
 * times at least every 30 s.
 */
import { DueTimes } from '../../../machines/due-times.js'
import { elapsedMs, type Clock } from '../../system/clock.js'
import { DeadlineTimer } from './deadline-timer.js'

/** The maximum time until the system time is compared again, in ms. */
const MAX_TIMER_MS = 30_000

export class WallTimes<Key> {
  readonly #clock: Clock
  readonly #nameOf: (key: Key) => string
  readonly #dues = new DueTimes<Key>()
  /** For each key, the time on the monotonic clock at which it is due even if the system time was set back. */
  readonly #latest = new DueTimes<Key>()
  readonly #timer: DeadlineTimer

  /**
   * @param onDue called when a key may be due. It takes the due keys with `take`
   * @param nameOf returns the label of the timer for a key
   */
  constructor(clock: Clock, onDue: (now: number) => void, nameOf: (key: Key) => string) {
    this.#clock = clock
    this.#nameOf = nameOf
    this.#timer = new DeadlineTimer(clock, () => {
      onDue(clock.now())
      this.#setTimer()
    })
  }

  /**
   * @param at when the key is due, in ms since the epoch
   * @param withinMs due after this many ms at the latest, even if the system time is set back
   */
  set(key: Key, at: number, withinMs = Infinity): void {
    this.#dues.set(key, at)
    if (withinMs !== Infinity) this.#latest.set(key, elapsedMs(this.#clock) + withinMs)
    this.#setTimer()
  }

  delete(key: Key): void {
    this.#latest.delete(key)
    if (this.#dues.delete(key)) this.#setTimer()
  }

  /** Removes and returns the earliest key that is due at `now`. */
  take(now: number): Key | undefined {
    const due = this.#dues.take(now) ?? this.#latest.take(elapsedMs(this.#clock))
    if (due === undefined) this.#setTimer()
    else this.delete(due)
    return due
  }

  #setTimer(): void {
    const { next, nextKey } = this.#dues
    if (next === undefined || nextKey === undefined) {
      this.#timer.set(undefined, () => ({ name: '' }))
      return
    }
    const elapsed = elapsedMs(this.#clock)
    const left = Math.min(next - this.#clock.now(), (this.#latest.next ?? Infinity) - elapsed)
    const wait = Math.min(Math.max(0, left), MAX_TIMER_MS)
    const kind = wait === MAX_TIMER_MS ? { kind: 'poll' as const } : undefined
    this.#timer.set(elapsed + wait, () => ({ name: this.#nameOf(nextKey), ...kind }))
  }
}
