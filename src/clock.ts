/** The clock option. XState's delays, the streams and all timestamps use it. */

/** The purpose of a timer. Test clocks show it; the platform's clock ignores it. */
export interface TimerLabel {
  /** For example `deadline of gold`. */
  readonly name: string
  /**
   * `deadline`: it limits how long something may take. `poll`: it checks repeatedly for a change. Omitted for other timers, such as the one that
   * collects results before a delivery.
   */
  readonly kind?: 'deadline' | 'poll'
}

/** Provides the time and timers. Tests supply their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds since a fixed moment, on a clock that is never set. Deadlines use it. Default: `now`. */
  monotonic?(): number
  /** Calls `run` once after `ms` milliseconds. `label` gives the purpose of the timer; most clocks ignore it. */
  setTimeout(run: () => void, ms: number, label?: TimerLabel): unknown
  /** Clears a timer. Has no effect on a timer that has run or is unknown. */
  clearTimeout(timer: unknown): void
}

/** Backward steps below this many ms come from time synchronisation. Larger ones mean that a person has set the clock. */
const CLOCK_STEP_MS = 1000

let latest = -Infinity

/**
 * The platform's clock. It looks up the globals on each call, so that fake timers installed later work. When the platform's time is set back by less
 * than a second, this clock stands still until the platform has caught up. Later events therefore never get earlier timestamps.
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

/** A timer of 0 ms in Node. `setTimeout` would take at least one millisecond. */
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

/** The longest delay of a platform timer. Longer delays fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/** A timer that may exceed the platform's maximum. */
export interface LongTimer {
  current: unknown
}

/** Sets a timer of any length by splitting long delays. A delay of Infinity never fires. */
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

/** Clears a timer of `setLongTimeout`. */
export function clearLongTimeout(clock: Clock, timer: LongTimer | undefined): void {
  if (timer?.current !== undefined) clock.clearTimeout(timer.current)
}

export interface TimeLimit<Late> {
  readonly clock: Clock
  /** In ms; Infinity for no limit. */
  readonly ms: number
  /** Called when the time is up. Its result or exception settles the promise. */
  readonly late: () => Late
  readonly label?: TimerLabel
}

/** Settles like the promise, or with `late` when the promise takes too long. Leaves no timer behind. */
export function withTimeLimit<T, Late>(promise: Promise<T>, limit: TimeLimit<Late>): Promise<T | Late> {
  const { clock, ms, late, label } = limit
  return new Promise((resolve, reject) => {
    const expire = (): void => resolve(new Promise((settle) => settle(late())))
    const timer = setLongTimeout(clock, expire, ms, label)
    promise.then(resolve, reject).finally(() => clearLongTimeout(clock, timer))
  })
}

/** Allows the process to exit while this timer is set. */
export function unrefTimer(timer: unknown): void {
  const { unref } = (timer ?? {}) as { unref?: () => void }
  unref?.call(timer)
}

/** Milliseconds for measuring durations. See `Clock.monotonic`. */
export function elapsedMs(clock: Clock): number {
  return clock.monotonic?.() ?? clock.now()
}

/**
 * A clock for XState's delays. `change` runs each timer's callback as a change of the actor's host.
 * @param labelOf called when a timer is set
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
