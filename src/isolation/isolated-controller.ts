/**
 * An `AbortController` whose signal isolates its listeners: an exception of a listener is reported and does not end the process (promise A2). The
 * signal is created when it is first read, because creating a signal takes longer than everything else in a short run.
 */
import { callIsolated } from './isolated-call.js'
import { isolateAbortListeners } from './isolated-signal.js'

export class IsolatedController extends AbortController {
  readonly #report: (error: unknown) => void
  #signal: AbortSignal | undefined
  /** The listener of `listen`, while the signal does not exist. */
  #listener: (() => void) | undefined
  #isAborted = false

  /** @param report called with exceptions of the signal's listeners */
  constructor(report: (error: unknown) => void) {
    super()
    this.#report = report
  }

  get aborted(): boolean {
    return this.#isAborted
  }

  get reason(): unknown {
    return this.#isAborted ? (this.signal.reason as unknown) : undefined
  }

  override get signal(): AbortSignal {
    if (this.#signal === undefined) {
      this.#signal = super.signal
      isolateAbortListeners(this.#signal, this.#report)
      if (this.#listener !== undefined) this.#signal.addEventListener('abort', this.#listener)
      this.#listener = undefined
    }
    return this.#signal
  }

  /**
   * Calls `listener` on abort, without creating the signal. Only one such listener can be set at a time. Returns a function that removes the
   * listener.
   */
  listen(listener: () => void): () => void {
    if (this.#signal === undefined) this.#listener = listener
    else this.#signal.addEventListener('abort', listener)
    return () => {
      this.#listener = undefined
      this.#signal?.removeEventListener('abort', listener)
    }
  }

  /** Aborts the signal. Only the first reason counts. */
  override abort(reason?: unknown): void {
    if (this.#isAborted) return
    this.#isAborted = true
    const listener = this.#listener
    super.abort(reason)
    if (listener !== undefined) callIsolated(listener, this.#report)
  }
}
