/** The clock of one race. Only the race advances it. Code that reads the clock in a loop gets an error, because it would hang. */
import { AgentTasksError } from '../errors.js'
import type { Clock, TimerLabel } from '../system/clock.js'
import { createManualClock } from './manual-clock.js'
import { originOf, timerName, type TimerOrigin } from './timer-origin.js'

/** The name of the actor that runs the timers, in orders and timelines. */
export const CLOCK = 'clock'

/** The clock of a race. Pass it as the option `clock`. */
export interface RaceClock extends Clock {
  /** How many timers are set and have not run. */
  readonly pending: number
}

export interface RanTimer {
  /** Returns the timer's label, or who set the timer. Slow, because it may read a stack. */
  readonly name: () => string
  readonly isPoll: boolean
}

/** The clock, with the methods that only the race calls. */
export interface MovableRaceClock extends RaceClock {
  readonly nextDue: number | undefined
  readonly lastRun: RanTimer | undefined
  /** Whether every timer that is set has a label of the kind `poll`. */
  readonly isOnlyPolling: boolean
  /** The names of the deadlines that are set, but that the race never reaches. */
  readonly deadlines: readonly string[]
  runNext(): boolean
  /** Starts a new turn, which may read the clock again. */
  startTurn(): void
  /** Makes `setTimeout` do nothing from now on. */
  close(): void
  clear(): void
}

/** How often one turn may read the clock before it counts as a busy-wait. */
const MAX_READS = 100_000

export interface RaceClockOptions {
  readonly start: number
  readonly hasDeadlines: boolean
  /** Returns the name that took the last turn; undefined in the setup. */
  readonly lastActor: () => string | undefined
}

export function createRaceClock({ start, hasDeadlines, lastActor }: RaceClockOptions): MovableRaceClock {
  const clock = createManualClock(start)
  const timers = new Map<unknown, TimerLabel | undefined>()
  const deadlines = new Map<unknown, string>()
  let reads = 0
  let isClosed = false
  let last: TimerOrigin | undefined
  let lastRun: RanTimer | undefined
  const during = (): TimerOrigin['during'] => {
    const actor = lastActor()
    if (actor === CLOCK && last !== undefined) return last
    return actor === undefined ? 'the setup' : `the turn of ${actor}`
  }
  const setTimeout = (run: () => void, ms: number, label?: TimerLabel): unknown => {
    if (isClosed) return undefined
    if (label?.kind === 'deadline' && !hasDeadlines) {
      const deadline = {}
      deadlines.set(deadline, label.name)
      return deadline
    }
    const origin: TimerOrigin | undefined =
      label === undefined ? { ...originOf(setTimeout), during: during() } : undefined
    const runAs = (): void => {
      timers.delete(timer)
      last = origin
      lastRun = {
        name: () => (origin === undefined ? (label?.name ?? '') : timerName(origin)),
        isPoll: label?.kind === 'poll',
      }
      run()
    }
    const timer = clock.setTimeout(runAs, ms)
    timers.set(timer, label)
    return timer
  }
  return {
    now: () => {
      if (++reads > MAX_READS) {
        throw new AgentTasksError(
          'RACE_LOOP',
          `clock.now() was read ${MAX_READS} times in one step. Time passes only between steps, so wait with clock.setTimeout().`,
        )
      }
      return clock.now()
    },
    setTimeout,
    clearTimeout: (timer) => {
      deadlines.delete(timer)
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
    get isOnlyPolling() {
      return timers.size > 0 && [...timers.values()].every((label) => label?.kind === 'poll')
    },
    get deadlines() {
      return [...deadlines.values()]
    },
    runNext: () => clock.runNext(),
    startTurn: () => {
      reads = 0
    },
    close: () => {
      isClosed = true
    },
    clear: () => {
      for (const timer of timers.keys()) clock.clearTimeout(timer)
      timers.clear()
      deadlines.clear()
    },
  }
}
