/** The clock of one race. Only the race moves it; code that polls it in a loop gets an error instead of hanging. */
import { AgentTasksError } from '../errors.js'
import type { Clock } from '../clock.js'
import { createManualClock } from './manual-clock.js'

/** The clock of a race. Pass it as the option `clock`. */
export interface RaceClock extends Clock {
  /** How many timers are set and have not run. */
  readonly pending: number
}

/** The same clock, with the methods that only the race calls. */
export interface MovableRaceClock extends RaceClock {
  readonly nextDue: number | undefined
  runNext(): boolean
  /** Starts a new turn, which may read the clock again. */
  startTurn(): void
  /** Makes `setTimeout` do nothing from now on. */
  close(): void
}

/** How often one turn may read the clock before it counts as a loop that waits for time to pass. */
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
    startTurn: () => {
      reads = 0
    },
    close: () => {
      isClosed = true
    },
  }
}
