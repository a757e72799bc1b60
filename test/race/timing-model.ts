/** A model of when a trigger must start its next delivery. */

/** All in ms. */
export interface Timing {
  readonly coalesceMs: number
  readonly maxWaitMs: number
  readonly retryInitialMs: number
  readonly retryMaxMs: number
  readonly timeoutMs: number | undefined
  /** How often a busy agent is asked again. */
  readonly pollMs: number
}

type State =
  | { readonly name: 'dormant' | 'delivering' }
  /** Waiting for more tasks to end. */
  | { readonly name: 'gathering'; readonly since: number; readonly due: number }
  | { readonly name: 'polling' | 'backing off'; readonly due: number }

export class TimingModel {
  readonly #timing: Timing
  readonly #countOwed: () => number
  #state: State = { name: 'dormant' }
  /** Set by the host without an event. */
  isBusy = false
  #failures = 0
  #violation: string | undefined

  constructor(timing: Timing, countOwed: () => number) {
    this.#timing = timing
    this.#countOwed = countOwed
  }

  subscribe(now: number): void {
    this.#gather(now, now)
  }

  /** A task has ended. */
  request(now: number): void {
    if (this.#state.name === 'dormant' || this.#state.name === 'polling') this.#gather(now, now)
    else if (this.#state.name === 'gathering') this.#gather(this.#state.since, now)
  }

  /** An idle edge: a retry that waits starts now, and a busy agent is asked now. */
  becomeIdle(now: number): void {
    if (this.#state.name === 'backing off' || this.#state.name === 'polling') this.#gather(now, now)
  }

  /** A delivery starts. */
  start(now: number, size: number, isRepeat: boolean): void {
    this.#moveTo(now, false)
    const { name } = this.#state
    const isDue = (this.#state.name === 'gathering' || this.#state.name === 'polling') && this.#state.due === now
    if (!isDue) {
      this.#fail(now, `a delivery starts while ${name}${'due' in this.#state ? ` until ${this.#state.due}` : ''}`)
    }
    if (size === 0) this.#fail(now, 'a delivery starts with nothing')
    const left = this.#countOwed()
    // A repeat carries only what the message had that it repeats.
    if (left > 0 && !isRepeat) this.#fail(now, `a delivery does not carry ${left} owed results`)
    this.#state = { name: 'delivering' }
  }

  end(now: number, isAccepted: boolean): void {
    if (isAccepted) {
      this.#failures = 0
      this.#gather(now, now)
    } else this.#backOff(now)
  }

  /** A delivery has expired. */
  expire(now: number): void {
    this.#backOff(now)
  }

  /** The time is `now`, and every timer that was due has run. */
  look(now: number): void {
    this.#moveTo(now, true)
  }

  /** @throws the first violation, and the schedule */
  conclude(schedule: string): void {
    if (this.#violation !== undefined) throw new Error(`${this.#violation}\n${schedule}`)
  }

  /** Makes the transitions that need no delivery. A delivery that is due now may still start, unless `isOver`. */
  #moveTo(now: number, isOver: boolean): void {
    for (;;) {
      const state = this.#state
      if (!('due' in state) || state.due > now) return
      if (state.name === 'backing off') this.#gather(state.due, state.due)
      else if (this.#countOwed() === 0 && (isOver || state.due < now)) {
        this.#failures = 0
        this.#state = { name: 'dormant' }
      } else if (this.isBusy) {
        this.#state = { name: 'polling', due: state.due + this.#timing.pollMs }
      } else {
        if (isOver || state.due < now) this.#fail(now, `no delivery started at ${state.due}`)
        return
      }
    }
  }

  #gather(since: number, now: number): void {
    const { coalesceMs, maxWaitMs } = this.#timing
    this.#state = { name: 'gathering', since, due: Math.min(now + coalesceMs, since + maxWaitMs) }
  }

  #backOff(now: number): void {
    const { retryInitialMs, retryMaxMs } = this.#timing
    this.#state = { name: 'backing off', due: now + Math.min(retryMaxMs, retryInitialMs * 2 ** this.#failures) }
    this.#failures += 1
  }

  #fail(now: number, what: string): void {
    this.#violation ??= `A6: at ${now} ${what}, after ${this.#failures} failures`
  }
}
