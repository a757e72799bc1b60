/** A manual clock that lets promises continue between timers, as Node does: after each timer, microtasks run before a later timer does. */
import type { Clock } from '../../src/system/clock.js'
import { createManualClock } from '../../src/testing/manual-clock.js'
import { runMicrotasks } from '../../src/testing/microtasks.js'

export interface PacedClock extends Clock {
  /** How many timers are set and have not run. */
  readonly pending: number
  /** Moves the time forward by `ms`, from one due time to the next. */
  advance(ms: number): Promise<void>
}

/** How many microtasks run after a timer. The longest chain of promises between two steps of a delivery or a wait is shorter. */
const TICKS = 12

/** How many due times one `advance` may pass. More count as an endless loop. */
const MAX_DUES = 500

export function createPacedClock(start = 0): PacedClock {
  const clock = createManualClock(start)
  return {
    now: () => clock.now(),
    setTimeout: (run, ms) => clock.setTimeout(run, ms),
    clearTimeout: (timer) => clock.clearTimeout(timer),
    get pending() {
      return clock.pending
    },
    advance: async (ms) => {
      const target = clock.now() + ms
      await runMicrotasks(TICKS)
      for (let dues = 1; clock.nextDue !== undefined && clock.nextDue <= target; dues += 1) {
        if (dues > MAX_DUES) throw new Error(`advance: more than ${MAX_DUES} due times`)
        // All timers with the same due time run together.
        clock.advance(Math.max(0, clock.nextDue - clock.now()))
        await runMicrotasks(TICKS)
      }
      clock.advance(target - clock.now())
    },
  }
}
