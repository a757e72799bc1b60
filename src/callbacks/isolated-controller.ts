/**
 * An `AbortController` whose signal isolates its listeners (A2) and is made when it is first read: making one costs more than all else that a
 * short run needs.
 */
import { callIsolated } from './isolated-call.js'
import { isolateAbortListeners } from './isolated-signal.js'

export class IsolatedController extends AbortController {
  readonly #report: (error: unknown) => void
  #signal: AbortSignal | undefined
  /** Listens as long as there is no signal. */
  #listener: (() => void) | undefined
  #isAborted = false

  /** @param report called with exceptions of the signal's listeners */
  constructor(report: (error: unknown) => void) {
    super()
    this.#report = report
  }

  /** Whether it was aborted. */
  get aborted(): boolean {
    return this.#isAborted
  }

  /** Why it was aborted. */
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

  /** Has the abort call `listener`, without making the signal. There is one such listener at a time. Returns what removes it. */
  listen(listener: () => void): () => void {
    if (this.#signal === undefined) this.#listener = listener
    else this.#signal.addEventListener('abort', listener)
    return () => {
      this.#listener = undefined
      this.#signal?.removeEventListener('abort', listener)
    }
  }

  /** Aborts with the first reason that is given. */
  override abort(reason?: unknown): void {
    if (this.#isAborted) return
    this.#isAborted = true
    const listener = this.#listener
    super.abort(reason)
    if (listener !== undefined) callIsolated(listener, this.#report)
  }
}
