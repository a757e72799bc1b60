/**
 * Who owns a store file. The lock is a transaction on a database of its own, `FILE-lock`: the system ends it with the process, whichever way
 * that ends, and readers of the store need not care. `FILE-owner` names the process.
 *
 * Nothing may open `FILE-lock` with `fs`: closing any descriptor of a file drops the POSIX locks that the process has on it.
 */
import { closeSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { StoreError, StoreInUseError } from '../store-errors.js'
import { openDatabase, type Database } from './driver.js'
import { resultCode, SQLITE } from './sqlite-failure.js'
import { refuseLink } from './store-file.js'

/** How long another process may hold the lock while it finds out that the store has an owner, in ms. */
const BUSY_MS = 200

/** The locks that this process holds. A database that is collected as garbage loses its lock. */
const held = new Set<Database>()

/**
 * Becomes the owner of a store.
 * @param busyMs how long to wait for another owner, in ms
 * @returns ends the ownership
 * @throws StoreInUseError when there is an owner
 */
export function lockStore(file: string, busyMs: number = BUSY_MS): () => void {
  const lock = `${file}-lock`
  createLock(lock)
  const database = openDatabase(lock)
  try {
    database.exec(`PRAGMA busy_timeout = ${busyMs}; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE`)
  } catch (error) {
    database.close()
    if (resultCode(error) === SQLITE.busy) throw new StoreInUseError(file, ownerOf(file))
    throw new StoreError('STORE_INVALID', `${lock}: it cannot be locked. It holds nothing: remove it.`, {
      cause: error,
    })
  }
  held.add(database)
  const owner = `${file}-owner`
  try {
    // By rename: a reader never finds half of it. A link that someone has put there is removed, and not followed.
    rmSync(`${owner}.new`, { force: true })
    writeFileSync(`${owner}.new`, JSON.stringify({ pid: process.pid }), { mode: 0o600, flag: 'wx' })
    renameSync(`${owner}.new`, owner)
  } catch (error) {
    unlock()
    throw error
  }
  return () => {
    rmSync(owner, { force: true })
    unlock()
  }

  function unlock(): void {
    held.delete(database)
    database.close()
  }
}

/** No process has a lock on a file that does not exist yet. */
function createLock(lock: string): void {
  try {
    closeSync(openSync(lock, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    refuseLink(lock)
  }
}

/** The process that owns a store, or owned it when it died. */
export function ownerOf(file: string): number | undefined {
  try {
    const { pid } = JSON.parse(readFileSync(`${file}-owner`, 'utf8')) as { readonly pid?: unknown }
    return typeof pid === 'number' ? pid : undefined
  } catch {
    return undefined
  }
}
