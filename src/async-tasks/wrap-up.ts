/** The signal that asks a run to conclude: a budget is exceeded (F10). */
import { PerTask } from '../../machines/per-task.js'
import { BUDGET_EXCEEDED } from '../../machines/async-task.js'
import { IsolatedController } from '../callbacks/isolated-controller.js'

export class WrapUp {
  readonly #controller: IsolatedController

  /** @param report called with what a listener throws */
  constructor(report: (error: unknown) => void) {
    this.#controller = new IsolatedController(report)
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

/** Of the tasks whose run has asked for it. */
export const wrapUps = new PerTask<WrapUp>()
