/** Migrates a file from an older layout to the current one. */
import { closeSync, openSync, rmSync } from 'node:fs'
import type { Database } from './driver.js'
import { transact } from './transact.js'

export const TURNS_BY_OWNER = 'CREATE INDEX turns_by_owner ON turns (owner, seq)'

/** The steps from each layout to the next. The first step leads from layout 1 to layout 2. */
export const MIGRATIONS: readonly ((database: Database) => void)[] = [
  (database) =>
    database.exec(
      'CREATE TABLE feature_states (id TEXT PRIMARY KEY, feature, body TEXT NOT NULL, sum INTEGER NOT NULL)',
    ),
  (database) =>
    database.exec(
      `CREATE TABLE turns (id TEXT PRIMARY KEY, owner, seq, at, body TEXT NOT NULL, sum INTEGER NOT NULL); ${TURNS_BY_OWNER}`,
    ),
]

/**
 * Saves a copy of the file as `FILE-layout-N`, and then migrates the file in one transaction.
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
  // The copy may exist from an earlier attempt that failed before its transaction.
  rmSync(copy, { force: true })
  // The file is created here with restricted permissions, because SQLite would make it readable for everybody.
  closeSync(openSync(copy, 'wx', 0o600))
  // SQLite makes the copy. A copy made with `fs` would miss the write-ahead log, and closing its descriptor would drop the locks of this process.
  database.prepare('VACUUM INTO ?').run(copy)
  transact(database, () => {
    for (const step of steps) step(database)
    database.exec(`PRAGMA user_version = ${from + steps.length}`)
  })
  // The checkpoint writes the new version to the header of the file, where other programs of this package read it.
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  return true
}
