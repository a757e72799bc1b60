/**
 * A folder with the files of sessions.
 *
 * | file | content |
 * |---|---|
 * | `HASH.json` | the session key; `HASH` is the beginning of its SHA-256 |
 * | `HASH-N.db` | a store of the session, and its other files (lock, log) |
 * | `HASH-runs` | the files of programs that the session runs |
 * | `HASH-history.db` | the history of the session |
 * | `sessions-lock`, `sessions-owner` | the lock of the folder |
 */
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, renameSync, rmdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { systemClock } from '../../system/clock.js'
import { sqliteHistory } from '../history/sqlite-history.js'
import { retentionLimits } from '../history/task-history.js'
import { readRegular } from '../../system/regular-file.js'
import type { FileStore } from '../store.js'
import { StoreError, StoreInUseError } from '../store-errors.js'
import { lockStore } from '../sqlite/owner-lock.js'
import { toStoreError } from '../sqlite/sqlite-failure.js'
import { sqliteFile } from '../sqlite/sqlite-store.js'
import { prepareFolder, refuseForeign } from '../sqlite/store-file.js'
import type { SessionFiles } from './session-store.js'

/** How long a process waits while another process of the folder starts or ends, in ms. */
const LOCK_MS = 10_000

/** The maximum size of a file with a session key, in bytes (1 MiB). */
const KEY_BYTES = 1024 * 1024

/**
 * The files of a store, in the order in which they are removed. The database goes first, because SQLite would apply a log that is left to a later
 * database of the same name.
 */
const SUFFIXES = ['', '-wal', '-shm', '-new', '-owner', '-owner.new', '-lock'] as const

/** Returns the beginning of all file names of a session. */
export const hashOf = (key: string): string => createHash('sha256').update(key).digest('hex').slice(0, 16)

/** Returns access to the files of a session in a folder. `lock` creates the folder. */
export function sessionFolder(path: string, key: string): SessionFiles {
  const folder = resolve(path)
  const hash = hashOf(key)
  const fileOf = (number: number): string => join(folder, `${hash}-${number}.db`)
  const numbers = (pattern: RegExp): number[] =>
    readdirSync(folder)
      .flatMap((name) => pattern.exec(name)?.slice(1).map(Number) ?? [])
      .sort((a, b) => a - b)
  const directory = join(folder, `${hash}-runs`)
  return {
    directory,
    history: sqliteHistory(historyFile(folder, hash), retentionLimits(), systemClock),
    lock: () => {
      try {
        checkFolder(folder)
        prepareFolder(fileOf(1))
        const unlock = lockStore(join(folder, 'sessions'), LOCK_MS)
        try {
          writeKey(folder, key)
          removeOldHistories(folder)
        } catch (error) {
          unlock()
          throw error
        }
        return unlock
      } catch (error) {
        throw toStoreError(folder, error)
      }
    },
    numbers: () => numbers(new RegExp(`^${hash}-(\\d+)\\.db$`)),
    nextNumber: () => (numbers(new RegExp(`^${hash}-(\\d+)\\.db`)).at(-1) ?? 0) + 1,
    store: (number) => storeWithAdvice(fileOf(number), key),
    remove: (number) => {
      for (const suffix of SUFFIXES) rmSync(`${fileOf(number)}${suffix}`, { force: true })
      if (numbers(new RegExp(`^${hash}-(\\d+)\\.db`)).length > 0) return
      removeEmpty(directory)
      if (!existsSync(historyFile(folder, hash))) rmSync(keyFile(folder, hash), { force: true })
    },
  }
}

export interface ListedSession {
  /** The session key; undefined if the file with the key is missing. */
  readonly key: string | undefined
  readonly files: readonly string[]
}

/**
 * Returns the sessions that have files in a folder.
 * @throws StoreError when the folder cannot be read
 */
export function listSessions(path: string): ListedSession[] {
  const folder = resolve(path)
  try {
    checkFolder(folder)
    const byHash = new Map<string, string[]>()
    for (const name of readdirSync(folder)) {
      const hash = /^([0-9a-f]{16})-\d+\.db$/.exec(name)?.[1]
      if (hash !== undefined) byHash.set(hash, [...(byHash.get(hash) ?? []), join(folder, name)])
    }
    return Array.from(byHash, ([hash, files]) => ({ key: readKey(keyFile(folder, hash)), files }))
  } catch (error) {
    throw toStoreError(folder, error)
  }
}

const historyFile = (folder: string, hash: string): string => join(folder, `${hash}-history.db`)

export function listHistories(path: string): readonly { readonly key: string | undefined; readonly file: string }[] {
  const folder = resolve(path)
  return readdirSync(folder).flatMap((name) => {
    const hash = /^([0-9a-f]{16})-history\.db$/.exec(name)?.[1]
    return hash === undefined ? [] : [{ key: readKey(keyFile(folder, hash)), file: join(folder, name) }]
  })
}

/** Removes the history of a session that has no other files, when all entries have passed the maximum age. */
function removeOldHistories(folder: string): void {
  const names = readdirSync(folder)
  for (const name of names) {
    const hash = /^([0-9a-f]{16})-history\.db$/.exec(name)?.[1]
    if (hash === undefined || names.some((other) => other.startsWith(`${hash}-`) && /-\d+\.db$/.test(other))) continue
    const file = join(folder, name)
    const written = Math.max(
      ...['', '-wal'].map((suffix) => statSync(`${file}${suffix}`, { throwIfNoEntry: false })?.mtimeMs ?? 0),
    )
    if (written > systemClock.now() - retentionLimits().maxAgeMs) continue
    for (const suffix of ['-wal', '-shm', '']) rmSync(`${file}${suffix}`, { force: true })
    rmSync(keyFile(folder, hash), { force: true })
  }
}

const keyFile = (folder: string, hash: string): string => join(folder, `${hash}.json`)

function checkFolder(folder: string): void {
  const stats = lstatSync(folder, { throwIfNoEntry: false })
  if (stats === undefined || stats.isDirectory()) return
  const reason = stats.isSymbolicLink() ? 'stores do not follow symbolic links' : 'it is not a folder'
  throw new StoreError('STORE_INVALID', `${folder}: ${reason}. The folder was not changed. Use another one.`)
}

function writeKey(folder: string, key: string): void {
  const file = keyFile(folder, hashOf(key))
  if (readKey(file) === key) return
  // The file is written under another name and renamed, so that a reader never finds half a file, and a symbolic link is replaced and not followed.
  rmSync(`${file}.new`, { force: true })
  writeFileSync(`${file}.new`, JSON.stringify({ session: key }), { mode: 0o600, flag: 'wx' })
  renameSync(`${file}.new`, file)
}

function readKey(file: string): string | undefined {
  try {
    const { session } = JSON.parse(readRegular(file, KEY_BYTES) ?? '') as { readonly session?: unknown }
    return typeof session === 'string' ? session : undefined
  } catch {
    return undefined
  }
}

function removeEmpty(directory: string): void {
  try {
    rmdirSync(directory)
  } catch {
    // The folder does not exist, or it still has files of a program.
  }
}

/** Returns the store of a file, whose errors give advice. The session does not start without the file, because its results would be lost silently. */
function storeWithAdvice(file: string, key: string): FileStore {
  const store = sqliteFile(file)
  return {
    ...store,
    open: () => {
      refuseForeign(file)
      try {
        return store.open()
      } catch (error) {
        if (!(error instanceof StoreError) || error instanceof StoreInUseError) throw error
        const advice = `It belongs to the session ${JSON.stringify(key)}. Repair the file or move it elsewhere to use this session, or use another session (--session).`
        throw new StoreError(error.code, `${error.message} ${advice}`, { cause: error })
      }
    },
  }
}
