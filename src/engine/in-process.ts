/** The engine that runs work in this process: the default, and the fastest. */
import { clearLongTimeout, setLongTimeout, systemClock, type Clock, type LongTimer } from '../clock.js'
import type { Engine, Outcome, Run, Work } from './engine.js'
import { isolateAbortListeners } from '../callbacks/isolated-signal.js'

/** Options of `createInProcessEngine`. */
export interface InProcessEngineOptions {
  /** Times the grace of aborted work. Default: the platform's. */
  readonly clock?: Clock
  /** Told of exceptions in the abort listeners of runs. */
  readonly onError?: (error: unknown, work: Work) => void
}

/** Makes an engine whose runs are plain function calls with an `AbortSignal`. */
export function createInProcessEngine(options: InProcessEngineOptions = {}): Engine {
  const { clock = systemClock, onError } = options
  return { start: (work) => new InProcessRun(work, clock, onError) }
}

/** One object, rather than a closure for each thing that may happen to it: every command of every task is a run. */
class InProcessRun implements Run {
  readonly settled: Promise<Outcome>
  readonly #work: Work
  readonly #clock: Clock
  readonly #controller = new AbortController()
  #resolve: ((outcome: Outcome) => void) | undefined
  #grace: LongTimer | undefined

  constructor(work: Work, clock: Clock, onError: InProcessEngineOptions['onError']) {
    this.#work = work
    this.#clock = clock
    isolateAbortListeners(this.#controller.signal, (error) => onError?.(error, work))
    this.settled = new Promise((resolve) => (this.#resolve = resolve))
    queueMicrotask(() => this.#begin())
  }

  /** A field, so that whoever wraps a run may spread it. */
  readonly abort = (reason?: unknown): void => {
    if (this.#resolve === undefined || this.#controller.signal.aborted) return
    this.#grace = setLongTimeout(this.#clock, () => this.#settle({ type: 'abandoned' }), this.#work.graceMs)
    this.#controller.abort(reason)
  }

  #begin(): void {
    const { signal } = this.#controller
    if (signal.aborted) {
      this.#settle({ type: 'skipped' })
      return
    }
    // The promise constructor turns a synchronous throw, and a thenable that misbehaves, into a rejection.
    new Promise((done) => done(this.#work.run(signal))).then(
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
