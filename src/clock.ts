/** Time, as an option: XState's delays, the streams and every timestamp use it. */

/** What a timer is for. Clocks of tests show it; the platform's clock ignores it. */
export interface TimerLabel {
  /** Its name, such as `deadline of gold`. */
  readonly name: string
  /**
   * `deadline`: it ends what takes too long, such as a time limit of a turn. `poll`: it looks again and again whether something has changed.
   * Default: neither, such as a delivery that waits for more results.
   */
  readonly kind?: 'deadline' | 'poll'
}

/** The time and its timers; tests provide their own. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds since any fixed moment, on a clock that is never set: deadlines are kept by it. Default: `now`. */
  monotonic?(): number
  /** Calls `run` once, `ms` milliseconds from now. `label` says what the timer is for; most clocks ignore it. */
  setTimeout(run: () => void, ms: number, label?: TimerLabel): unknown
  /** Clears a timer; does nothing for one that has run or is unknown. */
  clearTimeout(timer: unknown): void
}

/** Time synchronisation sets a computer's clock back by less than this, in ms; a person sets it back by more. */
const CLOCK_STEP_MS = 1000

let latest = -Infinity

/**
 * The platform's clock. It looks the globals up at every call, so that fake timers installed later work. When the platform's time
 * is set back by less than a second, this clock stands still until it has caught up: later events never get earlier timestamps.
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

/** A browser has none. */
const hasImmediates = (): boolean => 'setImmediate' in globalThis

/** A timer of 0 ms in Node, where `setTimeout` would take at least a millisecond. */
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

/** The longest delay of a platform timer; longer ones fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/** A timer that may be longer than the platform allows. */
export interface LongTimer {
  current: unknown
}

/** Sets a timer of any length by splitting a long one. `ms` of Infinity never fires. */
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

/** Clears a timer of `setLongTimeout`, whichever part of it is pending. */
export function clearLongTimeout(clock: Clock, timer: LongTimer | undefined): void {
  if (timer?.current !== undefined) clock.clearTimeout(timer.current)
}

/** How long a promise may take. */
export interface TimeLimit<Late> {
  readonly clock: Clock
  /** In ms; Infinity for any time. */
  readonly ms: number
  /** Called when the time has passed: what it returns is the result then, what it throws the failure. */
  readonly late: () => Late
  readonly label?: TimerLabel
}

/** Settles as the promise does, or as `late` says when that takes too long. No timer is left. */
export function withTimeLimit<T, Late>(promise: Promise<T>, limit: TimeLimit<Late>): Promise<T | Late> {
  const { clock, ms, late, label } = limit
  return new Promise((resolve, reject) => {
    const expire = (): void => resolve(new Promise((settle) => settle(late())))
    const timer = setLongTimeout(clock, expire, ms, label)
    promise.then(resolve, reject).finally(() => clearLongTimeout(clock, timer))
  })
}

/** Lets the process end although this timer is set. */
export function unrefTimer(timer: unknown): void {
  const { unref } = (timer ?? {}) as { unref?: () => void }
  unref?.call(timer)
}

/** Milliseconds for measuring durations: see `Clock.monotonic`. */
export function elapsedMs(clock: Clock): number {
  return clock.monotonic?.() ?? clock.now()
}

/**
 * A clock for XState's delays. `change` runs what a timer does, as a change of the actor's host.
 * @param labelOf called for each timer, when it is set
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
