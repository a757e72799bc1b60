/** Converts changes of a store to rows of a database, and back. */
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { parseRow, textOf } from '../row-text.js'
import { contentsOf, idOf, ownerOfTurn, type StoreChange, type StoreContents } from '../store.js'
import { rowError, StoreError } from '../store-errors.js'

/** The longest id in bytes that is a key itself. An entry of an index of PostgreSQL has at most 2704 bytes, and the name of a session at most 1536. */
export const MAX_KEY_BYTES = 1000

/**
 * Limits in bytes of JSON. A row of the first size is one that the server can hold for certain: in a statement its text has up to twice as many bytes,
 * and 1 GB is the limit. Rows of together more than the second size are split into several statements.
 */
const MAX_BYTES = { row: 200 * 1024 * 1024, statement: 32 * 1024 * 1024 } as const

/** What identifies a row in its session. */
export interface RowKey {
  readonly kind: string
  readonly id: string
}

export type DatabaseRow = Readonly<Record<'kind' | 'id' | 'body' | 'checksum', unknown>>

export interface PutRow extends RowKey {
  /** The sort key among the rows of the same kind. */
  readonly place: number
  /** The row as JSON, and its CRC-32. */
  readonly body: string
  readonly checksum: number
}

/** The last change of each row. */
export interface RowBatch {
  readonly removed: readonly RowKey[]
  /** The written rows: one or more parts, each small enough for a statement. */
  readonly parts: readonly (readonly PutRow[])[]
}

/**
 * Converts changes to rows.
 * @throws StoreError with `row`, for a value that JSON cannot represent, and for one that is too large
 */
export function toRows(
  changes: readonly StoreChange[],
  name: string,
  most: { readonly row: number; readonly statement: number } = MAX_BYTES,
): RowBatch {
  const last = new Map(changes.map((change) => [`${change.table} ${idOf(change)}`, change]))
  const removed: RowKey[] = []
  let part: PutRow[] = []
  const parts = [part]
  let bytes = 0
  for (const change of last.values()) {
    const id = idOf(change)
    const key = change.table === 'turns' ? turnKey(id) : { kind: change.table, id: keyOf(id) }
    if ('remove' in change) {
      removed.push(key)
      continue
    }
    const body = toBody(change, name)
    const size = Buffer.byteLength(body)
    if (size > most.row) {
      const tooLarge = new RangeError(`it has ${size} bytes, expected at most ${most.row}`)
      throw rowError(name, { table: change.table, id: change.put.id }, tooLarge)
    }
    if (bytes > 0 && bytes + size > most.statement) {
      part = []
      parts.push(part)
      bytes = 0
    }
    bytes += size
    part.push({ ...key, place: placeOf(change.put), body, checksum: crc32(body) })
  }
  return { removed, parts }
}

/** Returns an id as a text that an index can hold: a long one is replaced by its SHA-256. */
export function keyOf(id: string): string {
  const text = textOf(id)
  if (Buffer.byteLength(text) <= MAX_KEY_BYTES) return text
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}

const TURNS_OF = 'turns/'

/** The kind of the rows with the turns of an owner, so that the index finds them. */
export const kindOfTurns = (owner: string): string =>
  TURNS_OF + createHash('sha256').update(textOf(owner)).digest('hex')

const turnKey = (id: string): RowKey => ({ kind: kindOfTurns(ownerOfTurn(id)), id: id.slice(0, id.indexOf('/')) })

/** @throws StoreError `STORE_DAMAGED` when a row differs from what was written */
export function toContents(rows: readonly DatabaseRow[], name: string): StoreContents {
  const contents = contentsOf(() => []) as unknown as Record<string, unknown[] | undefined>
  for (const { kind, id, body, checksum } of rows) {
    const row = parseRow(body, checksum)
    const isTurn = String(kind).startsWith(TURNS_OF)
    const table = contents[isTurn ? 'turns' : String(kind)]
    const isWhole = row !== undefined && (isTurn ? turnKey(row.id).id : keyOf(row.id)) === id
    if (row === undefined || table === undefined || !(isWhole || textOf(row.id) === id)) {
      throw new StoreError('STORE_DAMAGED', `${name}: the row ${JSON.stringify(id)} of ${String(kind)} is damaged.`)
    }
    table.push(row)
  }
  return contents as unknown as StoreContents
}

type Put = Extract<StoreChange, { readonly put: unknown }>

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
