/** The clock of one race: only the race moves it, and code that waits for it by reading it over and over is stopped. */
import { AgentTasksError } from '../errors.js'
import type { Clock } from '../clock.js'
import { createManualClock } from './manual-clock.js'

/** The clock that a race hands out: pass it on as the option `clock`. */
export interface RaceClock extends Clock {
  /** How many timers are set and have not run. */
  readonly pending: number
}

/** The side of it that the race keeps. */
export interface MovableRaceClock extends RaceClock {
  readonly nextDue: number | undefined
  runNext(): boolean
  /** A new event begins: the clock may be read again. */
  allowReads(): void
  /** From now on no timer is set any more. */
  close(): void
}

/** How often one event may read the clock before it is taken for a loop that waits for time to pass. */
const MAX_READS = 100_000

export function createRaceClock(start: number): MovableRaceClock {
  const clock = createManualClock(start)
  let reads = 0
  let isClosed = false
  return {
    now: () => {
      if (++reads > MAX_READS) {
        throw new AgentTasksError(
          'RACE_LOOP',
          `clock.now() was read ${MAX_READS} times in one step: time passes only between steps, so wait with clock.setTimeout().`,
        )
      }
      return clock.now()
    },
    setTimeout: (run, ms) => (isClosed ? undefined : clock.setTimeout(run, ms)),
    clearTimeout: (timer) => clock.clearTimeout(timer),
    get pending() {
      return clock.pending
    },
    get nextDue() {
      return clock.nextDue
    },
    runNext: () => clock.runNext(),
    allowReads: () => {
      reads = 0
    },
    close: () => {
      isClosed = true
    },
  }
}
