/**
 * A history in its own SQLite file beside the store, so that a store opens quickly however long its history is.
 *
 * Several processes of a session may use the file at the same time. Added tasks survive the end of the process. A system crash may lose the last ones
 * (`synchronous=NORMAL`: https://sqlite.org/pragma.html#pragma_synchronous). This is acceptable, because the results of these tasks were delivered.
 */
import { closeSync, existsSync, openSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { textOf } from '../row-text.js'
import { openDatabase, type Database, type Statement } from '../sqlite/driver.js'
import { toStoreError } from '../sqlite/sqlite-failure.js'
import { prepareFolder, refuseLink } from '../sqlite/store-file.js'
import { StoreError } from '../store-errors.js'
import {
  excessOf,
  SWEEP,
  type PastTask,
  type PastTaskQuery,
  type RetentionLimits,
  type TaskHistory,
} from './task-history.js'
import { isBeginning, wordsIn, wordsOf } from './search-words.js'

/** The application id in the header of the file (https://sqlite.org/pragma.html#pragma_application_id). It spells "agth". */
const APPLICATION_ID = 0x61677468
const LAYOUT_VERSION = 1

/** How long a process waits while another one writes, in ms. */
const BUSY_MS = 5000

const TABLES = `
  CREATE TABLE tasks (key INTEGER PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL, owner TEXT NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL,
    completed_at REAL NOT NULL, bytes INTEGER NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL, UNIQUE (kind, id));
  CREATE INDEX tasks_by_end ON tasks (kind, completed_at, id, owner, name, status);
  CREATE INDEX tasks_by_age ON tasks (completed_at, bytes);
  CREATE VIRTUAL TABLE words USING fts5 (list, content = '', contentless_delete = 1, detail = none, tokenize = 'unicode61 remove_diacritics 0')`

type Value = string | number | null

/** A history in a file. The first added task creates the file. */
export interface SqliteHistory extends TaskHistory {
  /** Closes the file. The next call opens it again. */
  close(): void
}

/**
 * Creates a history in a file. The first use opens the file.
 * @param now returns the current time, in ms since the epoch
 */
export function sqliteHistory(file: string, limits: Required<RetentionLimits>, now: () => number): SqliteHistory {
  let open: OpenHistory | undefined
  const opened = (): OpenHistory => (open ??= new OpenHistory(file, limits, now))
  /** Reads the file, or returns `empty` if the file does not exist. */
  const reading = <Result>(read: (history: OpenHistory) => Result, empty: Result): Promise<Result> =>
    attempt(file, () => (open === undefined && !existsSync(file) ? empty : read(opened())))
  return {
    add: (tasks) => attempt(file, () => opened().add(tasks)),
    find: (kind, id) => reading((history) => history.find(kind, id), undefined),
    query: (query) => reading((history) => history.query(query), []),
    close: () => {
      open?.close()
      open = undefined
    },
  }
}

// eslint-disable-next-line @typescript-eslint/require-await -- what it throws rejects
async function attempt<Result>(file: string, run: () => Result): Promise<Result> {
  try {
    return run()
  } catch (error) {
    throw toStoreError(file, error)
  }
}

/**
 * Reads the tasks of a history file that match a query, the latest end first. Other processes may write the file meanwhile, and the file is not
 * changed. A file that does not exist counts as an empty history.
 * @param file the path of the history, such as `PATH-history` for a store in `PATH`
 * @throws StoreError when the file is damaged, is not a history, or was written by a later version
 */
export function readSqliteHistory(file: string, query: PastTaskQuery): Promise<readonly PastTask[]> {
  return attempt(file, () => {
    if (!existsSync(file)) return []
    const database = openDatabase(file, { readOnly: true })
    try {
      database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
      // A process died before it created the tables.
      if (readPragma(database, 'page_count') === 0) return []
      checkLayout(database, file)
      return findTasks(database, file, query, 0)
    } finally {
      database.close()
    }
  })
}

class OpenHistory {
  readonly #file: string
  readonly #limits: Required<RetentionLimits>
  readonly #now: () => number
  readonly #database: Database
  readonly #statements: Readonly<
    Record<'key' | 'find' | 'put' | 'putWords' | 'remove' | 'removeWords' | 'total' | 'earliest', Statement>
  >
  #sinceSweep = 0

  constructor(file: string, limits: Required<RetentionLimits>, now: () => number) {
    this.#file = file
    this.#limits = limits
    this.#now = now
    prepareFolder(file)
    refuseLink(file)
    createFile(file)
    const database = openDatabase(file)
    try {
      database.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL`)
      prepare(database, file)
      this.#statements = {
        key: database.prepare('SELECT key FROM tasks WHERE kind = ? AND id = ?'),
        find: database.prepare('SELECT id, body, sum FROM tasks WHERE kind = ? AND id = ?'),
        put: database.prepare(
          'INSERT INTO tasks (kind, id, owner, name, status, completed_at, bytes, body, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key',
        ),
        putWords: database.prepare('INSERT INTO words (rowid, list) VALUES (?, ?)'),
        remove: database.prepare('DELETE FROM tasks WHERE key = ?'),
        removeWords: database.prepare('DELETE FROM words WHERE rowid = ?'),
        total: database.prepare('SELECT count(*) AS tasks, total(bytes) AS bytes FROM tasks'),
        earliest: database.prepare(
          'SELECT key, completed_at AS completedAt, bytes FROM tasks ORDER BY completed_at LIMIT ?',
        ),
      }
      this.#database = database
      this.#transact(() => this.#sweep())
    } catch (error) {
      database.close()
      throw error
    }
  }

  add(tasks: readonly PastTask[]): void {
    if (tasks.length === 0) return
    this.#transact(() => {
      for (const task of tasks) this.#put(task)
      this.#sinceSweep += tasks.length
      if (this.#sinceSweep >= SWEEP.every) this.#sweep()
    })
  }

  find(kind: PastTask['kind'], id: string): PastTask | undefined {
    const row = this.#statements.find.get(kind, textOf(id))
    return row && toTask(row, this.#file)
  }

  query(query: PastTaskQuery): PastTask[] {
    return findTasks(this.#database, this.#file, query, this.#now() - this.#limits.maxAgeMs)
  }

  close(): void {
    this.#database.close()
  }

  #put(task: PastTask): void {
    const { kind, owner, name, status, completedAt, record } = task
    const id = textOf(task.id)
    const known = this.#statements.key.get(kind, id)
    if (known !== undefined) this.#remove(Number(known['key']))
    const body = JSON.stringify(task)
    const values = [kind, id, textOf(owner), textOf(name), status, completedAt, body.length, body, crc32(body)]
    const { key } = this.#statements.put.get(...values) ?? {}
    this.#statements.putWords.run(Number(key), wordsIn(record).join(' '))
  }

  #remove(key: number): void {
    this.#statements.removeWords.run(key)
    this.#statements.remove.run(key)
  }

  #sweep(): void {
    this.#sinceSweep = 0
    const { tasks, bytes } = this.#statements.total.get() ?? {}
    const earliest = this.#statements.earliest.all(SWEEP.most) as unknown as {
      readonly key: number
      readonly completedAt: number
      readonly bytes: number
    }[]
    const total = { tasks: Number(tasks), bytes: Number(bytes) }
    const excess = excessOf(earliest, total, this.#limits, this.#now())
    for (const { key } of earliest.slice(0, excess)) this.#remove(key)
  }

  #transact(run: () => void): void {
    this.#database.exec('BEGIN IMMEDIATE')
    try {
      run()
      this.#database.exec('COMMIT')
    } catch (error) {
      try {
        this.#database.exec('ROLLBACK')
      } catch {
        // SQLite has already rolled the transaction back, for example because the disk is full.
      }
      throw error
    }
  }
}

function toTask({ id, body, sum }: Readonly<Record<string, unknown>>, file: string): PastTask {
  if (typeof body === 'string' && crc32(body) === sum) return JSON.parse(body) as PastTask
  throw new StoreError('STORE_DAMAGED', `${file}: the row ${JSON.stringify(id)} of the history is damaged.`)
}

/** @param earliest tasks that ended before this time are left out, in ms since the epoch */
function findTasks(database: Database, file: string, query: PastTaskQuery, earliest: number): PastTask[] {
  const { where, values } = conditionsOf(query, earliest)
  const text = `SELECT id, body, sum FROM tasks WHERE ${where.join(' AND ')} ORDER BY completed_at DESC, id DESC LIMIT ?`
  return database
    .prepare(text)
    .all(...values, query.limit)
    .map((row) => toTask(row, file))
}

function conditionsOf(
  { kind, owner, name, status, text, before }: PastTaskQuery,
  earliest: number,
): { readonly where: readonly string[]; readonly values: readonly Value[] } {
  const where = ['kind = ?', 'completed_at >= ?']
  const values: Value[] = [kind, earliest]
  for (const [column, value] of Object.entries({ owner, name, status })) {
    if (value === undefined) continue
    where.push(`${column} = ?`)
    values.push(textOf(value))
  }
  if (before !== undefined) {
    where.push('(completed_at, id) < (?, ?)')
    values.push(before.completedAt, textOf(before.id))
  }
  const words = text === undefined ? [] : wordsOf(text)
  if (words.length > 0) {
    where.push('key IN (SELECT rowid FROM words WHERE words MATCH ?)')
    values.push(words.map((word) => (isBeginning(word) ? `"${word}"*` : `"${word}"`)).join(' '))
  }
  return { where, values }
}

/** Creates the file with restricted permissions, because SQLite would make it readable for everybody. */
function createFile(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

const readPragma = (database: Database, name: string): number =>
  Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0])

function checkLayout(database: Database, file: string): void {
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

/** Creates the tables in a new file. In an existing file, checks that agent-tasks has created them. */
function prepare(database: Database, file: string): void {
  database.exec('BEGIN IMMEDIATE')
  try {
    if (readPragma(database, 'application_id') === 0 && readPragma(database, 'schema_version') === 0) {
      database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${LAYOUT_VERSION}; ${TABLES}`)
    }
    checkLayout(database, file)
    database.exec('COMMIT')
  } catch (error) {
    database.exec('ROLLBACK')
    throw error
  }
}
