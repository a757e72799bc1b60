/** An abort whose signal is made when it is first read. Making one costs more than all else that a short call needs. */
import { isolateAbortListeners } from './isolated-signal.js'

export class IsolatedAbort {
  readonly #report: (error: unknown) => void
  #controller: AbortController | undefined
  #aborted: { readonly reason: unknown } | undefined

  /** @param report called with exceptions of the signal's listeners */
  constructor(report: (error: unknown) => void) {
    this.#report = report
  }

  /** Whether it was aborted. */
  get aborted(): boolean {
    return this.#aborted !== undefined
  }

  /** Why it was aborted. */
  get reason(): unknown {
    return this.#aborted?.reason
  }

  /** The same as a signal. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      isolateAbortListeners(this.#controller.signal, this.#report)
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  /** Aborts with the first reason that is given. */
  abort(reason: unknown = new DOMException('This operation was aborted', 'AbortError')): void {
    if (this.#aborted !== undefined) return
    this.#aborted = { reason }
    this.#controller?.abort(reason)
  }
}
