/** A store in PostgreSQL. */
import { aText, checkOptions, custom, required, type OptionTypes } from '../../protocol/option-checks.js'
import type { PastTask, PastTaskQuery } from '../history/task-history.js'
import type { RemoteStore } from '../open-store.js'
import { readRemoteHistory, readRemoteStore, type RemoteSession } from '../remote/read-remote-store.js'
import { remoteOptionTypes, remoteStore, type RemoteStoreOptions } from '../remote/remote-store.js'
import type { StoreDatabase } from '../remote/store-database.js'
import { connectWithPg, type PostgresAddress, type PostgresClient } from './connection.js'
import { postgresDatabase } from './postgres-database.js'

/** Options of `postgresStore`. */
export interface PostgresStoreOptions extends RemoteStoreOptions {
  /**
   * The URL of the database (`postgres://…`), options for the `Client` of `pg`, or a function that connects, for example one that fetches a token first.
   * The function is called for each new connection.
   */
  readonly connection: string | PostgresAddress | (() => Promise<PostgresClient>)
  /** The schema of the tables. The store creates it if it does not exist. Default `agent_tasks`. */
  readonly schema?: string
}

const aConnection = custom(
  "'postgres://…', options of pg, or a function that connects",
  (value) =>
    typeof value === 'string'
      ? /^postgres(ql)?:\/\//.test(value) && URL.canParse(value)
      : typeof value === 'function' || (typeof value === 'object' && value !== null),
  { isSecret: true },
)

const optionTypes: OptionTypes<PostgresStoreOptions> = {
  connection: required(aConnection),
  schema: aText(
    'the name of a schema: a letter or _, then letters, digits or _, at most 63 characters',
    /^[a-z_]\w{0,62}$/i,
  ),
  ...remoteOptionTypes,
}

/**
 * Creates a store in a schema of PostgreSQL. `openStore` connects it. It stores the goals, outputs and errors of tasks, but no values of environment
 * variables. It has no files, so programs with `survivesHost` need another store.
 * @throws INVALID_INPUT for an unknown option, or an option of a wrong type
 * @throws INVALID_SETTING for a number out of its range
 */
export function postgresStore(options: PostgresStoreOptions): RemoteStore {
  checkOptions(options, optionTypes)
  return remoteStore(options, () => connectSchema(options))
}

/**
 * Reads all sessions of a schema, or only `options.session`.
 * @throws StoreError when the server cannot be reached, or the schema does not belong to this package
 */
export function readPostgresStore(options: PostgresStoreOptions): Promise<readonly RemoteSession[]> {
  return readRemoteStore(connectSchema(options), options.session)
}

/**
 * Reads the history of all sessions of a schema, or only of `options.session`.
 * @throws StoreError as `readPostgresStore` does
 */
export function readPostgresHistory(options: PostgresStoreOptions, query: PastTaskQuery): Promise<readonly PastTask[]> {
  return readRemoteHistory(connectSchema(options), query, options.session)
}

/**
 * Prepares access to a schema without owning a session. The first statement connects.
 * @throws INVALID_INPUT for an unknown option, or an option of a wrong type
 * @throws INVALID_SETTING for a number out of its range
 */
export function connectSchema(options: PostgresStoreOptions): StoreDatabase {
  checkOptions(options, optionTypes)
  const { connection, schema = 'agent_tasks' } = options
  const connect = typeof connection === 'function' ? connection : () => connectWithPg(connection)
  return postgresDatabase(connect, schema, addressOf(connection))
}

/** Returns the host, the port and the database, without the user and the password. */
function addressOf(connection: PostgresStoreOptions['connection']): string {
  if (typeof connection === 'function') return 'PostgreSQL'
  if (typeof connection !== 'string') {
    const { host = 'localhost', port = 5432, database = '' } = connection
    return `postgres://${host}:${port}/${database}`
  }
  const { host, pathname } = new URL(connection)
  return `postgres://${host}${pathname}`
}
