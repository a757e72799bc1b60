/** A clock that only its holder moves: nothing is due until they say so, and no real time passes. */
import { MAX_TIMER_MS, type Clock } from '../clock.js'
import { AgentTasksError, InvalidInputError } from '../errors.js'

/** How many timers one `advance` may run before it is taken for a loop. */
const MAX_RUNS = 1_000_000

/** A `Clock` whose time is in the hands of the test. */
export interface ManualClock extends Clock {
  /** How many timers are set and have not run. */
  readonly pending: number
  /** When the next timer is due, in ms since the epoch; undefined when none is set. */
  readonly nextDue: number | undefined
  /**
   * Moves the time by `ms` and runs what becomes due, in order of due time and then of setting, each at its own time.
   * Timers that are set meanwhile run as well if they are due within the same stretch.
   * @throws InvalidInputError for anything but ms >= 0; AgentTasksError `CLOCK_LOOP` when a timer sets itself for ever without a delay
   */
  advance(ms: number): void
  /** Moves the time to the next timer that is due and runs that one alone. False when none is set. */
  runNext(): boolean
}

/**
 * Makes a clock that stands still. Pass it as the option `clock` to whatever is tested.
 * @param start the time it shows, in ms since the epoch
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
    get nextDue() {
      const id = nextWithin(Infinity)
      return id === undefined ? undefined : timers.get(id)?.due
    },
    advance: (ms) => {
      if (!(ms >= 0)) throw new InvalidInputError('ms', ms, 'a number of ms >= 0: a clock does not go back')
      const target = now + ms
      for (let runs = 0, id = nextWithin(target); id !== undefined; id = nextWithin(target), runs += 1) {
        if (runs === MAX_RUNS) {
          throw new AgentTasksError(
            'CLOCK_LOOP',
            `advance: ${MAX_RUNS} timers ran: does one set itself without a delay?`,
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
