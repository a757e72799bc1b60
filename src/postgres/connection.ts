/** One connection to the server. It opens when it is first used, and again after it broke. */
import { StoreError } from '../store/store-errors.js'
import { isAnswer, NotConnectedError } from './postgres-failure.js'

/** A connection to PostgreSQL: the part of `pg` and PGlite that the store uses. */
export interface PostgresClient {
  /** Runs a statement with the values of its parameters. Rejects with `severity: 'ERROR'` when the server refuses the statement. */
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
  /** Ends the connection. */
  end(): Promise<void>
  /** Adds a listener for the end of the connection, also for one that breaks. Without this method, only the next statement detects the end. */
  on?(event: 'end', listener: () => void): unknown
}

/** The address of the server, in the form that `pg` accepts. Other options of `pg` are passed on (https://node-postgres.com/apis/client). */
export interface PostgresAddress {
  /** The host name or address. Default `localhost`. */
  readonly host?: string
  /** The port. Default 5432. */
  readonly port?: number
  /** The database. Default: the name of the user. */
  readonly database?: string
  /** The user. Default: the user of this process. */
  readonly user?: string
  /** The password, or a function that returns it for each connection. */
  readonly password?: string | (() => string | Promise<string>)
  /** The TLS options, or true for the defaults. */
  readonly ssl?: boolean | object
  readonly [option: string]: unknown
}

/** A row of a result. */
export type Row = Readonly<Record<string, unknown>>

/** The time limits for connecting and for one statement, in ms. A connection that exceeds a limit counts as broken. */
const LIMITS = { connectionTimeoutMillis: 10_000, query_timeout: 30_000 } as const

/** Connects with `pg`. */
export async function connectWithPg(address: string | PostgresAddress): Promise<PostgresClient> {
  const { Client } = await loadPg()
  const given = typeof address === 'string' ? { connectionString: address } : address
  const client = new Client({ ...LIMITS, keepAlive: true, application_name: 'agent-tasks', ...given })
  // Without a listener, an error event after the connection has ended would end the process.
  client.on('error', () => undefined)
  try {
    await client.connect()
  } catch (error) {
    // Not awaited. A statement on a client that has not connected would never settle.
    client.end().catch(() => undefined)
    throw error
  }
  return client
}

async function loadPg() {
  try {
    return (await import('pg')).default
  } catch (cause) {
    const message = 'A store in PostgreSQL needs the package pg, which is not installed. Run: npm install pg@8'
    throw new StoreError('STORE_UNAVAILABLE', message, { cause })
  }
}

export class Connection {
  readonly #connect: () => Promise<PostgresClient>
  #client: Promise<PostgresClient> | undefined
  /** Resolves when the last statement has settled; it never rejects. A client runs one statement at a time. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(connect: () => Promise<PostgresClient>) {
    this.#connect = connect
  }

  /**
   * Runs a statement after the earlier ones.
   * @throws NotConnectedError when the statement was not sent
   * @throws the error of the server when the server refused the statement
   * @throws any other error when it is unknown whether the statement had an effect
   */
  query(text: string, values: unknown[] = []): Promise<readonly Row[]> {
    const running = this.#last.then(() => this.#run(text, values))
    this.#last = running.catch(() => undefined)
    return running
  }

  async #run(text: string, values: unknown[]): Promise<readonly Row[]> {
    const connecting = (this.#client ??= this.#open())
    let client: PostgresClient
    try {
      client = await connecting
    } catch (error) {
      this.#forget(connecting)
      throw new NotConnectedError('There is no connection.', { cause: error })
    }
    try {
      return (await client.query(text, values)).rows as readonly Row[]
    } catch (error) {
      if (!isAnswer(error)) this.#drop(connecting)
      throw error
    }
  }

  #open(): Promise<PostgresClient> {
    const connecting = Promise.resolve().then(async () => {
      const client = await this.#connect()
      client.on?.('end', () => this.#forget(connecting))
      return client
    })
    return connecting
  }

  /** Ends the connection. */
  async close(): Promise<void> {
    const connecting = this.#client
    this.#client = undefined
    try {
      await (await connecting)?.end()
    } catch {
      // The connection was already broken.
    }
  }

  #drop(connecting: Promise<PostgresClient>): void {
    this.#forget(connecting)
    // Not awaited, because ending a broken connection may never settle.
    connecting.then((client) => client.end()).catch(() => undefined)
  }

  #forget(connecting: Promise<PostgresClient>): void {
    if (this.#client === connecting) this.#client = undefined
  }
}
