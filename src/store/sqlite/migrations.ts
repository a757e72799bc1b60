/** Migrates a file from an older layout to the current one. */
import { closeSync, openSync, rmSync } from 'node:fs'
import type { Database } from './driver.js'

/** The steps from each layout to the next: the first leads from 1 to 2. */
export const MIGRATIONS: readonly ((database: Database) => void)[] = [
  (database) =>
    database.exec(
      'CREATE TABLE feature_states (id TEXT PRIMARY KEY, feature, body TEXT NOT NULL, sum INTEGER NOT NULL)',
    ),
]

/**
 * Saves a copy as `FILE-layout-N`, and migrates the file in one transaction.
 * @returns whether a migration was necessary
 */
export function migrate(
  database: Database,
  file: string,
  from: number,
  migrations: readonly ((database: Database) => void)[] = MIGRATIONS,
): boolean {
  const steps = migrations.slice(from - 1)
  if (steps.length === 0) return false
  const copy = `${file}-layout-${from}`
  // A leftover of an earlier attempt that failed before the transaction.
  rmSync(copy, { force: true })
  // SQLite would create it readable for everybody.
  closeSync(openSync(copy, 'wx', 0o600))
  // SQLite makes the copy, because a copy made with fs would miss the write-ahead log and drop the locks of this process.
  database.prepare('VACUUM INTO ?').run(copy)
  database.exec('BEGIN IMMEDIATE')
  try {
    for (const step of steps) step(database)
    database.exec(`PRAGMA user_version = ${from + steps.length}`)
    database.exec('COMMIT')
  } catch (error) {
    database.exec('ROLLBACK')
    throw error
  }
  // The version is read from the header of the file, not from the log.
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  return true
}
