/** The engine that runs work in this process: the default, and the fastest. */
import { clearLongTimeout, setLongTimeout, systemClock, type Clock, type LongTimer } from '../clock.js'
import type { Engine, Outcome, Run, Work } from './engine.js'
import { isolateAbortListeners } from '../isolated-signal.js'

/** Options of `createInProcessEngine`. */
export interface InProcessEngineOptions {
  /** Times the grace of aborted work. Default: the platform's. */
  readonly clock?: Clock
  /** Told of exceptions in the abort listeners of runs. */
  readonly onError?: (error: unknown, work: Work) => void
}

/** Makes an engine whose runs are plain function calls with an `AbortSignal`. */
export function createInProcessEngine(options: InProcessEngineOptions = {}): Engine {
  return { start: (work) => startRun(work, options.clock ?? systemClock, options.onError) }
}

function startRun(work: Work, clock: Clock, onError: InProcessEngineOptions['onError']): Run {
  const controller = new AbortController()
  isolateAbortListeners(controller.signal, (error) => onError?.(error, work))
  let grace: LongTimer | undefined
  let isSettled = false
  let resolve: (outcome: Outcome) => void = () => undefined
  const settled = new Promise<Outcome>((settle) => (resolve = settle))
  const settle = (outcome: Outcome): void => {
    if (isSettled) {
      work.onLate?.(outcome)
      return
    }
    isSettled = true
    clearLongTimeout(clock, grace)
    resolve(outcome)
  }

  queueMicrotask(() => {
    if (controller.signal.aborted) {
      settle({ type: 'skipped' })
      return
    }
    // The promise constructor turns a synchronous throw, and a thenable that misbehaves, into a rejection.
    new Promise((done) => done(work.run(controller.signal))).then(
      (value) => settle({ type: 'returned', value }),
      (reason: unknown) => settle({ type: 'threw', reason }),
    )
  })

  return {
    settled,
    abort: (reason) => {
      if (isSettled || controller.signal.aborted) return
      grace = setLongTimeout(clock, () => settle({ type: 'abandoned' }), work.graceMs)
      controller.abort(reason)
    },
  }
}
