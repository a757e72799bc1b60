/** The clock of one race. Only the race moves it; code that polls it in a loop gets an error instead of hanging. */
import { AgentTasksError } from '../errors.js'
import type { Clock } from '../clock.js'
import { createManualClock } from './manual-clock.js'
import { originOf, timerName, type TimerOrigin } from './timer-origin.js'

/** The name of the actor that runs the timers, in orders and timelines. */
export const CLOCK = 'clock'

/** The clock of a race. Pass it as the option `clock`. */
export interface RaceClock extends Clock {
  /** How many timers are set and have not run. */
  readonly pending: number
}

/** The same clock, with the methods that only the race calls. */
export interface MovableRaceClock extends RaceClock {
  readonly nextDue: number | undefined
  /** Names the timer that ran last, by who set it. Another function for each timer. */
  readonly lastRun: () => string
  runNext(): boolean
  /** Starts a new turn, which may read the clock again. */
  startTurn(): void
  /** Makes `setTimeout` do nothing from now on. */
  close(): void
  /** Removes every timer. */
  clear(): void
}

/** How often one turn may read the clock before it counts as a loop that waits for time to pass. */
const MAX_READS = 100_000

/** @param lastActor who took the last turn; undefined in the setup */
export function createRaceClock(start: number, lastActor: () => string | undefined): MovableRaceClock {
  const clock = createManualClock(start)
  const timers = new Set<unknown>()
  let reads = 0
  let isClosed = false
  let last: TimerOrigin | undefined
  let lastRun = (): string => 'timer'
  const during = (): TimerOrigin['during'] => {
    const actor = lastActor()
    if (actor === CLOCK && last !== undefined) return last
    return actor === undefined ? 'the setup' : `the turn of ${actor}`
  }
  const setTimeout = (run: () => void, ms: number): unknown => {
    if (isClosed) return undefined
    const origin: TimerOrigin = { ...originOf(setTimeout), during: during() }
    const runAs = (): void => {
      timers.delete(timer)
      last = origin
      lastRun = () => timerName(origin)
      run()
    }
    const timer = clock.setTimeout(runAs, ms)
    timers.add(timer)
    return timer
  }
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
    setTimeout,
    clearTimeout: (timer) => {
      timers.delete(timer)
      clock.clearTimeout(timer)
    },
    get pending() {
      return clock.pending
    },
    get nextDue() {
      return clock.nextDue
    },
    get lastRun() {
      return lastRun
    },
    runNext: () => clock.runNext(),
    startTurn: () => {
      reads = 0
    },
    close: () => {
      isClosed = true
    },
    clear: () => {
      for (const timer of timers) clock.clearTimeout(timer)
      timers.clear()
    },
  }
}
