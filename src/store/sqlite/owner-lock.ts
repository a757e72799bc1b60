/**
 * The ownership of a store file. The lock is an open transaction on a separate database, `FILE-lock`. The system releases it when the process ends
 * for any reason, and readers of the store are not affected. `FILE-owner` names the process. If `FILE-lock` is removed by hand, the store therefore
 * still has an owner while that process runs.
 *
 * Do not open `FILE-lock` with `fs`: closing any descriptor of a file drops the POSIX locks that the process has on the file.
 */
import { closeSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { readRegular } from '../../system/regular-file.js'
import { identityOf, stateOf, type ProgramIdentity } from '../../system/process-identity.js'
import { StoreError, StoreInUseError } from '../store-errors.js'
import { openDatabase, type Database } from './driver.js'
import { resultCode, SQLITE } from './sqlite-failure.js'
import { realPath, refuseIrregular } from './store-file.js'

/** How long to wait for the lock, in ms. A process that only checks whether the store has an owner holds it for a moment. */
const BUSY_MS = 200

/** The interval at which the owner is checked, in ms. */
const POLL_MS = 10

/** The maximum size of `FILE-owner`, in bytes. The file has one path, and paths have at most a few thousand bytes. */
const OWNER_BYTES = 65_536

/** The content of `FILE-owner`. */
interface Owner extends ProgramIdentity {
  /** The path of the store. */
  readonly file: string
}

/** The locks that this process holds. The set keeps them from being garbage-collected, which would release them. */
const held = new Set<Database>()

/**
 * Makes this process the owner of a store.
 * @param busyMs how long to wait for another process to release the lock, in ms
 * @returns a function that releases the ownership
 * @throws STORE_IN_USE when another process owns the store
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
    throw new StoreError('STORE_INVALID', `${lock}: this file cannot be locked. It contains no data: remove it.`, {
      cause: error,
    })
  }
  held.add(database)
  const owner = `${file}-owner`
  try {
    refuseOwner(file, busyMs)
    // The file is written under another name and renamed, so that a reader never finds half a file, and a symbolic link is replaced and not followed.
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

/** Creates the lock file. This may be done with `fs`, because no process has a lock on a file that does not exist. */
function createLock(lock: string): void {
  try {
    closeSync(openSync(lock, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    refuseIrregular(lock)
  }
}

/** Refuses a store whose owner no longer has the lock but still runs. A killed process loses its lock a moment before it ends, so this waits. */
function refuseOwner(file: string, busyMs: number): void {
  for (let waitedMs = 0; ; waitedMs += POLL_MS) {
    const pid = runningOwnerOf(file)
    if (pid === undefined) return
    if (waitedMs >= busyMs) throw new StoreInUseError(file, pid)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS)
  }
}

/** Returns the id of the process that owns a store; undefined when it does not run. */
export function runningOwnerOf(file: string): number | undefined {
  const owner = ownerOf(file)
  return owner !== undefined && stateOf(owner) === 'alive' ? owner.pid : undefined
}

/** Returns the process that owns a store, or that owned it when it died. */
function ownerOf(file: string): Owner | undefined {
  try {
    const owner = JSON.parse(readRegular(`${file}-owner`, OWNER_BYTES) ?? '') as Owner
    // A copied store has a `FILE-owner` that names the original store.
    return owner.file === realPath(file) ? owner : undefined
  } catch {
    return undefined
  }
}
