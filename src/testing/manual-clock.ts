/** A clock that stands still until a test moves it. No real time passes. */
import { MAX_TIMER_MS, type Clock } from '../system/clock.js'
import { AgentTasksError, InvalidInputError } from '../errors.js'

/** The maximum number of timers that one `advance` runs. More timers count as an endless loop. */
const MAX_RUNS = 1_000_000

/** A `Clock` that a test moves. */
export interface ManualClock extends Clock {
  /** How many timers are set and have not run. */
  readonly pending: number
  /** When the next timer is due, in ms since the epoch; undefined when none is set. */
  readonly nextDue: number | undefined
  /**
   * Moves the time forward by `ms` and runs the timers that become due. They run in the order of their due times, each at its own due time. Timers with
   * equal due times run in the order in which they were set. A timer that these timers set runs too if it becomes due within `ms`.
   * @throws INVALID_INPUT unless `ms` is a number >= 0
   * @throws AgentTasksError `CLOCK_LOOP` after a million timers, because one of them seems to set itself again without a delay
   */
  advance(ms: number): void
  /**
   * Moves the time to the next timer, and runs only that timer.
   * @returns false when no timer is set
   */
  runNext(): boolean
}

/**
 * Creates a manual clock. Pass it as the option `clock` to what you test.
 * @param start the time at first, in ms since the epoch. Default 0
 * @returns the clock
 * @example
 * const clock = createManualClock()
 * const manager = new AsyncTaskManager({ clock })
 * manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'wait', timeoutMs: 60_000 })
 * clock.advance(60_000) // a minute has passed; the test took no time
 */
export function createManualClock(start = 0): ManualClock {
  const timers = new Map<number, { readonly due: number; readonly run: () => void }>()
  let now = start
  let lastId = 0

  const nextWithin = (target: number): number | undefined => {
    let found: number | undefined
    let earliest = Infinity
    for (const [id, { due }] of timers) {
      if (due <= target && due < earliest) [found, earliest] = [id, due]
    }
    return found
  }
  const run = (id: number): void => {
    const timer = timers.get(id)
    timers.delete(id)
    if (timer === undefined) return
    now = Math.max(now, timer.due)
    timer.run()
  }

  return {
    now: () => now,
    setTimeout: (run, ms) => {
      // As in Node, NaN, negative delays and delays above the limit count as 0.
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
    get nextDue() {
      const id = nextWithin(Infinity)
      return id === undefined ? undefined : timers.get(id)?.due
    },
    advance: (ms) => {
      if (!(ms >= 0)) throw new InvalidInputError('ms', ms, 'a number of ms >= 0, because a clock does not go back')
      const target = now + ms
      for (let runs = 0, id = nextWithin(target); id !== undefined; id = nextWithin(target), runs += 1) {
        if (runs === MAX_RUNS) {
          throw new AgentTasksError(
            'CLOCK_LOOP',
            `advance: ${MAX_RUNS} timers ran. Does a timer set itself again without a delay?`,
          )
        }
        run(id)
      }
      now = Math.max(now, target)
    },
    runNext: () => {
      const id = nextWithin(Infinity)
      if (id === undefined) return false
      run(id)
      return true
    },
  }
}
