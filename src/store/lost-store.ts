/** Handles the loss of an open store. */
import { whenAborted } from '../system/abort.js'
import type { Store } from './store.js'

export const STORE_LOST_REASON = 'the store was lost'

/**
 * Calls `onLost` when the store is lost. If the store is lost already, calls it at once.
 * @returns a function that stops watching
 */
export function whenLost({ lost }: Pick<Store, 'lost'>, onLost: (reason: unknown) => void): () => void {
  if (lost === undefined) return () => undefined
  return whenAborted(lost, () => onLost(lost.reason))
}
