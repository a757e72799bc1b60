/** The file of a history: creates it, and checks that a file is one before anything is changed. */
import { closeSync, openSync } from 'node:fs'
import { openDatabase, type Database } from '../sqlite/driver.js'
import { openToInspect } from '../sqlite/readable-database.js'
import { prepareFolder, refuseIrregular } from '../sqlite/store-file.js'
import { transact } from '../sqlite/transact.js'
import { StoreError } from '../store-errors.js'

/** The application id in the header of the file (https://sqlite.org/pragma.html#pragma_application_id). It spells "agth". */
const APPLICATION_ID = 0x61677468
const LAYOUT_VERSION = 1

const TABLES = `
  CREATE TABLE tasks (key INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL,
    completed_at REAL NOT NULL, bytes INTEGER NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL, UNIQUE (kind, id));
  CREATE INDEX tasks_by_end ON tasks (kind, completed_at, id, owner, name, status);
  CREATE INDEX tasks_by_age ON tasks (completed_at, bytes);
  CREATE VIRTUAL TABLE words USING fts5 (list, content = '', contentless_delete = 1, detail = none, tokenize = 'unicode61 remove_diacritics 0')`

/**
 * Opens the file of a history, and creates it if it does not exist. A file that is not a history, or that a later version has written, is not changed.
 * @throws StoreError for such a file
 * @throws SQLite's error, for example while another process has locked the file
 */
export function openHistoryFile(file: string): Database {
  prepareFolder(file)
  refuseIrregular(file)
  createFile(file)
  refuseOther(file)
  const database = openDatabase(file)
  try {
    // Nothing waits inside SQLite, because that would block the thread.
    database.exec('PRAGMA busy_timeout = 0; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
    createTables(database, file)
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** Creates the file with restricted permissions, because SQLite would make it readable for everybody. */
function createFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Checks the file before it is opened for writing, because even switching the log on changes it. */
function refuseOther(file: string): void {
  const { database, close } = openToInspect(file)
  try {
    if (!isNew(database)) checkLayout(database, file)
  } finally {
    close()
  }
}

function createTables(database: Database, file: string): void {
  transact(database, () => {
    if (isNew(database)) {
      database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${LAYOUT_VERSION}; ${TABLES}`)
    } else checkLayout(database, file)
  })
}

const readPragma = (database: Database, name: string): number =>
  Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0])

/** Whether the database has no tables. A process may have died before it created them. */
export const isNew = (database: Database): boolean =>
  readPragma(database, 'application_id') === 0 && readPragma(database, 'schema_version') === 0

/** @throws StoreError for a database that is not a history, or that a later version has written */
export function checkLayout(database: Database, file: string): void {
  if (readPragma(database, 'application_id') !== APPLICATION_ID) {
    throw new StoreError(
      'STORE_INVALID',
      `${file}: this file is not a history of agent-tasks. It was not changed. Move it to another folder.`,
    )
  }
  if (readPragma(database, 'user_version') > LAYOUT_VERSION) {
    throw new StoreError('STORE_NEWER', `${file}: a later version of agent-tasks wrote it. Update agent-tasks.`)
  }
}
