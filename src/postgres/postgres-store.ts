/**
 * A store in PostgreSQL, which survives the loss of its owner's machine.
 *
 * When the connection breaks during a write, its outcome is unknown. It is then sent again under the same number until the outcome is known; a used
 * number has no effect. So a write that resolves is stored, and one that rejects is not.
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
   * The URL of the database (`postgres://…`), options of `pg`'s `Client`, or a function that connects, for example one that fetches a token first. It is
   * called for each new connection.
   */
  readonly connection: string | PostgresAddress | (() => Promise<PostgresClient>)
  /** The schema of the tables. It is created if it does not exist. Default `agent_tasks`. */
  readonly schema?: string
  /** The session within the schema. Each session has one owner at a time. Default `default`. */
  readonly session?: string
  /** How long the store stays reserved after its owner died, in ms. A live owner renews the lease in time. Default 15000, at least 500. */
  readonly leaseMs?: number
  /** The limits of the history. `maxTasks: 0` turns it off. */
  readonly retention?: RetentionLimits
  /** Default: the platform's clock. */
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
 * Creates a store in a schema of PostgreSQL. It connects in `openStore`. Goals, outputs and errors of tasks are stored; values of environment variables
 * are not. It has no files, so `survivesHost` programs need another store.
 * @throws InvalidInputError, InvalidSettingError
 */
export function postgresStore(options: PostgresStoreOptions): RemoteStore {
  checkOptions(options, optionTypes)
  retentionLimits(options.retention)
  const { session = DEFAULTS.session } = options
  const name = nameOf(options, session)
  return { name, connect: () => connect(options, name) }
}

/** Prepares access to a schema, without owning a session. It connects with the first statement. @throws InvalidInputError, InvalidSettingError */
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

/** The name of a store or a whole schema in errors. */
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

/** Lets the next owner start at once. */
async function release({ connection, statements, session }: PossessionOptions, epoch: number): Promise<void> {
  try {
    await connection.query(statements.release, [session, epoch])
  } catch {
    // Otherwise the lease expires.
  }
}

/** Host, port and database, without user and password. */
function addressOf(connection: PostgresStoreOptions['connection']): string {
  if (typeof connection === 'function') return 'PostgreSQL'
  if (typeof connection !== 'string') {
    const { host = 'localhost', port = 5432, database = '' } = connection
    return `postgres://${host}:${port}/${database}`
  }
  const { host, pathname } = new URL(connection)
  return `postgres://${host}${pathname}`
}
