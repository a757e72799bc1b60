/** Handles the loss of an open store. */
import type { Store } from './store.js'

export const STORE_LOST_REASON = 'the store was lost'

/**
 * Calls `onLost` when the store is lost. If the store is lost already, calls it at once.
 * @returns a function that stops watching
 */
export function whenLost({ lost }: Pick<Store, 'lost'>, onLost: (reason: unknown) => void): () => void {
  if (lost === undefined) return () => undefined
  const listener = (): void => onLost(lost.reason)
  if (lost.aborted) listener()
  else lost.addEventListener('abort', listener, { once: true })
  return () => lost.removeEventListener('abort', listener)
}
