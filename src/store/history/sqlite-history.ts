/**
 * A history in its own SQLite file beside the store, so that a store opens quickly however long its history is.
 *
 * Several processes of a session may use the file at the same time. Added tasks survive the end of the process. A system crash may lose the last ones
 * (`synchronous=NORMAL`: https://sqlite.org/pragma.html#pragma_synchronous). This is acceptable, because the results of these tasks were delivered.
 */
import { existsSync } from 'node:fs'
import { systemClock, type Clock } from '../../system/clock.js'
import { textOf } from '../row-text.js'
import type { Database, Statement } from '../sqlite/driver.js'
import { whileLocked } from '../sqlite/locked-database.js'
import { openToRead } from '../sqlite/readable-database.js'
import { toStoreError } from '../sqlite/sqlite-failure.js'
import { refuseIrregular } from '../sqlite/store-file.js'
import { transact } from '../sqlite/transact.js'
import { StoreError } from '../store-errors.js'
import { checkLayout, isNew, openHistoryFile } from './history-file.js'
import { toHistoryRow, toPastTask } from './history-rows.js'
import {
  excessOf,
  SWEEP,
  type PastTask,
  type PastTaskQuery,
  type RetentionLimits,
  type TaskHistory,
} from './task-history.js'
import { isBeginning, wordsOf } from './search-words.js'

type Value = string | number | null

/** A history in a file. The first added task creates the file. */
export interface SqliteHistory extends TaskHistory {
  /** Closes the file. The next call opens it again. */
  close(): void
}

/** Creates a history in a file. The first use opens the file. */
export function sqliteHistory(file: string, limits: Required<RetentionLimits>, clock: Clock): SqliteHistory {
  let open: OpenHistory | undefined
  let closed = 0
  const using = <Result>(use: (history: OpenHistory) => Result): Promise<Result> => {
    const before = closed
    return attempt(file, clock, () => {
      // A call that waited for a lock when the history was closed must not open the file again.
      if (closed !== before) throw new StoreError('STORE_CLOSED', `${file}: the history was closed.`)
      return use((open ??= new OpenHistory(file, limits, () => clock.now())))
    })
  }
  const isMissing = (): boolean => open === undefined && !existsSync(file)
  return {
    add: (tasks) => using((history) => history.add(tasks)),
    find: async (kind, id) => (isMissing() ? undefined : using((history) => history.find(kind, id))),
    query: async (query) => (isMissing() ? [] : using((history) => history.query(query))),
    close: () => {
      closed += 1
      open?.close()
      open = undefined
    },
  }
}

async function attempt<Result>(file: string, clock: Clock, run: () => Result): Promise<Result> {
  try {
    return await whileLocked(clock, run)
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
  return attempt(file, systemClock, () => {
    refuseIrregular(file)
    if (!existsSync(file)) return []
    const { database, close } = openToRead(file, 0)
    try {
      if (isNew(database)) return []
      checkLayout(database, file)
      return findTasks(database, file, query, 0)
    } finally {
      close()
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
    const database = openHistoryFile(file)
    try {
      this.#statements = {
        key: database.prepare('SELECT key FROM tasks WHERE kind = ? AND id = ?'),
        find: database.prepare('SELECT id, body, sum AS checksum FROM tasks WHERE kind = ? AND id = ?'),
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
      transact(database, () => this.#sweep())
    } catch (error) {
      database.close()
      throw error
    }
  }

  add(tasks: readonly PastTask[]): void {
    if (tasks.length === 0) return
    transact(this.#database, () => {
      for (const task of tasks) this.#put(task)
      this.#sinceSweep += tasks.length
      if (this.#sinceSweep >= SWEEP.every) this.#sweep()
    })
  }

  find(kind: PastTask['kind'], id: string): PastTask | undefined {
    const row = this.#statements.find.get(kind, textOf(id))
    return row && toPastTask(row, this.#file)
  }

  query(query: PastTaskQuery): PastTask[] {
    return findTasks(this.#database, this.#file, query, this.#now() - this.#limits.maxAgeMs)
  }

  close(): void {
    try {
      // The checkpoint is explicit, because a driver may keep the log until its statements are garbage-collected.
      this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // Another process has locked the file. The log stays, and the next process reads it.
    }
    this.#database.close()
  }

  #put(task: PastTask): void {
    const { kind, id, owner, name, status, completedAt, bytes, words, body, checksum } = toHistoryRow(
      task,
      textOf(task.id),
    )
    const known = this.#statements.key.get(kind, id)
    if (known !== undefined) this.#remove(Number(known['key']))
    const { key } = this.#statements.put.get(kind, id, owner, name, status, completedAt, bytes, body, checksum) ?? {}
    this.#statements.putWords.run(Number(key), words)
  }

  #remove(key: number): void {
    this.#statements.removeWords.run(key)
    this.#statements.remove.run(key)
  }

  #sweep(): void {
    this.#sinceSweep = 0
    while (this.#removeExcess() === SWEEP.most);
  }

  /** Removes the earliest tasks beyond the limits, as many as one step allows. Returns how many it has removed. */
  #removeExcess(): number {
    const { tasks, bytes } = this.#statements.total.get() ?? {}
    const earliest = this.#statements.earliest.all(SWEEP.most) as unknown as {
      readonly key: number
      readonly completedAt: number
      readonly bytes: number
    }[]
    const total = { tasks: Number(tasks), bytes: Number(bytes) }
    const excess = excessOf(earliest, total, this.#limits, this.#now())
    for (const { key } of earliest.slice(0, excess)) this.#remove(key)
    return excess
  }
}

/** @param earliest tasks that ended before this time are left out, in ms since the epoch */
function findTasks(database: Database, file: string, query: PastTaskQuery, earliest: number): PastTask[] {
  const { where, values } = conditionsOf(query, earliest)
  const text = `SELECT id, body, sum AS checksum FROM tasks WHERE ${where.join(' AND ')} ORDER BY completed_at DESC, id DESC LIMIT ?`
  return database
    .prepare(text)
    .all(...values, query.limit)
    .map((row) => toPastTask(row, file))
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
