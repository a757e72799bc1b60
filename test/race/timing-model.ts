/** When a trigger of an agent that is always idle must start its next delivery: a model to hold the real one against. */

/** All in ms. */
export interface Timing {
  readonly coalesceMs: number
  readonly maxWaitMs: number
  readonly retryInitialMs: number
  readonly retryMaxMs: number
  readonly timeoutMs: number | undefined
}

type State =
  | { readonly name: 'dormant' | 'delivering' }
  /** Waiting for more to end. */
  | { readonly name: 'gathering'; readonly since: number; readonly due: number }
  | { readonly name: 'backing off'; readonly due: number }

export class TimingModel {
  readonly #timing: Timing
  readonly #countOwed: () => number
  #state: State = { name: 'dormant' }
  #failures = 0
  #violation: string | undefined

  constructor(timing: Timing, countOwed: () => number) {
    this.#timing = timing
    this.#countOwed = countOwed
  }

  subscribe(now: number): void {
    this.#gather(now, now)
  }

  /** Something has ended. */
  request(now: number): void {
    if (this.#state.name === 'dormant') this.#gather(now, now)
    else if (this.#state.name === 'gathering') this.#gather(this.#state.since, now)
  }

  /** An idle edge: it fires an armed retry. */
  becomeIdle(now: number): void {
    if (this.#state.name === 'backing off') this.#gather(now, now)
  }

  /** A delivery starts. */
  start(now: number, size: number): void {
    this.#moveTo(now, false)
    const { name } = this.#state
    const isDue = this.#state.name === 'gathering' && this.#state.due === now
    if (!isDue) {
      this.#fail(now, `a delivery starts while ${name}${'due' in this.#state ? ` until ${this.#state.due}` : ''}`)
    }
    if (size === 0) this.#fail(now, 'a delivery starts with nothing')
    const left = this.#countOwed()
    if (left > 0) this.#fail(now, `a delivery leaves ${left} behind`)
    this.#state = { name: 'delivering' }
  }

  end(now: number, isAccepted: boolean): void {
    if (isAccepted) {
      this.#failures = 0
      this.#gather(now, now)
    } else this.#backOff(now)
  }

  /** A delivery was given up. */
  expire(now: number): void {
    this.#backOff(now)
  }

  /** The time has come to `now`, and everything that was due has happened. */
  look(now: number): void {
    this.#moveTo(now, true)
  }

  /** @throws what went wrong first */
  conclude(schedule: string): void {
    if (this.#violation !== undefined) throw new Error(`${this.#violation}\n${schedule}`)
  }

  /** Takes the steps that need no delivery. One that is due now may still start, unless `now` is over. */
  #moveTo(now: number, isOver: boolean): void {
    for (;;) {
      const state = this.#state
      if (!('due' in state) || state.due > now) return
      if (state.name === 'backing off') this.#gather(state.due, state.due)
      else if (this.#countOwed() === 0 && (isOver || state.due < now)) {
        this.#failures = 0
        this.#state = { name: 'dormant' }
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
