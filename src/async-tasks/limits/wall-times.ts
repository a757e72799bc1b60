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
  /** When they are due at the latest, by the clock that is never set. */
  readonly #latest = new DueTimes<Key>()
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

  /** @param at in ms since the epoch. @param withinMs it is due after as many ms, also when the clock on the wall is set back meanwhile */
  set(key: Key, at: number, withinMs = Infinity): void {
    this.#dues.set(key, at)
    if (withinMs !== Infinity) this.#latest.set(key, elapsedMs(this.#clock) + withinMs)
    this.#setTimer()
  }

  delete(key: Key): void {
    this.#latest.delete(key)
    if (this.#dues.delete(key)) this.#setTimer()
  }

  /** Removes and returns what is due first, if it is due at `now`. */
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
