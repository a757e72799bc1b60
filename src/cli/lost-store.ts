/** Ends a server whose store is lost, so that its supervisor can restart it. */
import { whenLost } from '../store/lost-store.js'
import type { Store } from '../store/store.js'

/** The time limit for closing, in ms. */
const CLOSE_MS = 10_000

/**
 * Closes the server and exits with 1 when the store is lost.
 * @param store its `lost` is watched
 */
export function exitWhenLost(store: Pick<Store, 'lost'>, close: () => Promise<void>): void {
  whenLost(store, (reason) => {
    console.error(`agent-tasks error: ${(reason as Error).message}`)
    setTimeout(() => process.exit(1), CLOSE_MS).unref()
    void close().finally(() => process.exit(1))
  })
}
