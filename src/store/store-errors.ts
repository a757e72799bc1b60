/** The errors of stores. */
import { AgentTasksError } from '../errors.js'
import { preview } from '../data/preview.js'
import type { StoreTable } from './store.js'

/**
 * The codes of a `StoreError`:
 * - `STORE_IN_USE`: another process owns the store.
 * - `STORE_INVALID`: the file is not a store of this package, or the database cannot hold every text.
 * - `STORE_DAMAGED`: the content differs from what was written.
 * - `STORE_NEWER`: a later version of this package wrote the store.
 * - `STORE_READ_ONLY`, `STORE_FULL`: the file system refuses writes.
 * - `STORE_LOST`: the file or its log was removed, replaced or truncated while the store was open, or another process has taken over a store
 *   on a server, or may do so (`whenLeaseExpires`).
 * - `STORE_UNAVAILABLE`: there is no safe version of SQLite, no connection to the server, or no answer.
 * - `STORE_CLOSED`: the store is not open.
 * - `STORE_FAILED`: any other reason, see `cause`.
 */
export type StoreErrorCode =
  | 'STORE_IN_USE'
  | 'STORE_INVALID'
  | 'STORE_DAMAGED'
  | 'STORE_NEWER'
  | 'STORE_READ_ONLY'
  | 'STORE_FULL'
  | 'STORE_LOST'
  | 'STORE_UNAVAILABLE'
  | 'STORE_CLOSED'
  | 'STORE_FAILED'

/** A store cannot be opened, read or written. The content of the store is unchanged. */
export class StoreError extends AgentTasksError {
  override readonly name = 'StoreError'
  declare readonly code: StoreErrorCode
  /** The row that cannot be written; undefined when the error has another cause. */
  readonly row: StoreRow | undefined

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions & { readonly row?: StoreRow }) {
    super(code, message, options)
    this.row = options?.row
  }
}

/** A row of a store. */
export interface StoreRow {
  /** The table of the row. */
  readonly table: StoreTable
  /** The id of the row in its table, such as the id of a task, a delivery or an owner. */
  readonly id: string
}

/** Creates the error for a row that JSON or the store cannot hold. */
export function rowError(file: string, row: StoreRow, cause: unknown): StoreError {
  const reason = cause instanceof Error ? ` (${cause.message})` : ''
  const message = `${file}: the row ${preview(row.id)} of table ${row.table} cannot be written${reason}.`
  return new StoreError('STORE_FAILED', message, { cause, row })
}

/** With `STORE_IN_USE`, `pid` is the process that owns the store, if it is known. */
export class StoreInUseError extends StoreError {
  override readonly pid: number | undefined

  /** @param other who owns the store and what to use in place of it, in words */
  constructor(store: string, pid: number | undefined, other?: { readonly owner: string; readonly instead: string }) {
    const { owner, instead } = other ?? {
      owner: pid === undefined ? 'another process' : `process ${pid}`,
      instead: 'file',
    }
    const text =
      other === undefined && pid !== undefined && pid === process.pid
        ? `this process (${pid}): it has opened it already. Close that store first`
        : `${owner}. End it`
    super('STORE_IN_USE', `${store} is in use by ${text}, or use another ${instead}.`)
    this.pid = pid
  }
}
