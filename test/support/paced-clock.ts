/**
 * A manual clock whose stretches of time leave room for promises: as on the platform, what a timer or the
 * test started has gone on as far as it can before a later timer runs.
 */
import type { Clock } from '../../src/clock.js'
import { createManualClock } from '../../src/testing/manual-clock.js'

export interface PacedClock extends Clock {
  /** How many timers are set and have not run. */
  readonly pending: number
  /** Moves the time by `ms`, one due time after the other. */
  advance(ms: number): Promise<void>
}

/** More than the longest chain of promises between two steps of a delivery or a wait. */
const TICKS = 12

/** How many due times one `advance` may pass before it is taken for a loop. */
const MAX_DUES = 500

/** Lets promises go on as far as they can without the clock. */
async function letPromisesGoOn(): Promise<void> {
  for (let tick = 0; tick < TICKS; tick += 1) await Promise.resolve()
}

export function createPacedClock(start = 0): PacedClock {
  const clock = createManualClock(start)
  const dues = new Map<unknown, number>()

  const nextDue = (): number => {
    let next = Infinity
    for (const due of dues.values()) next = Math.min(next, due)
    return next
  }

  return {
    now: () => clock.now(),
    setTimeout: (run, ms) => {
      const timer = clock.setTimeout(() => {
        dues.delete(timer)
        run()
      }, ms)
      dues.set(timer, clock.now() + Math.max(0, ms))
      return timer
    },
    clearTimeout: (timer) => {
      dues.delete(timer)
      clock.clearTimeout(timer)
    },
    get pending() {
      return clock.pending
    },
    advance: async (ms) => {
      const target = clock.now() + ms
      await letPromisesGoOn()
      let dues = 0
      for (let due = nextDue(); due <= target; due = nextDue()) {
        if ((dues += 1) > MAX_DUES) throw new Error(`advance: after ${MAX_DUES} due times there is no end`)
        clock.advance(Math.max(0, due - clock.now()))
        await letPromisesGoOn()
      }
      clock.advance(target - clock.now())
    },
  }
}
