/** The visible period of the timeline, and the conversion of times to positions. */

export interface TimeWindow {
  /** The start of the period, like `to` in ms since the epoch. */
  readonly from: number
  readonly to: number
}

const SHORTEST_MS = 50
const LONGEST_MS = 7 * 24 * 3600 * 1000
/** The share of the window to the right of the current time. */
const AHEAD = 0.04

/** Returns a window of this length that ends shortly after `now`. */
export function windowAt(now: number, lengthMs: number): TimeWindow {
  const to = now + lengthMs * AHEAD
  return { from: to - lengthMs, to }
}

export function lengthOfWindow({ from, to }: TimeWindow): number {
  return to - from
}

/** Zooms by a factor, where a factor below 1 zooms in. The time at `place` stays where it is: 0 is the left edge of the window, and 1 the right edge. */
export function zoomed({ from, to }: TimeWindow, factor: number, place: number): TimeWindow {
  const length = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, (to - from) * factor))
  const fixed = from + (to - from) * place
  return { from: fixed - length * place, to: fixed + length * (1 - place) }
}

export function panned({ from, to }: TimeWindow, part: number): TimeWindow {
  const by = (to - from) * part
  return { from: from + by, to: to + by }
}

/** Returns the length of a window that shows the time since `oldest`; at least 20 seconds and at most an hour. */
export function fittingLength(oldest: number, now: number): number {
  return Math.min(3600_000, Math.max(20_000, (now - oldest) * 1.1))
}

/** Returns the position of a time in px, from the left edge. */
export function xOf(at: number, { from, to }: TimeWindow, width: number): number {
  return ((at - from) / (to - from)) * width
}

const STEPS_MS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 3, 6, 12, 24, 48].map((hours) => hours * 3600_000),
]

export interface Ticks {
  readonly stepMs: number
  /** The times of the lines. */
  readonly at: readonly number[]
}

/**
 * Returns lines at round times that are at least `apart` pixels from each other.
 * @param offsetMs the difference of the reader's time zone from UTC, in ms
 */
export function ticksOf({ from, to }: TimeWindow, width: number, apart: number, offsetMs = 0): Ticks {
  const least = ((to - from) / Math.max(1, width)) * apart
  const stepMs = STEPS_MS.find((step) => step >= least) ?? 7 * 24 * 3600_000
  const at: number[] = []
  for (let time = Math.ceil((from + offsetMs) / stepMs) * stepMs - offsetMs; time <= to; time += stepMs) at.push(time)
  return { stepMs, at }
}
