/** What becomes of the users of a store that is lost while it is open. */
import type { Store } from './store.js'

/** Why tasks are cancelled then. */
export const STORE_LOST_REASON = 'the store was lost'

/**
 * Calls `onLost` when a store is lost, at once if it is.
 * @returns ends that
 */
export function whenLost({ lost }: Pick<Store, 'lost'>, onLost: (reason: unknown) => void): () => void {
  if (lost === undefined) return () => undefined
  const listener = (): void => onLost(lost.reason)
  if (lost.aborted) listener()
  else lost.addEventListener('abort', listener, { once: true })
  return () => lost.removeEventListener('abort', listener)
}
