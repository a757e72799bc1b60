/** The clock of a manager (option `clock`). The delays of XState, the streams and all timestamps use it. */

/** What a timer is for. The clock of a test can show it. The clock of the platform ignores it. */
export interface TimerLabel {
  /** What the timer does, such as `deadline of gold`. */
  readonly name: string
  /**
   * `deadline`: limits how long something may take. `poll`: checks repeatedly for a change. Absent for other timers, such as the timer that waits for
   * further results before a delivery.
   */
  readonly kind?: 'deadline' | 'poll'
}

/** Provides the time and timers. Tests supply their own. */
export interface Clock {
  /** Returns the time in ms since the epoch. */
  now(): number
  /** Returns the time in ms since a fixed moment, on a clock that nobody can set. Used for deadlines. Default: `now`. */
  monotonic?(): number
  /** Calls `run` once after `ms` milliseconds. `label` says what the timer is for. Most clocks ignore it. */
  setTimeout(run: () => void, ms: number, label?: TimerLabel): unknown
  /** Clears a timer. Has no effect if the timer has run or is unknown. */
  clearTimeout(timer: unknown): void
}

/** If the time is set back by less than this (in ms), it was synchronised. If by more, a person has set the clock. */
const CLOCK_STEP_MS = 1000

let latest = -Infinity

/**
 * The clock of the platform. If the platform's time is set back by less than a second, this clock stands still until the platform has caught up. So a
 * later event never gets an earlier timestamp. The clock looks up global functions at each call, so that fake timers can be installed later.
 */
export const systemClock: Clock = {
  now: () => {
    const now = Date.now()
    if (now < latest && latest - now < CLOCK_STEP_MS) return latest
    latest = now
    return now
  },
  monotonic: () => performance.now(),
  setTimeout: (run, ms) => (ms <= 0 && hasImmediates() ? new NextTurn(run) : globalThis.setTimeout(run, ms)),
  clearTimeout: (timer) => {
    if (timer instanceof NextTurn) timer.clear()
    else globalThis.clearTimeout(timer as ReturnType<typeof globalThis.setTimeout>)
  },
}

/** Browsers have no `setImmediate`. */
const hasImmediates = (): boolean => 'setImmediate' in globalThis

/** A timer of 0 ms in Node. `setTimeout` would wait for at least one millisecond. */
class NextTurn {
  readonly #immediate: NodeJS.Immediate

  constructor(run: () => void) {
    this.#immediate = globalThis.setImmediate(run)
  }

  clear(): void {
    globalThis.clearImmediate(this.#immediate)
  }

  unref(): void {
    this.#immediate.unref()
  }
}

/** The maximum delay of a platform timer, in ms. A timer with a longer delay would fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/** A timer whose delay may be longer than the maximum of the platform. */
export interface LongTimer {
  current: unknown
}

/** Sets a timer of any length. A long delay is split into several timers. A delay of Infinity never ends. */
export function setLongTimeout(clock: Clock, run: () => void, ms: number, label?: TimerLabel): LongTimer {
  const timer: LongTimer = { current: undefined }
  const wait = (left: number): void => {
    if (left === Infinity) return
    timer.current =
      left <= MAX_TIMER_MS
        ? clock.setTimeout(run, left, label)
        : clock.setTimeout(() => wait(left - MAX_TIMER_MS), MAX_TIMER_MS, label)
  }
  wait(ms)
  return timer
}

export function clearLongTimeout(clock: Clock, timer: LongTimer | undefined): void {
  if (timer?.current !== undefined) clock.clearTimeout(timer.current)
}

export interface TimeLimit<Late> {
  readonly clock: Clock
  /** The time limit in ms; Infinity for no limit. */
  readonly ms: number
  /** Called when the time is up. The returned promise settles with its result or exception. */
  readonly late: () => Late
  readonly label?: TimerLabel
}

/** Returns a promise that settles like `promise`, or with the result of `late` if `promise` takes too long. Leaves no timer behind. */
export function withTimeLimit<T, Late>(promise: Promise<T>, limit: TimeLimit<Late>): Promise<T | Late> {
  const { clock, ms, late, label } = limit
  return new Promise((resolve, reject) => {
    const expire = (): void => resolve(new Promise((settle) => settle(late())))
    const timer = setLongTimeout(clock, expire, ms, label)
    promise.then(resolve, reject).finally(() => clearLongTimeout(clock, timer))
  })
}

/** Allows the process to exit although this timer is set. */
export function unrefTimer(timer: unknown): void {
  const { unref } = (timer ?? {}) as { unref?: () => void }
  unref?.call(timer)
}

/** Returns a time in ms for measuring durations. Uses a clock that nobody can set, if there is one. See `Clock.monotonic`. */
export function elapsedMs(clock: Clock): number {
  return clock.monotonic?.() ?? clock.now()
}

/**
 * Creates a clock for the delays of XState.
 * @param change runs the callback of each timer as a change of the manager
 * @param labelOf returns the label of a timer that is being set
 */
export function actorClock(
  clock: Clock,
  change: (run: () => void) => void,
  labelOf: (ms: number) => TimerLabel | undefined = () => undefined,
) {
  return {
    setTimeout: (run: () => void, ms: number): unknown => setLongTimeout(clock, () => change(run), ms, labelOf(ms)),
    clearTimeout: (timer: unknown): void => clearLongTimeout(clock, timer as LongTimer | undefined),
  }
}
