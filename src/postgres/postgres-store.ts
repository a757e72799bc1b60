/**
 * A store in PostgreSQL. It survives the loss of the machine on which its owner runs.
 *
 * When the connection breaks during a write, it is unknown whether the write was committed. The write is then sent again with the same batch number,
 * until the server answers. A batch number that was used has no effect. So a write that resolves is stored, and a write that rejects is not.
 */
import { systemClock, type Clock } from '../clock.js'
import {
  aClock,
  anObject,
  checkOptions,
  required,
  type OptionType,
  type OptionTypes,
} from '../protocol/option-checks.js'
import type { OpenStore, RemoteStore } from '../store/open-store.js'
import { StoreError } from '../store/store-errors.js'
import type { StoreContents } from '../store/store.js'
import { commitQueue } from './commit-queue.js'
import { Connection, connectWithPg, type PostgresAddress, type PostgresClient } from './connection.js'
import { prepareSchema } from './layout.js'
import { OwnedRows } from './owned-rows.js'
import { toStoreError } from './postgres-failure.js'
import { postgresHistory } from './postgres-history.js'
import { retentionLimits, type RetentionLimits } from '../store/history/task-history.js'
import { keepPossession, takePossession, type PossessionOptions } from './possession.js'
import { toContents } from './rows.js'
import { statementsFor } from './statements.js'

/** Options of `postgresStore`. */
export interface PostgresStoreOptions {
  /**
   * The URL of the database (`postgres://…`), options for the `Client` of `pg`, or a function that connects, for example one that fetches a token first.
   * The function is called for each new connection.
   */
  readonly connection: string | PostgresAddress | (() => Promise<PostgresClient>)
  /** The schema of the tables. The store creates it if it does not exist. Default `agent_tasks`. */
  readonly schema?: string
  /** The name of the session. A schema can have several sessions, and each has one owner at a time. Default `default`. */
  readonly session?: string
  /** How long the store stays reserved after its owner died, in ms. A live owner renews the lease before that. Default 15000; at least 500. */
  readonly leaseMs?: number
  /** The limits of the history. With `maxTasks: 0` there is no history. */
  readonly retention?: RetentionLimits
  /** The source of time. Default: the platform's clock. */
  readonly clock?: Clock
}

const DEFAULTS = { schema: 'agent_tasks', session: 'default', leaseMs: 15_000 } as const

const aConnection: OptionType = {
  expected: "'postgres://…', options of pg, or a function that connects",
  accepts: (value) =>
    typeof value === 'string'
      ? /^postgres(ql)?:\/\//.test(value) && URL.canParse(value)
      : typeof value === 'function' || (typeof value === 'object' && value !== null),
  isSecret: true,
}

const optionTypes: OptionTypes<PostgresStoreOptions> = {
  connection: required(aConnection),
  schema: {
    expected: 'the name of a schema: a letter or _, then letters, digits or _, at most 63 characters',
    accepts: (value) => typeof value === 'string' && /^[a-z_]\w{0,62}$/i.test(value),
  },
  session: {
    expected: 'a text of 1 to 512 characters without NUL',
    accepts: (value) => typeof value === 'string' && value !== '' && value.length <= 512 && !value.includes('\0'),
  },
  leaseMs: {
    expected: 'a number from 500 to 86400000',
    accepts: (value) => typeof value === 'number' && value >= 500 && value <= 86_400_000,
    isNumber: true,
  },
  retention: anObject,
  clock: aClock,
}

/**
 * Creates a store in a schema of PostgreSQL. `openStore` connects it. It stores the goals, outputs and errors of tasks, but no values of environment
 * variables. It has no files, so programs with `survivesHost` need another store.
 * @throws InvalidInputError for an unknown option, or an option of a wrong type
 * @throws InvalidSettingError for a number out of its range
 */
export function postgresStore(options: PostgresStoreOptions): RemoteStore {
  checkOptions(options, optionTypes)
  retentionLimits(options.retention)
  const { session = DEFAULTS.session } = options
  const name = nameOf(options, session)
  return { name, connect: () => connect(options, name) }
}

/**
 * Prepares access to a schema without owning a session. The first statement connects.
 * @throws InvalidInputError for an unknown option, or an option of a wrong type
 * @throws InvalidSettingError for a number out of its range
 */
export function connectSchema(options: PostgresStoreOptions) {
  checkOptions(options, optionTypes)
  const { connection, schema = DEFAULTS.schema } = options
  return {
    connection: new Connection(typeof connection === 'function' ? connection : () => connectWithPg(connection)),
    statements: statementsFor(schema),
    schema,
    name: nameOf(options),
  }
}

/** The name in errors, of one session's store or of the whole schema. */
function nameOf({ connection, schema = DEFAULTS.schema }: PostgresStoreOptions, session?: string): string {
  const place = session === undefined ? `schema ${schema}` : `schema ${schema}, session ${session}`
  return `${addressOf(connection)} (${place})`
}

async function connect(given: PostgresStoreOptions, name: string): Promise<OpenStore> {
  const { connection, statements, schema } = connectSchema(given)
  const { session, leaseMs, clock } = { ...DEFAULTS, clock: systemClock, ...given }
  const options: PossessionOptions = { connection, statements, session, leaseMs, clock, name }
  try {
    await prepareSchema(connection, statements, { schema, name })
    const tenure = await takePossession(options)
    try {
      const contents = toContents(await connection.query(statements.read, [session]), name)
      const limits = retentionLimits(given.retention)
      const history = limits.maxTasks === 0 ? undefined : postgresHistory({ ...options, limits })
      return { ...toOpenStore(options, new OwnedRows(options, tenure), tenure.epoch, contents), history }
    } catch (error) {
      await release(options, tenure.epoch)
      throw error
    }
  } catch (error) {
    await connection.close()
    throw toStoreError(name, error)
  }
}

function toOpenStore(options: PossessionOptions, rows: OwnedRows, epoch: number, found: StoreContents): OpenStore {
  const { connection, name } = options
  const write = commitQueue((changes) => rows.write(changes))
  const stopRenewing = keepPossession(options, epoch, () => rows.lose('another owner has taken over'))
  let contents: StoreContents | undefined = found
  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    stopRenewing()
    await release(options, epoch)
    await connection.close()
  }
  return {
    name,
    directory: undefined,
    lost: rows.lost,
    open: () => {
      if (contents === undefined) {
        throw new StoreError(
          'STORE_IN_USE',
          `${name}: this store object was used by a manager before. Create a new one.`,
        )
      }
      const first = contents
      contents = undefined
      return first
    },
    write: (changes) =>
      closing === undefined
        ? write(changes)
        : Promise.reject(new StoreError('STORE_CLOSED', `${name}: the store is not open.`)),
    close: () => (closing ??= close()),
  }
}

/** Ends the lease, so that the next owner need not wait. */
async function release({ connection, statements, session }: PossessionOptions, epoch: number): Promise<void> {
  try {
    await connection.query(statements.release, [session, epoch])
  } catch {
    // The server cannot be reached. The lease expires by itself.
  }
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
