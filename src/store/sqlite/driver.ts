/** Selects an SQLite: the one of Node if it is safe to use, otherwise the package `@photostructure/sqlite`, which has the same interface. */
import { createRequire } from 'node:module'
import { StoreError } from '../store-errors.js'

/** The part of the interface of a database that is used here (https://nodejs.org/api/sqlite.html). */
export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

export interface Statement {
  run(...values: readonly (string | number | null)[]): unknown
  all(...values: readonly (string | number | null)[]): readonly Readonly<Record<string, unknown>>[]
  get(...values: readonly (string | number | null)[]): Readonly<Record<string, unknown>> | undefined
}

interface Driver {
  readonly DatabaseSync: new (file: string, options?: { readonly readOnly?: boolean }) => Database
}

/**
 * The first safe version. In earlier ones, a checkpoint that runs beside a write of another connection can lose committed transactions
 * (https://sqlite.org/wal.html#walresetbug).
 */
const SAFE_VERSION = [3, 51, 3] as const

/** The package to install when Node has no SQLite that is safe. */
export const SQLITE_PACKAGE = '@photostructure/sqlite'

let loaded: Driver | undefined

/**
 * Opens a database.
 * @throws StoreError `STORE_UNAVAILABLE` when there is no SQLite that is safe to use
 */
export function openDatabase(file: string, options: { readonly readOnly?: boolean } = {}): Database {
  loaded ??= loadDriver()
  return new loaded.DatabaseSync(file, options)
}

/** Whether a store on this version of Node needs `SQLITE_PACKAGE`. */
export function needsSqlitePackage(): boolean {
  const version = process.versions['sqlite']
  return version === undefined || !isSafe(version)
}

function loadDriver(): Driver {
  const version = process.versions['sqlite']
  const builtin = needsSqlitePackage() ? undefined : process.getBuiltinModule('node:sqlite')
  if (builtin !== undefined) return builtin as unknown as Driver
  try {
    return createRequire(import.meta.url)(SQLITE_PACKAGE) as Driver
  } catch (cause) {
    const found = version === undefined ? `Node ${process.version} has none` : `Node ${process.version} has ${version}`
    throw new StoreError(
      'STORE_UNAVAILABLE',
      `A store needs SQLite ${SAFE_VERSION.join('.')} or later; ${found}. Run: npm install ${SQLITE_PACKAGE}@1.2`,
      { cause },
    )
  }
}

function isSafe(version: string): boolean {
  const parts = version.split('.').map(Number)
  const at = SAFE_VERSION.findIndex((part, index) => part !== parts[index])
  return at === -1 || (parts[at] ?? 0) > (SAFE_VERSION[at] ?? 0)
}
