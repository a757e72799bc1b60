/**
 * Clocks that are observed: a race wants to know what every timer on its clock is for, and what is reported without an `onError`. The clock is the
 * one thing that all code of a race has in common.
 */
import type { Clock } from '../clock.js'

/** Gets what is reported by code that uses an observed clock and has no `onError` of its own. */
export type ClockObserver = (error: unknown, from: { readonly source: string }) => void

const observers = new WeakMap<Clock, ClockObserver>()

export function observeClock(clock: Clock, observer: ClockObserver): void {
  observers.set(clock, observer)
}

/** Undefined for a clock that is not observed. */
export function observerOf(clock: Clock): ClockObserver | undefined {
  return observers.get(clock)
}
