/** The history of a session, in a table of the schema of the store. */
import { crc32 } from 'node:zlib'
import type { Clock } from '../clock.js'
import { textOf } from '../store/row-text.js'
import { StoreError } from '../store/store-errors.js'
import { isBeginning, wordsIn, wordsOf } from '../store/history/search-words.js'
import {
  excessOf,
  SWEEP,
  type PastTask,
  type PastTaskQuery,
  type RetentionLimits,
  type TaskHistory,
} from '../store/history/task-history.js'
import type { Connection, Row } from './connection.js'
import { toStoreError } from './postgres-failure.js'
import type { Statements } from './statements.js'

export interface HistoryOptions {
  readonly connection: Connection
  readonly statements: Statements
  readonly session: string
  readonly clock: Clock
  /** The name of the store in errors. */
  readonly name: string
  readonly limits: Required<RetentionLimits>
}

export function postgresHistory({ connection, statements, session, clock, name, limits }: HistoryOptions): TaskHistory {
  // The first added task starts a sweep, because a process may end before it has added enough tasks for one.
  let sinceSweep: number = SWEEP.every
  const run = async (text: string, values: unknown[]): Promise<readonly Row[]> => {
    try {
      return await connection.query(text, values)
    } catch (error) {
      throw toStoreError(name, error)
    }
  }
  const sweep = async (): Promise<void> => {
    sinceSweep = 0
    const rows = await run(statements.history.earliest, [session, SWEEP.most])
    const earliest = rows as unknown as (PastTask & { bytes: number; tasks: number; total: number })[]
    const [first] = earliest
    if (first === undefined) return
    const excess = excessOf(earliest, { tasks: first.tasks, bytes: first.total }, limits, clock.now())
    const gone = earliest.slice(0, excess)
    if (gone.length > 0) {
      await run(statements.history.remove, [session, gone.map(({ kind }) => kind), gone.map(({ id }) => id)])
    }
  }
  return {
    add: async (tasks) => {
      // One insert may contain an id only once, so only the last task of each id is added.
      const last = new Map(tasks.map((task) => [`${task.kind} ${task.id}`, task]))
      await run(statements.history.add, [session, ...toColumns([...last.values()])])
      sinceSweep += last.size
      if (sinceSweep >= SWEEP.every) await sweep()
    },
    find: async (kind, id) => {
      const [row] = await run(statements.history.find, [session, kind, textOf(id)])
      return row && toPastTask(row, name)
    },
    query: async (query) => {
      const rows = await run(statements.history.query, [session, ...toConditions(query, clock.now() - limits.maxAgeMs)])
      return rows.map((row) => toPastTask(row, name))
    },
  }
}

/** @throws StoreError for a row that differs from what was written */
export function toPastTask({ id, body, checksum }: Row, name: string): PastTask {
  if (typeof body === 'string' && crc32(body) === checksum) return JSON.parse(body) as PastTask
  throw new StoreError('STORE_DAMAGED', `${name}: the row ${JSON.stringify(id)} of the history is damaged.`)
}

/** Converts tasks to arrays, one for each column, in the order of the columns in the statement. */
function toColumns(tasks: readonly PastTask[]): unknown[][] {
  const rows = tasks.map((task) => {
    const { kind, id, owner, name, status, completedAt, record } = task
    const body = JSON.stringify(task)
    const texts = [id, owner, name, status].map(textOf)
    return [kind, ...texts, completedAt, body.length, wordsIn(record).join(' '), body, crc32(body)]
  })
  return Array.from({ length: 10 }, (_, column) => rows.map((row) => row[column]))
}

/** Returns the parameters $2 to $10 of the statement `query`. They are null for columns that the query does not restrict. */
export function toConditions(
  { kind, owner, name, status, text, before, limit }: PastTaskQuery,
  earliest: number,
): unknown[] {
  const words = text === undefined ? [] : wordsOf(text)
  const search = words.map((word) => (isBeginning(word) ? `'${word}':*` : `'${word}'`)).join(' & ')
  const texts = [owner, name, status].map((value) => (value === undefined ? null : textOf(value)))
  const place = [before?.completedAt ?? null, before === undefined ? null : textOf(before.id)]
  return [kind, earliest, ...texts, words.length === 0 ? null : search, ...place, limit]
}
