/** Runs changes of a database in a transaction. */
import type { Database } from './driver.js'

/** @throws what `run` or SQLite throws; then nothing has changed */
export function transact<Result>(database: Database, run: () => Result): Result {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = run()
    database.exec('COMMIT')
    return result
  } catch (error) {
    try {
      database.exec('ROLLBACK')
    } catch {
      // SQLite has already rolled the transaction back, for example because the disk is full.
    }
    throw error
  }
}
