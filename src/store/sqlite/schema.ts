/**
 * The tables of a store file. Each row is stored whole, as JSON with a checksum. The other columns are for people who query the file.
 *
 * A change of the layout needs a new layout number and a migration.
 */
import { crc32 } from 'node:zlib'
import type { StoreTable, StoreTables } from '../store.js'
import { parseRow, textOf } from '../row-text.js'
import { StoreError } from '../store-errors.js'
import type { Database } from './driver.js'
import { MIGRATIONS, TURNS_BY_OWNER } from './migrations.js'

/** The application id in the header of every store file (https://sqlite.org/pragma.html#pragma_application_id). It spells "agtk". */
export const APPLICATION_ID = 0x6167746b

/** The layout version, which is also in the header. */
export const LAYOUT_VERSION = MIGRATIONS.length + 1

type Value = string | number | null

interface TableLayout<Row> {
  readonly name: string
  /** The columns in addition to `id`, `body` and `sum`, each with a function that returns its value. */
  readonly columns: Readonly<Record<string, (row: Row) => Value>>
  readonly order: string
  /** The layout in which the table was introduced. Default: 1. */
  readonly since?: number
}

export const LAYOUT: { readonly [Table in StoreTable]: TableLayout<StoreTables[Table]> } = {
  tasks: {
    name: 'tasks',
    columns: {
      owner: ({ owner }) => textOf(owner),
      status: ({ status }) => status,
      delivery: ({ delivery }) => delivery,
      attempt: ({ attempt }) => attempt,
      seq: ({ seq }) => seq,
      launched_at: ({ launchedAt }) => launchedAt,
      completed_at: ({ completedAt }) => completedAt ?? null,
      deadline_at: ({ deadlineAt }) => deadlineAt ?? null,
    },
    order: 'seq',
  },
  deliveries: {
    name: 'deliveries',
    columns: { owner: ({ owner }) => textOf(owner), state: ({ state }) => state, at: ({ at }) => at },
    order: 'at',
  },
  commandTasks: {
    name: 'command_tasks',
    columns: {
      instance_id: ({ instanceId }) => textOf(instanceId),
      status: ({ status }) => status,
      seq: ({ seq }) => seq,
      created_at: ({ createdAt }) => createdAt,
      completed_at: ({ completedAt }) => completedAt ?? null,
    },
    order: 'seq',
  },
  commands: {
    name: 'commands',
    columns: { task_id: ({ taskId }) => textOf(taskId), place: ({ index }) => index },
    order: 'task_id, place',
  },
  instances: { name: 'instances', columns: {}, order: 'id' },
  featureStates: {
    name: 'feature_states',
    columns: { feature: ({ feature }) => textOf(feature) },
    order: 'id',
    since: 2,
  },
  turns: {
    name: 'turns',
    columns: { owner: ({ owner }) => textOf(owner), seq: ({ seq }) => seq, at: ({ at }) => at },
    order: 'owner, seq',
    since: 3,
  },
}

export function createTables(database: Database): void {
  for (const { name, columns } of Object.values(LAYOUT)) {
    const own = Object.keys(columns).map((column) => `, ${column}`)
    database.exec(`CREATE TABLE ${name} (id TEXT PRIMARY KEY${own.join('')}, body TEXT NOT NULL, sum INTEGER NOT NULL)`)
  }
  database.exec(TURNS_BY_OWNER)
}

/** Returns the values of a row, in the order of the columns. */
export function valuesOf<Table extends StoreTable>(table: Table, row: StoreTables[Table]): Value[] {
  const body = JSON.stringify(row)
  const columns: TableLayout<StoreTables[Table]>['columns'] = LAYOUT[table].columns
  return [textOf(row.id), ...Object.values(columns).map((read) => read(row)), body, crc32(body)]
}

function layoutOf(database: Database): number {
  const [version] = Object.values(database.prepare('PRAGMA user_version').get() ?? {})
  return Number(version)
}

/**
 * Reads every row of a table. Returns an empty list when the file has an older layout without the table.
 * @throws StoreError `STORE_DAMAGED` when a row differs from what was written
 */
export function readTable<Table extends StoreTable>(
  database: Database,
  table: Table,
  file: string,
): StoreTables[Table][] {
  const { name, order, since = 1 } = LAYOUT[table]
  if (layoutOf(database) < since) return []
  return toRows(database.prepare(`SELECT id, body, sum FROM ${name} ORDER BY ${order}, id`).all(), table, file)
}

/**
 * Reads the last turns of an owner, in their order.
 * @throws StoreError as `readTable` does
 */
export function readTurns(database: Database, file: string, owner: string, limit: number): StoreTables['turns'][] {
  const last = database.prepare('SELECT id, body, sum FROM turns WHERE owner = ? ORDER BY seq DESC LIMIT ?')
  // A negative limit is none (https://sqlite.org/lang_select.html#the_limit_clause).
  return toRows(last.all(textOf(owner), limit === Infinity ? -1 : limit).toReversed(), 'turns', file)
}

function toRows<Table extends StoreTable>(
  rows: readonly Readonly<Record<string, unknown>>[],
  table: Table,
  file: string,
): StoreTables[Table][] {
  return rows.map(({ id, body, sum }) => {
    const row = parseRow(body, sum)
    if (row !== undefined && textOf(row.id) === id) return row as StoreTables[Table]
    throw new StoreError(
      'STORE_DAMAGED',
      `${file}: the row ${JSON.stringify(id)} of table ${LAYOUT[table].name} is damaged.`,
    )
  })
}
