/** Finds what is due at a time of day. Timers use a monotonic clock, but the system time may be set, so it is checked at least every 30 s. */
import { DueTimes } from '../../../machines/due-times.js'
import { elapsedMs, type Clock } from '../../clock.js'
import { DeadlineTimer } from './deadline-timer.js'

/** The maximum length of a timer, in ms. */
const MAX_TIMER_MS = 30_000

export class WallTimes<Key> {
  readonly #clock: Clock
  readonly #nameOf: (key: Key) => string
  readonly #dues = new DueTimes<Key>()
  /** The latest due times, on the monotonic clock. */
  readonly #latest = new DueTimes<Key>()
  readonly #timer: DeadlineTimer

  /**
   * @param onDue called when a key may be due; takes it
   * @param nameOf the name of a key's timer
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
   * @param at in ms since the epoch
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
