/**
 * An engine whose runs begin, end and are abandoned when a test says so: the port's rules without its timing. Promises
 * settle in microtasks, as everywhere.
 */
import type { Engine, Outcome, Work } from '../../src/engine/engine.js'

interface ControlledRun {
  readonly work: Work
  readonly signal: AbortSignal
  readonly outcome: Outcome | undefined
  readonly hasBegun: boolean
  /** Calls the work, unless it was aborted before: then it is skipped. */
  begin(): void
  /** Ends the work, which is begun if it was not. After it was abandoned, the outcome is a late one. */
  finish(outcome: Extract<Outcome, { type: 'returned' | 'threw' }>): void
  /** The grace of an aborted run is over. Does nothing to another. */
  abandon(): void
}

export interface ControllableEngine extends Engine {
  /** Every run that was started, in order. */
  readonly runs: readonly ControlledRun[]
  /** Makes the next start throw this instead, unless `accept` comes first. */
  refuseNext(reason: unknown): void
  accept(): void
}

/** Makes an engine that starts nothing until told; `onEvent` hears of starts, aborts and beginnings. */
export function createControllableEngine(
  onEvent: (event: { run: number } & ({ started: Work } | { aborted: unknown })) => void = () => undefined,
): ControllableEngine {
  const runs: ControlledRun[] = []
  let refusal: { reason: unknown } | undefined
  return {
    runs,
    refuseNext: (reason) => (refusal = { reason }),
    accept: () => (refusal = undefined),
    start(work) {
      if (refusal !== undefined) {
        const { reason } = refusal
        refusal = undefined
        throw reason
      }
      const n = runs.length
      const controller = new AbortController()
      let hasBegun = false
      let outcome: Outcome | undefined
      let resolve: (outcome: Outcome) => void = () => undefined
      const settled = new Promise<Outcome>((done) => (resolve = done))
      const settle = (how: Outcome): void => resolve((outcome = how))
      const begin = (): void => {
        if (outcome !== undefined || hasBegun) return
        if (controller.signal.aborted) {
          settle({ type: 'skipped' })
          return
        }
        hasBegun = true
        void work.run(controller)
      }
      runs.push({
        work,
        signal: controller.signal,
        get outcome() {
          return outcome
        },
        get hasBegun() {
          return hasBegun
        },
        begin,
        finish(how) {
          begin()
          if (outcome === undefined) {
            settle(how)
            return
          }
          if (outcome.type !== 'abandoned') return
          outcome = how
          work.onLate?.(how)
        },
        abandon() {
          if (outcome === undefined && hasBegun && controller.signal.aborted) settle({ type: 'abandoned' })
        },
      })
      onEvent({ run: n, started: work })
      return {
        settled,
        abort(reason) {
          if (outcome !== undefined || controller.signal.aborted) return
          controller.abort(reason)
          onEvent({ run: n, aborted: controller.signal.reason })
        },
      }
    },
  }
}
