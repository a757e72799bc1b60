/** A manual clock whose time of day can be set forward or back, as a person does. Its timers and its monotonic time are those of the manual clock. */
import { createManualClock, type ManualClock } from '../../src/testing/manual-clock.js'

export interface JumpingClock extends ManualClock {
  monotonic(): number
  /** Sets the time of day forward by `ms`, or back if `ms` is negative. No time passes. */
  jump(ms: number): void
}

/** @param start the first time of day, in ms since the epoch */
export function createJumpingClock(start = 0): JumpingClock {
  const clock = createManualClock()
  let epoch = start
  return {
    ...clock,
    now: () => epoch + clock.now(),
    monotonic: () => clock.now(),
    get pending() {
      return clock.pending
    },
    get nextDue() {
      return clock.nextDue
    },
    jump: (ms) => {
      epoch += ms
    },
  }
}

/** How far tests set the clock, in ms: some as people do, and some as time servers do. */
export const JUMPS = [600_000, -3_600_000, 1, -1, 5, -10] as const
