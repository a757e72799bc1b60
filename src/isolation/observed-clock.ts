/**
 * Clocks that a race test observes. The test sees the purpose of each timer, and errors that are reported without an `onError`. A clock serves for
 * this, because it is the only object that all code in such a test shares.
 */
import type { Clock } from '../system/clock.js'

/** Receives errors of code that uses an observed clock and has no `onError`. */
export type ClockObserver = (error: unknown, from: { readonly source: string }) => void

const observers = new WeakMap<Clock, ClockObserver>()

export function observeClock(clock: Clock, observer: ClockObserver): void {
  observers.set(clock, observer)
}

/** Returns the observer of a clock. Returns undefined if the clock is not observed. */
export function observerOf(clock: Clock): ClockObserver | undefined {
  return observers.get(clock)
}
