/** Waits for a database that another process has locked, without blocking the thread as the wait of SQLite does. */
import { sleep } from '../../system/abort.js'
import { elapsedMs, type Clock } from '../../system/clock.js'
import { resultCode, SQLITE } from './sqlite-failure.js'

/** How long to wait for the lock, in ms. */
const LOCKED_MS = 5000

/** The interval between attempts, in ms. */
const AGAIN_MS = 50

/**
 * Runs a transaction, again and again while another process has locked the database.
 * @param run throws SQLite's error for a locked database, and has then changed nothing
 * @throws the last error, if the database stays locked
 */
export async function whileLocked<Result>(clock: Clock, run: () => Result): Promise<Result> {
  const until = elapsedMs(clock) + LOCKED_MS
  for (;;) {
    try {
      return run()
    } catch (error) {
      if (resultCode(error) !== SQLITE.busy || elapsedMs(clock) >= until) throw error
    }
    await sleep(clock, AGAIN_MS)
  }
}
