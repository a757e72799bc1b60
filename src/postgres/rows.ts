/** Converts changes of a store to the arrays of a statement, and rows of the database back. */
import { crc32 } from 'node:zlib'
import { parseRow, textOf } from '../store/row-text.js'
import { STORE_TABLES, type StoreChange, type StoreContents } from '../store/store.js'
import { rowError, StoreError } from '../store/store-errors.js'
import type { Row } from './connection.js'

/**
 * Returns the last change of each row, as arrays: the kinds and ids of removed rows, and then the kinds, ids, places, bodies and checksums of written
 * rows.
 * @throws StoreError with `row`, for a value that JSON cannot represent
 */
export function toArrays(changes: readonly StoreChange[], name: string): unknown[][] {
  const last = new Map(changes.map((change) => [`${change.table} ${idOf(change)}`, change]))
  const arrays: unknown[][] = [[], [], [], [], [], [], []]
  for (const change of last.values()) {
    const id = textOf(idOf(change))
    if ('remove' in change) push(arrays.slice(0, 2), [change.table, id])
    else {
      const body = toBody(change, name)
      push(arrays.slice(2), [change.table, id, placeOf(change.put), body, crc32(body)])
    }
  }
  return arrays
}

/** @throws StoreError `STORE_DAMAGED` when a row differs from what was written */
export function toContents(rows: readonly Row[], name: string): StoreContents {
  const contents = Object.fromEntries(STORE_TABLES.map((table) => [table, [] as unknown[]]))
  for (const { kind, id, body, checksum } of rows) {
    const row = typeof body === 'string' && crc32(body) === checksum ? parseRow(body) : undefined
    const table = contents[String(kind)]
    if (row === undefined || table === undefined || textOf(row.id) !== id) {
      throw new StoreError('STORE_DAMAGED', `${name}: the row ${JSON.stringify(id)} of ${String(kind)} is damaged.`)
    }
    table.push(row)
  }
  return contents as unknown as StoreContents
}

type Put = Extract<StoreChange, { readonly put: unknown }>

const idOf = (change: StoreChange): string => ('remove' in change ? change.remove : change.put.id)

function toBody({ table, put }: Put, name: string): string {
  try {
    return JSON.stringify(put)
  } catch (error) {
    throw rowError(name, { table, id: put.id }, error)
  }
}

/** Returns the sort key of a row: reading a store returns the rows of a table in this order. */
function placeOf(row: Put['put']): number {
  if ('seq' in row) return row.seq
  if ('at' in row) return row.at
  return 'index' in row ? row.index : 0
}

function push(arrays: readonly unknown[][], values: readonly unknown[]): void {
  for (const [at, array] of arrays.entries()) array.push(values[at])
}
