/** The default engine, which runs work in this process. */
import { IsolatedController } from '../isolation/isolated-controller.js'
import { clearLongTimeout, setLongTimeout, systemClock, type Clock, type LongTimer } from '../system/clock.js'
import { aClock, aFunction, checkOptions, type OptionTypes } from '../protocol/option-checks.js'
import type { Engine, Outcome, Run, Work } from './engine.js'

/** Options of `createInProcessEngine`. */
export interface InProcessEngineOptions {
  /** Measures the grace period of aborted work. Default: the clock of the platform. */
  readonly clock?: Clock
  /** Called with an exception of a listener for the abort signal, and the work to which the signal belongs. */
  readonly onError?: (error: unknown, work: Work) => void
}

const optionTypes: OptionTypes<InProcessEngineOptions> = { clock: aClock, onError: aFunction }

/**
 * Creates an engine that calls the functions of runs in this process.
 * @throws INVALID_INPUT for an unknown option, or one of the wrong type
 */
export function createInProcessEngine(options: InProcessEngineOptions = {}): Engine {
  checkOptions(options, optionTypes)
  const { clock = systemClock, onError } = options
  return { start: (work) => new InProcessRun(work, clock, onError) }
}

class InProcessRun implements Run {
  readonly settled: Promise<Outcome>
  readonly #work: Work
  readonly #clock: Clock
  readonly #abort: IsolatedController
  #resolve: ((outcome: Outcome) => void) | undefined
  #grace: LongTimer | undefined

  constructor(work: Work, clock: Clock, onError: InProcessEngineOptions['onError']) {
    this.#work = work
    this.#clock = clock
    this.#abort = new IsolatedController((error) => onError?.(error, work))
    this.settled = new Promise((resolve) => (this.#resolve = resolve))
    queueMicrotask(() => this.#begin())
  }

  /** A field rather than a method, so that a wrapping engine can copy it with `{ ...run }`. */
  readonly abort = (reason?: unknown): void => {
    if (this.#resolve === undefined || this.#abort.aborted) return
    const { id, graceMs } = this.#work
    this.#grace = setLongTimeout(this.#clock, () => this.#settle({ type: 'abandoned' }), graceMs, {
      name: `grace of ${id}`,
    })
    this.#abort.abort(reason)
  }

  #begin(): void {
    if (this.#abort.aborted) {
      this.#settle({ type: 'skipped' })
      return
    }
    // The promise constructor converts a synchronous exception, or a thenable that throws, to a rejection.
    new Promise((done) => done(this.#work.run(this.#abort))).then(
      (value) => this.#settle({ type: 'returned', value }),
      (reason: unknown) => this.#settle({ type: 'threw', reason }),
    )
  }

  #settle(outcome: Outcome): void {
    const resolve = this.#resolve
    if (resolve === undefined) {
      this.#work.onLate?.(outcome)
      return
    }
    this.#resolve = undefined
    clearLongTimeout(this.#clock, this.#grace)
    resolve(outcome)
  }
}
