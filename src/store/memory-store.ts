/** A store in memory, for tests. Its content survives the manager that used it, but not the process. */
import {
  contentsOf,
  STORE_TABLES,
  type LocalStore,
  type StoreChange,
  type StoreContents,
  type StoredTurn,
  type StoreTable,
} from './store.js'
import { systemClock } from '../system/clock.js'
import { memoryHistory } from './history/memory-history.js'
import { retentionLimits } from './history/task-history.js'
import { rowError, StoreError, StoreInUseError } from './store-errors.js'

/** A store in memory. */
export interface MemoryStore extends LocalStore {
  /** Returns the present content. */
  contents(): StoreContents
  /** Returns a copy that no manager owns. It has what a new process would find if this process were killed now. */
  copy(): MemoryStore
}

const NAME = 'The memory store'

type Rows = Readonly<Record<StoreTable, Map<string, string>>>

const rowsOf = (make: (table: StoreTable) => Map<string, string>): Rows =>
  Object.fromEntries(STORE_TABLES.map((table) => [table, make(table)])) as unknown as Rows

/**
 * Creates an empty store in memory, for tests. Its content survives the manager that used it, but not the process. `copy()` returns what a crash would
 * leave. Rows are kept as JSON text, as they are on a disk.
 */
export function memoryStore(): MemoryStore {
  return createMemoryStore(
    rowsOf(() => new Map<string, string>()),
    new Map<string, string>(),
  )
}

function createMemoryStore(rows: Rows, past: Map<string, string>): MemoryStore {
  let isOpen = false
  const read = (table: StoreTable): unknown[] => Array.from(rows[table].values(), (row) => JSON.parse(row) as unknown)
  const contents = (): StoreContents => {
    const tables = contentsOf(read)
    return { ...tables, tasks: bySeq(tables.tasks), commandTasks: bySeq(tables.commandTasks) }
  }
  return {
    name: NAME,
    directory: undefined,
    history: memoryHistory(retentionLimits(), () => systemClock.now(), past),
    open: () => {
      if (isOpen) throw new StoreInUseError(NAME, undefined)
      isOpen = true
      return { ...contents(), turns: [] }
    },
    // eslint-disable-next-line @typescript-eslint/require-await -- what it throws rejects
    write: async (changes) => {
      if (!isOpen) throw new StoreError('STORE_CLOSED', `${NAME} is not open.`)
      // All changes are converted before the first one is applied, because a value that JSON cannot represent must not leave half of a write.
      for (const change of changes.map(toText)) {
        if (change.text === undefined) rows[change.table].delete(change.id)
        else rows[change.table].set(change.id, change.text)
      }
    },
    turns: {
      read: (owner, limit = Infinity) => {
        const turns = bySeq(read('turns') as StoredTurn[]).filter((turn) => owner === undefined || turn.owner === owner)
        return Promise.resolve(turns.slice(-Math.min(limit, turns.length)))
      },
    },
    close: () => {
      isOpen = false
    },
    contents,
    copy: () =>
      createMemoryStore(
        rowsOf((table) => new Map(rows[table])),
        new Map(past),
      ),
  }
}

function toText(change: StoreChange): { table: StoreTable; id: string; text: string | undefined } {
  if ('remove' in change) return { table: change.table, id: change.remove, text: undefined }
  const { table, put } = change
  try {
    return { table, id: put.id, text: JSON.stringify(put) }
  } catch (error) {
    throw rowError(NAME, { table, id: put.id }, error)
  }
}

const bySeq = <Row extends { readonly seq: number }>(rows: readonly Row[]): readonly Row[] =>
  [...rows].sort((a, b) => a.seq - b.seq)
