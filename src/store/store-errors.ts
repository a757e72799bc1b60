/** The errors of stores. */
import { AgentTasksError } from '../errors.js'
import { preview } from '../text/preview.js'
import type { StoreTable } from './store.js'

/**
 * Why a store cannot be used. `STORE_IN_USE`: another process owns it. `STORE_INVALID`: the file is no store of this package. `STORE_DAMAGED`: its
 * content is not what was written. `STORE_NEWER`: a later version of this package wrote it. `STORE_READ_ONLY`, `STORE_FULL`: the file
 * system refuses writes. `STORE_LOST`: the file or its log was removed, replaced or cut while it was open, or another process has taken over the store of a
 * server. `STORE_UNAVAILABLE`: no SQLite that is safe to use, or no connection to the server.
 * `STORE_CLOSED`: it is not open. `STORE_FAILED`: anything else; `cause` has the reason.
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

/** A store cannot be opened, read or written. What it holds is unchanged. */
export class StoreError extends AgentTasksError {
  override readonly name: string = 'StoreError'
  declare readonly code: StoreErrorCode
  /** The row that cannot be written as it is; undefined where no row is the reason. */
  readonly row: StoreRow | undefined

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions & { readonly row?: StoreRow }) {
    super(code, message, options)
    this.row = options?.row
  }
}

/** A row of a store. */
export interface StoreRow {
  /** The table that holds it. */
  readonly table: StoreTable
  /** Its id in the table: that of a task, a delivery or an owner. */
  readonly id: string
}

/** The error for a row that JSON or the store cannot hold. */
export function rowError(file: string, row: StoreRow, cause: unknown): StoreError {
  const reason = cause instanceof Error ? ` (${cause.message})` : ''
  const message = `${file}: the row ${preview(row.id)} of table ${row.table} cannot be written${reason}.`
  return new StoreError('STORE_FAILED', message, { cause, row })
}

/** Another process owns the store. */
export class StoreInUseError extends StoreError {
  override readonly name = 'StoreInUseError'
  /** The process that owns it; undefined if it could not be found out. */
  readonly pid: number | undefined

  /** @param other who owns it, and what else can be used, in words */
  constructor(store: string, pid: number | undefined, other?: { readonly owner: string; readonly instead: string }) {
    const { owner, instead } = other ?? {
      owner: pid === undefined ? 'another process' : `process ${pid}`,
      instead: 'file',
    }
    super('STORE_IN_USE', `${store} is in use by ${owner}. End it, or use another ${instead}.`)
    this.pid = pid
  }
}
