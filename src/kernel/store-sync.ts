/**
 * Which rows of a store are out of date. A row is made when it is written, so that several changes of one item are one row; a row that the store
 * cannot hold is reduced, once.
 */
import type { StoreRow } from '../store/store-errors.js'
import type { StoreChange, StoreTable, StoreTables } from '../store/store.js'
import type { PendingChanges } from '../store/store-writer.js'

/** What the rows of each table are made of. */
export type StoredItems = { readonly [Table in StoreTable]?: object }

/** How the rows of one table are made. */
export interface RowKind<Item, Row> {
  readonly rowOf: (item: Item, isReduced: boolean) => Row
  /** Whether a row can be made with less. Default false. */
  readonly isReducible?: boolean
}

export type RowKinds<Items extends StoredItems> = {
  readonly [Table in keyof Items & StoreTable]: RowKind<Items[Table], StoreTables[Table]>
}

/** Stands for an item that is gone; `PRUNED` causes no write of its own. */
const REMOVED = Symbol('removed')
const PRUNED = Symbol('pruned')
type Gone = typeof REMOVED | typeof PRUNED

/** The rows of one table that are out of date, by id. */
type Rows = Map<string, object | Gone>

export class StoreSync<Items extends StoredItems> implements PendingChanges {
  readonly #kinds: readonly (readonly [StoreTable, RowKind<object, unknown>])[]
  #pending: ReadonlyMap<StoreTable, Rows>
  /** How many of them are due: not pruned. */
  #due = 0
  /** What is being written. */
  #taken: ReadonlyMap<StoreTable, Rows> | undefined
  readonly #reduced = new WeakSet<object>()

  /** @param kinds the tables; they are written in this order, each after its removals */
  constructor(kinds: RowKinds<Items>) {
    this.#kinds = Object.entries(kinds) as unknown as [StoreTable, RowKind<object, unknown>][]
    this.#pending = this.#noRows()
  }

  /** The row of an item is out of date, or new. */
  put<Table extends keyof Items & StoreTable>(table: Table, id: string, item: Items[Table] & object): void {
    this.#set(table, id, item)
  }

  /** The item of a row is gone. */
  remove(table: keyof Items & StoreTable, id: string): void {
    this.#set(table, id, REMOVED)
  }

  /** The same for an item that nobody asks for: its row goes with the next write. After a crash before that it is read, and pruned again. */
  prune(table: keyof Items & StoreTable, id: string): void {
    this.#set(table, id, PRUNED)
  }

  #set(table: keyof Items & StoreTable, id: string, item: object | Gone): void {
    const rows = this.#pending.get(table)
    if (rows === undefined) return
    this.#due += Number(item !== PRUNED) - Number(isDue(rows.get(id)))
    rows.set(id, item)
  }

  /** Whether a row has to be written, or is being written. */
  isPending(table: keyof Items & StoreTable, id: string): boolean {
    return isDue(this.#pending.get(table)?.get(id)) || this.#taken?.get(table)?.has(id) === true
  }

  /** Whether the row of an item is made with less, because the store could not hold all of it. */
  isReduced(item: object): boolean {
    return this.#reduced.has(item)
  }

  // For `StoreWriter`

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
