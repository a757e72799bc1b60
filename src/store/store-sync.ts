/**
 * Tracks which rows of a store are out of date. A row is built when it is written, so that several changes of an item become one row. If the store
 * cannot hold a row, a reduced row is built instead, once.
 */
import type { StoreRow } from './store-errors.js'
import type { StoreChange, StoreTable, StoreTables } from './store.js'
import type { PendingChanges } from './store-writer.js'

/** The type of the items from which the rows of each table are built. */
export type StoredItems = { readonly [Table in StoreTable]?: object }

export interface RowKind<Item, Row> {
  readonly rowOf: (item: Item, isReduced: boolean) => Row
  /** Whether `rowOf` can build a smaller row. Default false. */
  readonly isReducible?: boolean
}

export type RowKinds<Items extends StoredItems> = {
  readonly [Table in keyof Items & StoreTable]: RowKind<Items[Table], StoreTables[Table]>
}

/** Marks for items without a row. A `REMOVED` item causes a write. A `PRUNED` item is removed with the next write, but does not cause one. */
const REMOVED = Symbol('removed')
const PRUNED = Symbol('pruned')
type Gone = typeof REMOVED | typeof PRUNED

/** The out-of-date rows of one table, by id. */
type Rows = Map<string, object | Gone>

export class StoreSync<Items extends StoredItems> implements PendingChanges {
  readonly #kinds: readonly (readonly [StoreTable, RowKind<object, unknown>])[]
  #pending: ReadonlyMap<StoreTable, Rows>
  /** How many rows require a write. Pruned rows do not. */
  #due = 0
  /** The rows of the write in progress. */
  #taken: ReadonlyMap<StoreTable, Rows> | undefined
  readonly #reduced = new WeakSet<object>()

  /** @param kinds the tables, in the order in which their rows are written. All removals come before all other rows */
  constructor(kinds: RowKinds<Items>) {
    this.#kinds = Object.entries(kinds) as unknown as [StoreTable, RowKind<object, unknown>][]
    this.#pending = this.#noRows()
  }

  /** Marks a row as new or out of date. */
  put<Table extends keyof Items & StoreTable>(table: Table, id: string, item: Items[Table] & object): void {
    this.#set(table, id, item)
  }

  remove(table: keyof Items & StoreTable, id: string): void {
    this.#set(table, id, REMOVED)
  }

  /**
   * Marks a row for removal with the next write, but does not cause a write. If the process crashes first, the next process reads the row and prunes
   * it again.
   */
  prune(table: keyof Items & StoreTable, id: string): void {
    this.#set(table, id, PRUNED)
  }

  #set(table: keyof Items & StoreTable, id: string, item: object | Gone): void {
    const rows = this.#pending.get(table)
    if (rows === undefined) return
    this.#due += Number(item !== PRUNED) - Number(isDue(rows.get(id)))
    rows.set(id, item)
  }

  /** Whether a row is being written or must still be written. */
  isPending(table: keyof Items & StoreTable, id: string): boolean {
    return isDue(this.#pending.get(table)?.get(id)) || this.#taken?.get(table)?.has(id) === true
  }

  /** Whether a smaller row is built for this item, because the store could not hold the full row. */
  isReduced(item: object): boolean {
    return this.#reduced.has(item)
  }

  // The methods of `PendingChanges`, which `StoreWriter` calls.

  isEmpty(): boolean {
    return this.#due === 0
  }

  take(): StoreChange[] {
    const taken = this.#pending
    this.#taken = taken
    this.#pending = this.#noRows()
    this.#due = 0
    const removals: StoreChange[] = []
    const puts: StoreChange[] = []
    for (const [table, { rowOf }] of this.#kinds) {
      for (const [id, item] of taken.get(table) ?? []) {
        if (isGone(item)) removals.push({ table, remove: id } as StoreChange)
        else puts.push({ table, put: rowOf(item, this.#reduced.has(item)) } as StoreChange)
      }
    }
    return [...removals, ...puts]
  }

  stored(): void {
    this.#taken = undefined
  }

  refused(): void {
    const [taken, newer] = [this.#taken, this.#pending]
    if (taken === undefined) return
    this.#taken = undefined
    this.#pending = taken
    this.#due = [...taken.values()].reduce((due, rows) => due + [...rows.values()].filter(isDue).length, 0)
    for (const [table, rows] of newer) for (const [id, item] of rows) this.#set(table, id, item)
  }

  reduce({ table, id }: StoreRow): boolean {
    const item = this.#pending.get(table)?.get(id)
    const isReducible = this.#kinds.some(([name, kind]) => name === table && kind.isReducible === true)
    if (!isReducible || item === undefined || isGone(item) || this.#reduced.has(item)) return false
    this.#reduced.add(item)
    return true
  }

  #noRows(): ReadonlyMap<StoreTable, Rows> {
    return new Map(this.#kinds.map(([table]) => [table, new Map()]))
  }
}

const isGone = (item: object | Gone): item is Gone => item === REMOVED || item === PRUNED

const isDue = (item: object | Gone | undefined): boolean => item !== undefined && item !== PRUNED
