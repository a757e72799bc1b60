/** A clock that only tests move: nothing is due until they say so. */
import { MAX_TIMER_MS, type Clock } from '../../src/clock.js'

/** How many timers one `advance` may run before it is taken for a loop. */
const MAX_RUNS = 1_000_000

/** A `Clock` whose time is in the hands of the test. */
export interface ManualClock extends Clock {
  /** How many timers are set and have not run. */
  readonly pending: number
  /**
   * Moves the time by `ms` and runs what becomes due, in order of due time and then of setting, each at its own time.
   * Timers that are set meanwhile run as well if they are due within the same stretch.
   */
  advance(ms: number): void
}

/**
 * Makes a clock that stands still.
 * @param start the time it shows, in ms since the epoch
 */
export function createManualClock(start = 0): ManualClock {
  const timers = new Map<number, { readonly due: number; readonly run: () => void }>()
  let now = start
  let lastId = 0

  const nextDue = (target: number): number | undefined => {
    let found: number | undefined
    let earliest = Infinity
    for (const [id, { due }] of timers) {
      if (due <= target && due < earliest) [found, earliest] = [id, due]
    }
    return found
  }

  return {
    now: () => now,
    setTimeout: (run, ms) => {
      // As on the platform: a delay that is no number, negative or too long is none.
      const delay = ms > 0 && ms <= MAX_TIMER_MS ? ms : 0
      timers.set(++lastId, { due: now + delay, run })
      return lastId
    },
    clearTimeout: (timer) => {
      timers.delete(timer as number)
    },
    get pending() {
      return timers.size
    },
    advance: (ms) => {
      if (!(ms >= 0)) throw new RangeError(`advance: got ${ms}, expected ms >= 0`)
      const target = now + ms
      for (let runs = 0, id = nextDue(target); id !== undefined; id = nextDue(target), runs += 1) {
        if (runs === MAX_RUNS) throw new Error(`advance: ${MAX_RUNS} timers ran: does one set itself without a delay?`)
        const timer = timers.get(id)
        timers.delete(id)
        if (timer === undefined) continue
        now = Math.max(now, timer.due)
        timer.run()
      }
      now = Math.max(now, target)
    },
  }
}
