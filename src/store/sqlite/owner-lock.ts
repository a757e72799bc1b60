/**
 * Who owns a store file. The lock is a transaction on a database of its own, `FILE-lock`: the system ends it with the process, whichever way
 * that ends, and readers of the store need not care. `FILE-owner` names the process.
 *
 * Nothing may open `FILE-lock` with `fs`: closing any descriptor of a file drops the POSIX locks that the process has on it.
 */
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { StoreInUseError } from '../store-errors.js'
import { openDatabase, type Database } from './driver.js'
import { resultCode, SQLITE } from './sqlite-failure.js'

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
  // No process has a lock on a file that does not exist yet.
  if (!existsSync(lock)) closeSync(openSync(lock, 'a', 0o600))
  const database = openDatabase(lock)
  try {
    database.exec(`PRAGMA busy_timeout = ${busyMs}; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE`)
  } catch (error) {
    database.close()
    throw resultCode(error) === SQLITE.busy ? new StoreInUseError(file, ownerOf(file)) : error
  }
  held.add(database)
  const owner = `${file}-owner`
  try {
    // By rename: a reader never finds half of it.
    writeFileSync(`${owner}.new`, JSON.stringify({ pid: process.pid }), {
      mode: 0o600,
    })
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

/** The process that owns a store, or owned it when it died. */
export function ownerOf(file: string): number | undefined {
  try {
    const { pid } = JSON.parse(readFileSync(`${file}-owner`, 'utf8')) as { readonly pid?: unknown }
    return typeof pid === 'number' ? pid : undefined
  } catch {
    return undefined
  }
}
