import type { Clock, TimerLabel } from './clock.js'

/**
 * Calls `onAbort` when the signal aborts. If it has aborted, calls it at once.
 * @returns a function that stops listening
 */
export function whenAborted(signal: AbortSignal | undefined, onAbort: () => void): () => void {
  if (signal?.aborted === true) onAbort()
  else signal?.addEventListener('abort', onAbort, { once: true })
  return () => signal?.removeEventListener('abort', onAbort)
}

/** Resolves after a time, in ms. Rejects with the reason of the signal when it aborts. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal, label?: TimerLabel): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const stop = (): void => {
      clock.clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    const end = (): void => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }
    const timer = clock.setTimeout(end, ms, label)
    signal?.addEventListener('abort', stop, { once: true })
  })
}
