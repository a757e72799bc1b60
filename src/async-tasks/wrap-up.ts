/** The signal that asks a run to conclude: a budget is exceeded (F10). */
import { BUDGET_EXCEEDED } from '../../machines/async-task.js'
import { isolateAbortListeners } from '../callbacks/isolated-signal.js'

export class WrapUp {
  readonly #controller = new AbortController()

  /** @param report called with what a listener throws */
  constructor(report: (error: unknown) => void) {
    isolateAbortListeners(this.#controller.signal, report)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** @param excess the budget that was exceeded, in words */
  begin(excess: string): void {
    this.#controller.abort(excessError(excess))
  }
}

/** The reason of an abort. */
export const excessError = (excess: string): Error =>
  Object.assign(new Error(excess), { name: 'BudgetExceededError', code: BUDGET_EXCEEDED })
