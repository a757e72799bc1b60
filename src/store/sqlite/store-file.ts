/** Checks a file before it is opened for writing, and creates new ones. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { StoreError } from '../store-errors.js'
import { openDatabase } from './driver.js'
import { APPLICATION_ID, createTables, LAYOUT_VERSION } from './schema.js'

/** The header of a database file: https://sqlite.org/fileformat.html#the_database_header */
const HEADER = { bytes: 100, magic: 'SQLite format 3\0', version: 60, applicationId: 68 } as const

export const runsOf = (file: string): string => `${file}-runs`

/** Creates the folder of a store if it does not exist: readable only for its owner, and ignored by git. */
export function prepareFolder(file: string): void {
  const folder = dirname(file)
  if (existsSync(folder)) return
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    // The permission is checked first, because for a parent without write permission Node reports that the parent does not exist.
    accessSync(existingParentOf(folder), constants.W_OK)
    throw error
  }
  writeFileSync(join(folder, '.gitignore'), '*\n', { mode: 0o600 })
}

function existingParentOf(folder: string): string {
  const parent = dirname(folder)
  return existsSync(parent) ? parent : existingParentOf(parent)
}

/**
 * Refuses a file with several names, because each name has a lock of its own, and two processes could open the file. Call this with the lock held: a
 * file that is being created has two names for a moment.
 * @throws StoreError for a file with several names
 */
export function refuseHardLinks(file: string): void {
  // A process that was killed while it created the file has left this second name.
  rmSync(unfinished(file), { force: true })
  const names = lstatSync(file, { throwIfNoEntry: false })?.nlink ?? 1
  if (names === 1) return
  throw new StoreError(
    'STORE_INVALID',
    `${file}: the file has ${names} hard links, so two processes could open it under different names. Keep one name. To back up a store, copy it.`,
  )
}

/** @throws StoreError for a symbolic link */
export function refuseLink(file: string): void {
  if (lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true) {
    throw unusable(file, 'stores do not follow symbolic links')
  }
}

/** The files of a database that SQLite opens by itself. */
const COMPANIONS = ['', '-journal', '-wal', '-shm'] as const

/**
 * Refuses a database if its file, or a file that SQLite opens with it, exists and is not a regular file. SQLite waits forever when it opens a FIFO.
 * @throws StoreError with the name of the file
 */
export function refuseIrregular(database: string): void {
  for (const file of COMPANIONS.map((suffix) => database + suffix)) {
    refuseLink(file)
    if (lstatSync(file, { throwIfNoEntry: false })?.isFile() === false) throw unusable(file, 'it is not a file')
  }
}

/**
 * Refuses a database if its file, or a file that SQLite opens with it, belongs to another user, or other users can read or write it. This package never
 * creates such a file, so it may have come with a repository, and its tasks would start programs. Windows has no such modes.
 * @throws StoreError with the name of the file
 */
export function refuseForeign(database: string): void {
  for (const suffix of COMPANIONS) refuseForeignFile(database + suffix)
}

function refuseForeignFile(file: string): void {
  const stats = lstatSync(file, { throwIfNoEntry: false })
  const user = process.getuid?.()
  if (stats === undefined || user === undefined) return
  const mode = stats.mode & 0o777
  if (stats.uid === user && (mode & 0o077) === 0) return
  const found =
    stats.uid === user
      ? `it has the mode 0${mode.toString(8)}, and the files of a store have 0600`
      : `it belongs to the user ${stats.uid}, and this process runs as ${user}`
  const advice = stats.uid === user ? `run: chmod 600 ${file}` : 'change its owner, or copy it'
  throw new StoreError(
    'STORE_INVALID',
    `${file}: ${found}. Its tasks can start programs, and it may have come with a repository. If it is yours, ${advice}. Otherwise use another folder (--store).`,
  )
}

const unusable = (file: string, reason: string): StoreError =>
  new StoreError('STORE_INVALID', `${file}: ${reason}. The file was not changed. Use another one.`)

/**
 * Checks that a file is a store. The file is only read.
 * @returns the version of the layout; undefined when there is no file
 * @throws StoreError with the reason, when the file is not a store
 */
export function inspectFile(file: string): number | undefined {
  refuseIrregular(file)
  const stats = lstatSync(file, { throwIfNoEntry: false })
  if (stats === undefined) return undefined
  const refuse = (reason: string): never => {
    throw unusable(file, reason)
  }
  // SQLite would treat an empty file as a new database, and remove the write-ahead log beside it.
  if (stats.size === 0) return refuse('the file is empty, and a store never is')
  const header = readHeader(file)
  if (header.toString('latin1', 0, HEADER.magic.length) !== HEADER.magic) return refuse('it is not an SQLite database')
  if (header.readUInt32BE(HEADER.applicationId) !== APPLICATION_ID) {
    return refuse('it is an SQLite database, but not one that agent-tasks created as a store')
  }
  const version = header.readUInt32BE(HEADER.version)
  if (version > LAYOUT_VERSION) {
    throw new StoreError(
      'STORE_NEWER',
      `${file}: the store has layout ${version}, and this version of agent-tasks reads layouts up to ${LAYOUT_VERSION}. Update agent-tasks, or use another file.`,
    )
  }
  return version
}

function readHeader(file: string): Buffer {
  const header = Buffer.alloc(HEADER.bytes)
  const descriptor = openSync(file, 'r')
  try {
    readSync(descriptor, header)
  } finally {
    closeSync(descriptor)
  }
  return header
}

/** Creates an empty store. The file gets its name when it is complete, so that a crash leaves no partial store. */
export function createFile(file: string): void {
  const draft = unfinished(file)
  for (const rest of ['', '-journal', '-wal', '-shm']) rmSync(`${draft}${rest}`, { force: true })
  closeSync(openSync(draft, 'wx', 0o600))
  const database = openDatabase(draft)
  try {
    // `auto_vacuum` must be set before the log is switched on. Later it has no effect.
    database.exec(`PRAGMA auto_vacuum = INCREMENTAL; PRAGMA application_id = ${APPLICATION_ID}`)
    database.exec(`PRAGMA user_version = ${LAYOUT_VERSION}`)
    createTables(database)
    database.exec('PRAGMA journal_mode = WAL')
  } finally {
    database.close()
  }
  try {
    linkSync(draft, file)
  } finally {
    rmSync(draft)
  }
}

/** The name of a store file while it is being created. */
const unfinished = (file: string): string => `${file}-new`

/** Returns a text that identifies a file independently of its name; undefined when there is no file. */
export function identityOf(file: string): string | undefined {
  const stats = statSync(file, { throwIfNoEntry: false, bigint: true })
  return stats && `${stats.dev}:${stats.ino}`
}

/** Returns the path of a file without symbolic links in the names of its folders. */
export function realPath(file: string): string {
  const absolute = resolve(file)
  try {
    return join(realpathSync(dirname(absolute)), basename(absolute))
  } catch {
    return absolute
  }
}
