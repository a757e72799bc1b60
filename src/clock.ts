/** Time, as an option: what XState's delays, the streams and every timestamp go by. */

/** Anything that tells the time and sets timers; tests bring their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls `run` once, `ms` milliseconds from now. */
  setTimeout(run: () => void, ms: number): unknown
  /** Takes a timer back; one that has run or is unknown is no harm. */
  clearTimeout(timer: unknown): void
}

/** A computer's clock is set right by less than this, in ms, at any moment; by more when somebody sets it. */
const CLOCK_STEP_MS = 1000

let latest = -Infinity

/**
 * The platform's clock. It looks the globals up at every call, so that fake timers installed later work. While the platform's time goes
 * back by less than a second it stands still, so that what happens later is never dated earlier.
 */
export const systemClock: Clock = {
  now: () => {
    const now = Date.now()
    if (now < latest && latest - now < CLOCK_STEP_MS) return latest
    latest = now
    return now
  },
  setTimeout: (run, ms) => globalThis.setTimeout(run, ms),
  clearTimeout: (timer) => globalThis.clearTimeout(timer as ReturnType<typeof globalThis.setTimeout>),
}

/** The longest delay a platform timer takes; longer ones fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/** A timer that may be longer than the platform allows. */
export interface LongTimer {
  current: unknown
}

/** Sets a timer of any length by splitting a long one. `ms` of Infinity never fires. */
export function setLongTimeout(clock: Clock, run: () => void, ms: number): LongTimer {
  const timer: LongTimer = { current: undefined }
  const wait = (left: number): void => {
    if (left === Infinity) return
    timer.current =
      left <= MAX_TIMER_MS
        ? clock.setTimeout(run, left)
        : clock.setTimeout(() => wait(left - MAX_TIMER_MS), MAX_TIMER_MS)
  }
  wait(ms)
  return timer
}

/** Takes back a timer of `setLongTimeout`, whichever part of it is pending. */
export function clearLongTimeout(clock: Clock, timer: LongTimer | undefined): void {
  if (timer?.current !== undefined) clock.clearTimeout(timer.current)
}

/** A clock for XState's delays. `change` runs what a timer does, as a change of the actor's host. */
export function actorClock(clock: Clock, change: (run: () => void) => void) {
  return {
    setTimeout: (run: () => void, ms: number): unknown => setLongTimeout(clock, () => change(run), ms),
    clearTimeout: (timer: unknown): void => clearLongTimeout(clock, timer as LongTimer | undefined),
  }
}
