/** Opens a database for reading, also on a file system that cannot be written, such as a backup. */
import { copyFileSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { openDatabase, type Database } from './driver.js'
import { resultCode, SQLITE } from './sqlite-failure.js'

export interface ReadableDatabase {
  readonly database: Database
  readonly close: () => void
}

/**
 * Opens a database for reading. Its file is not changed.
 * @param busyMs how long to block this thread while another process has locked the file, in ms
 * @throws the error of SQLite
 */
export function openToRead(file: string, busyMs: number): ReadableDatabase {
  try {
    return openReadOnly(file, busyMs)
  } catch (error) {
    // A reader of a database with a write-ahead log creates `FILE-shm`, which is not possible in a folder that cannot be written.
    const code = resultCode(error)
    if (code !== SQLITE.cannotOpen && code !== SQLITE.readOnly) throw error
    return hasLog(file) ? openCopy(file, busyMs) : openReadOnly(immutable(file), busyMs)
  }
}

/**
 * Opens a database to find out what it is. Neither the file nor anything beside it changes, also if another program created the database: ordinary
 * readers leave `FILE-shm` behind.
 */
export function openToInspect(file: string): ReadableDatabase {
  return openReadOnly(hasLog(file) ? file : immutable(file), 0)
}

function openReadOnly(file: string, busyMs: number): ReadableDatabase {
  const database = openDatabase(file, { readOnly: true })
  try {
    // The first read opens the file.
    database.exec(`PRAGMA busy_timeout = ${busyMs}; PRAGMA schema_version`)
    return { database, close: () => database.close() }
  } catch (error) {
    database.close()
    throw error
  }
}

const hasLog = (file: string): boolean => (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0

/** The name under which SQLite reads a file without locks and without its log (https://sqlite.org/uri.html#uriimmutable). */
const immutable = (file: string): string => `${pathToFileURL(resolve(file)).href}?immutable=1`

/** Opens a copy of a database with its log, in the folder for temporary files. `close` removes the copy. */
function openCopy(file: string, busyMs: number): ReadableDatabase {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-read-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  try {
    const copy = join(folder, 'copy.db')
    for (const suffix of ['', '-wal']) copyFileSync(file + suffix, copy + suffix)
    const { database, close } = openReadOnly(copy, busyMs)
    return {
      database,
      close: () => {
        close()
        remove()
      },
    }
  } catch (error) {
    remove()
    throw error
  }
}
