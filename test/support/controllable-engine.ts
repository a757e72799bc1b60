/** An engine whose runs the test begins, ends and abandons. It follows the rules of the interface `Engine`, but the test decides when things happen. */
import type { Engine, Outcome, Work } from '../../src/engine/engine.js'

interface ControlledRun {
  readonly work: Work
  readonly signal: AbortSignal
  readonly outcome: Outcome | undefined
  readonly hasBegun: boolean
  /** Starts the work. Skips it if it was aborted before. */
  begin(): void
  /** Ends the work. Begins it first if necessary. After `abandon`, the outcome comes too late. */
  finish(outcome: Extract<Outcome, { type: 'returned' | 'threw' }>): void
  /** Ends the grace period of an aborted run. Does nothing for other runs. */
  abandon(): void
}

export interface ControllableEngine extends Engine {
  /** Every run that was started, in order. */
  readonly runs: readonly ControlledRun[]
  /** Makes the next `start` throw, unless `accept` is called before. */
  refuseNext(reason: unknown): void
  accept(): void
}

/**
 * Makes a controllable engine.
 * @param onEvent called for each start and abort
 */
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
