/**
 * A store in one SQLite file. Committed changes survive the end of the process and a crash of the machine, because the log is on the disk before a
 * write returns (WAL, `synchronous=FULL`: https://sqlite.org/pragma.html#pragma_synchronous).
 */
import { resolve } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { systemClock, type Clock } from '../../system/clock.js'
import { InvalidInputError } from '../../errors.js'
import { accepts, aClock, aName, anObject, checkOptions, type OptionTypes } from '../../protocol/option-checks.js'
import { sqliteHistory } from '../history/sqlite-history.js'
import { retentionLimits, type RetentionLimits } from '../history/task-history.js'
import {
  contentsOf,
  OPENED_TABLES,
  STORE_TABLES,
  type FileStore,
  type LocalStore,
  type StoreChange,
  type StoreContents,
  type StoredTurn,
  type StoreTable,
} from '../store.js'
import { textOf } from '../row-text.js'
import { rowError, StoreError, StoreInUseError } from '../store-errors.js'
import { openDatabase, type Database, type Statement } from './driver.js'
import { whileLocked } from './locked-database.js'
import { migrate } from './migrations.js'
import { lockStore } from './owner-lock.js'
import { openToRead } from './readable-database.js'
import { LAYOUT, LAYOUT_VERSION, readTable, readTurns, valuesOf } from './schema.js'
import { isOfFile, toStoreError } from './sqlite-failure.js'
import { transact } from './transact.js'
import { WatchedLog } from './watched-log.js'
import {
  createFile,
  identityOf,
  inspectFile,
  prepareFolder,
  realPath,
  refuseHardLinks,
  refuseLink,
  runsOf,
} from './store-file.js'

/** The number of removed rows after which the file returns its free pages to the system. */
const VACUUM_AFTER = 1000

/** How long opening waits while another process has locked the file, in ms. */
const BUSY_MS = 5000

/** The real paths of the store files that this process has open. */
const openHere = new Set<string>()

/** Options of `sqliteStore`. */
export interface SqliteStoreOptions {
  /** The limits of the history. With `maxTasks: 0` there is no history. */
  readonly retention?: RetentionLimits
  /** The source of time. Default: the platform's clock. */
  readonly clock?: Clock
}

const optionTypes: OptionTypes<SqliteStoreOptions> = { retention: anObject, clock: aClock }

/**
 * Creates a store in an SQLite file. The manager that uses the store opens the file. The file and its folder are created if they do not exist, readable
 * only for their owner.
 *
 * The file has the goals, outputs and errors of tasks, but no values of environment variables. Ended tasks that no manager holds any more are
 * in the history, in the file `PATH-history`.
 * @param path the path of the file
 * @throws INVALID_INPUT for an invalid path or option
 */
export function sqliteStore(path: string, options: SqliteStoreOptions = {}): LocalStore {
  if (!accepts(aName, path)) throw new InvalidInputError('path', path, 'the path of a file')
  checkOptions(options, optionTypes)
  const { retention, clock = systemClock } = options
  const limits = retentionLimits(retention)
  const store = sqliteFile(path, clock)
  if (limits.maxTasks === 0) return store
  const history = sqliteHistory(`${resolve(path)}-history`, limits, clock)
  return {
    ...store,
    history,
    close: () => {
      history.close()
      store.close()
    },
  }
}

/** Like `sqliteStore`, for a caller that needs synchronous writes. It has no history. */
export function sqliteFile(path: string, clock: Clock = systemClock): FileStore {
  // Resolved at once, because the working directory may change before the store is opened.
  const file = resolve(path)
  let open: OpenFile | undefined
  const opened = (): OpenFile => {
    if (open === undefined) throw new StoreError('STORE_CLOSED', `${file}: the store is not open.`)
    return open
  }
  return {
    name: file,
    directory: runsOf(file),
    open: () => {
      if (open !== undefined) throw new StoreInUseError(file, process.pid)
      try {
        open = new OpenFile(file)
        return open.takeContents()
      } catch (error) {
        throw toStoreError(file, error)
      }
    },
    write: async (changes) => {
      try {
        await whileLocked(clock, () => opened().write(changes, 0))
      } catch (error) {
        throw toStoreError(file, error)
      }
      // A commit blocks the thread. Timers and sockets get a turn before the next commit, which then includes their changes.
      await nextTurn()
    },
    writeNow: (changes) => {
      try {
        opened().write(changes, BUSY_MS)
      } catch (error) {
        throw toStoreError(file, error)
      }
    },
    turns: {
      // eslint-disable-next-line @typescript-eslint/require-await -- what it throws rejects
      read: async (owner, limit) => {
        try {
          return opened().readTurns(owner, limit)
        } catch (error) {
          throw toStoreError(file, error)
        }
      },
    },
    close: () => {
      open?.close()
      open = undefined
    },
  }
}

/**
 * Reads a store, also while its owner runs. The file is not changed.
 * @throws StoreError when the file is damaged, or is not a store
 */
export function readStore(file: string): StoreContents {
  try {
    // A store that this process has open must not be opened again, because closing the second descriptor would drop the locks of this process.
    if (!openHere.has(realPath(file)) && inspectFile(file) === undefined) {
      throw new StoreError('STORE_INVALID', `${file}: there is no such file.`)
    }
    return readChecked(file, STORE_TABLES)
  } catch (error) {
    throw toStoreError(file, error)
  }
}

class OpenFile {
  readonly #file: string
  readonly #realPath: string
  readonly #identity: string | undefined
  readonly #database: Database
  readonly #statements: Readonly<Record<StoreTable, { readonly put: Statement; readonly remove: Statement }>>
  readonly #unlock: () => void
  readonly #log: WatchedLog
  #contents: StoreContents | undefined
  #removed = 0
  #busyMs: number = BUSY_MS

  constructor(file: string) {
    this.#file = file
    prepareFolder(file)
    this.#realPath = realPath(file)
    if (openHere.has(this.#realPath)) throw new StoreInUseError(file, process.pid)
    inspectFile(file)
    refuseLink(`${file}-runs`)
    this.#unlock = lockStore(file)
    openHere.add(this.#realPath)
    let database: Database | undefined
    try {
      refuseHardLinks(file)
      const version = inspectFile(file) ?? create(file)
      const contents = readChecked(file, OPENED_TABLES)
      this.#identity = identityOf(file)
      this.#database = database = openDatabase(file)
      // The journal mode is set at each opening, because a copy made with VACUUM INTO is not in WAL mode.
      database.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL`)
      this.#contents = migrate(database, file, version) ? readContents(database, file) : contents
      // Writes once, to find out whether the file can be written: an empty transaction would succeed. The write also creates the log.
      database.exec(`BEGIN IMMEDIATE; PRAGMA user_version = ${LAYOUT_VERSION}; COMMIT`)
      this.#log = new WatchedLog(file, database)
      this.#statements = prepareStatements(database)
    } catch (error) {
      database?.close()
      this.#release()
      throw error
    }
  }

  /** Returns the content of the file when it was opened, and releases the memory. */
  takeContents(): StoreContents {
    const contents = this.#contents ?? readContents(this.#database, this.#file)
    this.#contents = undefined
    return contents
  }

  readTurns(owner?: string, limit = Infinity): StoredTurn[] {
    if (owner === undefined) return readTable(this.#database, 'turns', this.#file)
    return readTurns(this.#database, this.#file, owner, limit)
  }

  /** @param busyMs how long to block this thread while another process has locked the file, in ms */
  write(changes: readonly StoreChange[], busyMs: number): void {
    if (changes.length === 0) return
    this.#waitAtMost(busyMs)
    this.#checkIdentity()
    this.#log.check()
    transact(this.#database, () => {
      for (const change of changes) this.#apply(change)
    })
    this.#log.note()
    if (this.#removed < VACUUM_AFTER) return
    this.#removed = 0
    this.#database.exec('PRAGMA incremental_vacuum')
  }

  close(): void {
    try {
      this.#waitAtMost(0)
      // The checkpoint is explicit, because a driver may keep the log until its statements are garbage-collected.
      this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // The checkpoint failed. The log stays, and the next owner reads it.
    }
    this.#database.close()
    this.#release()
  }

  #waitAtMost(busyMs: number): void {
    if (busyMs === this.#busyMs) return
    this.#database.exec(`PRAGMA busy_timeout = ${busyMs}`)
    this.#busyMs = busyMs
  }

  #apply(change: StoreChange): void {
    const { put, remove } = this.#statements[change.table]
    if ('remove' in change) {
      remove.run(textOf(change.remove))
      this.#removed += 1
    } else {
      try {
        put.run(...valuesOf(change.table, change.put))
      } catch (error) {
        throw isOfFile(error) ? error : rowError(this.#file, { table: change.table, id: change.put.id }, error)
      }
    }
  }

  /** Throws if the file was removed or replaced, because SQLite reports no error when it writes to a removed file. */
  #checkIdentity(): void {
    const identity = identityOf(this.#file)
    if (identity === this.#identity) return
    const what = identity === undefined ? 'removed' : 'replaced by another file'
    throw new StoreError('STORE_LOST', `${this.#file}: the file was ${what} while it was open.`)
  }

  #release(): void {
    openHere.delete(this.#realPath)
    this.#unlock()
  }
}

function create(file: string): number {
  createFile(file)
  return inspectFile(file) ?? 0
}

/** Reads tables of a file on a read-only connection, and checks the file for damage. */
function readChecked(file: string, tables: readonly StoreTable[]): StoreContents {
  const { database, close } = openToRead(file, BUSY_MS)
  try {
    database.exec('BEGIN')
    const [first] = Object.values(database.prepare('PRAGMA integrity_check(1)').get() ?? {})
    if (first !== 'ok') throw new StoreError('STORE_DAMAGED', `${file}: its content is damaged (${String(first)}).`)
    const contents = readContents(database, file, tables)
    // The commit is explicit, because a driver may keep a closed connection and its transaction until its statements are garbage-collected.
    database.exec('COMMIT')
    return contents
  } finally {
    close()
  }
}

function readContents(database: Database, file: string, tables: readonly StoreTable[] = OPENED_TABLES): StoreContents {
  return contentsOf((table) => (tables.includes(table) ? readTable(database, table, file) : []))
}

function prepareStatements(database: Database) {
  const entries = STORE_TABLES.map((table) => {
    const { name, columns } = LAYOUT[table]
    const all = ['id', ...Object.keys(columns), 'body', 'sum']
    const put = `INSERT OR REPLACE INTO ${name} (${all.join(', ')}) VALUES (${all.map(() => '?').join(', ')})`
    return [table, { put: database.prepare(put), remove: database.prepare(`DELETE FROM ${name} WHERE id = ?`) }]
  })
  return Object.fromEntries(entries) as Record<StoreTable, { put: Statement; remove: Statement }>
}
