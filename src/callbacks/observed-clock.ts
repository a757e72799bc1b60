/**
 * Observed clocks. A race test needs to know the purpose of each timer, and which errors were reported without an `onError`. The clock is the only
 * object that all code in a race shares.
 */
import type { Clock } from '../clock.js'

/** Receives the errors of code that uses an observed clock and has no `onError` of its own. */
export type ClockObserver = (error: unknown, from: { readonly source: string }) => void

const observers = new WeakMap<Clock, ClockObserver>()

export function observeClock(clock: Clock, observer: ClockObserver): void {
  observers.set(clock, observer)
}

/** Returns undefined if the clock is not observed. */
export function observerOf(clock: Clock): ClockObserver | undefined {
  return observers.get(clock)
}
