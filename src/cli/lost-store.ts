/** Ends a server that has lost its store, so that a supervisor can restart it. */
import { whenLost } from '../store/lost-store.js'
import type { Store } from '../store/store.js'

/** How long the server may take to close, in ms. */
const CLOSE_MS = 10_000

/**
 * When the store is lost, closes the server and exits with code 1.
 * @param store the store whose promise `lost` is watched
 */
export function exitWhenLost(store: Pick<Store, 'lost'>, close: () => Promise<void>): void {
  whenLost(store, (reason) => {
    console.error(`agent-tasks error: ${(reason as Error).message}`)
    // The code also counts when something else, such as the end of the connection to a client, exits the process meanwhile.
    process.exitCode = 1
    setTimeout(() => process.exit(), CLOSE_MS).unref()
    void close().finally(() => process.exit())
  })
}
