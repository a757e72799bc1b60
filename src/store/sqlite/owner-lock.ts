/**
 * Who owns a store file. The lock is a transaction on a database of its own, `FILE-lock`: the system ends it with the process, whichever way
 * that ends, and readers of the store need not care. `FILE-owner` names the process: a store whose `FILE-lock` was removed by hand has an owner as
 * long as that process runs.
 *
 * Nothing may open `FILE-lock` with `fs`: closing any descriptor of a file drops the POSIX locks that the process has on it.
 */
import { closeSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { readRegular } from '../../regular-file.js'
import { identityOf, stateOf, type ProgramIdentity } from '../../process-identity.js'
import { StoreError, StoreInUseError } from '../store-errors.js'
import { openDatabase, type Database } from './driver.js'
import { resultCode, SQLITE } from './sqlite-failure.js'
import { realPath, refuseLink } from './store-file.js'

/** How long another process may hold the lock while it finds out that the store has an owner, in ms. */
const BUSY_MS = 200

/** How often an owner is looked up again, in ms. */
const POLL_MS = 10

/** The longest `FILE-owner`, in bytes: a path has at most a few thousand. */
const OWNER_BYTES = 65_536

/** What `FILE-owner` says. */
interface Owner extends ProgramIdentity {
  /** The path of the store. */
  readonly file: string
}

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
    if (resultCode(error) === SQLITE.busy) throw new StoreInUseError(file, ownerOf(file)?.pid)
    throw new StoreError('STORE_INVALID', `${lock}: it cannot be locked. It holds nothing: remove it.`, {
      cause: error,
    })
  }
  held.add(database)
  const owner = `${file}-owner`
  try {
    refuseOwner(file, busyMs)
    // By rename: a reader never finds half of it. A link that someone has put there is removed, and not followed.
    rmSync(`${owner}.new`, { force: true })
    writeFileSync(`${owner}.new`, JSON.stringify({ ...identityOf(process.pid), file: realPath(file) }), {
      mode: 0o600,
      flag: 'wx',
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

/** No process has a lock on a file that does not exist yet. */
function createLock(lock: string): void {
  try {
    closeSync(openSync(lock, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    refuseLink(lock)
  }
}

/** Refuses a store whose owner has lost the lock, and runs. A process that was killed loses its lock a moment before it has ended. */
function refuseOwner(file: string, busyMs: number): void {
  for (let waitedMs = 0; ; waitedMs += POLL_MS) {
    const pid = runningOwnerOf(file)
    if (pid === undefined) return
    if (waitedMs >= busyMs) throw new StoreInUseError(file, pid)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS)
  }
}

/** The process that owns a store, if it runs. */
export function runningOwnerOf(file: string): number | undefined {
  const owner = ownerOf(file)
  return owner !== undefined && stateOf(owner) === 'alive' ? owner.pid : undefined
}

/** The process that owns a store, or owned it when it died. */
function ownerOf(file: string): Owner | undefined {
  try {
    const owner = JSON.parse(readRegular(`${file}-owner`, OWNER_BYTES) ?? '') as Owner
    // A copy of a store has no owner.
    return owner.file === realPath(file) ? owner : undefined
  } catch {
    return undefined
  }
}
