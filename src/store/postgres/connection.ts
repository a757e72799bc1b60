/** One connection to the server. It opens when it is first used, and again after it broke. */
import { StoreError } from '../store-errors.js'
import { isAnswer, isConflict, NotSentError } from './postgres-failure.js'

/** A connection to PostgreSQL: the part of `pg` and PGlite that the store uses. */
export interface PostgresClient {
  /** Runs a statement with the values of its parameters. Rejects with the SQLSTATE of the server as `code` when the server refuses the statement. */
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

export type Row = Readonly<Record<string, unknown>>

/** The time limits for connecting and for one statement, in ms. A connection that exceeds a limit counts as broken. */
const LIMITS = { connectionTimeoutMillis: 10_000, query_timeout: 30_000 } as const

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

export type Query = (text: string, values?: unknown[]) => Promise<readonly Row[]>

/** How often a statement or transaction is sent that other transactions prevent. */
const MAX_CONFLICTS = 20

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
   * @throws NotSentError when the statement was not sent
   * @throws the error of the server when the server refused the statement
   * @throws any other error when it is unknown whether the statement had an effect
   */
  readonly query: Query = (text, values = []) => this.#inTurn((query) => query(text, values))

  /**
   * Runs statements in a transaction, and no other statement between them. A conflict with another transaction repeats all of them.
   * @throws what `query` throws; it is unknown whether the transaction had an effect unless a statement was refused or not sent
   */
  transaction<T>(run: (query: Query) => Promise<T>): Promise<T> {
    return this.#inTurn(async (query) => {
      // Under another isolation level, a statement would not see what another host committed while this one waited for it.
      await query('BEGIN ISOLATION LEVEL READ COMMITTED')
      try {
        const result = await run(query)
        await query('COMMIT')
        return result
      } catch (error) {
        await query('ROLLBACK').catch(() => undefined)
        throw error
      }
    })
  }

  /** Runs statements of one client after all earlier ones. */
  #inTurn<T>(run: (query: Query) => Promise<T>): Promise<T> {
    const running = this.#last.then(async () => {
      for (let conflicts = 1; ; conflicts += 1) {
        try {
          return await run(await this.#session())
        } catch (error) {
          if (!isConflict(error) || conflicts === MAX_CONFLICTS) throw error
        }
      }
    })
    this.#last = running.catch(() => undefined)
    return running
  }

  /** Returns a function that runs statements on the present client. It opens no other client when this one breaks. */
  async #session(): Promise<Query> {
    const connecting = (this.#client ??= this.#open())
    let client: PostgresClient
    try {
      client = await connecting
    } catch (error) {
      this.#forget(connecting)
      throw new NotSentError('There is no connection.', { cause: error })
    }
    return async (text, values = []) => {
      try {
        return (await client.query(text, values)).rows as readonly Row[]
      } catch (error) {
        if (!isAnswer(error)) this.#drop(connecting)
        // A text that would exceed the limit of JavaScript. `pg` sends nothing of it, and cannot be used any more.
        throw error instanceof RangeError ? new NotSentError('The statement is too large.', { cause: error }) : error
      }
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

  async close(): Promise<void> {
    const connecting = this.#client
    this.#client = undefined
    try {
      await (await connecting)?.end()
    } catch {
      // The connection was already broken.
    }
  }

  /** Ends a broken connection, once. */
  #drop(connecting: Promise<PostgresClient>): void {
    if (!this.#forget(connecting)) return
    // Not awaited, because ending a broken connection may never settle.
    connecting.then((client) => client.end()).catch(() => undefined)
  }

  /** Returns whether it was the present connection. */
  #forget(connecting: Promise<PostgresClient>): boolean {
    if (this.#client !== connecting) return false
    this.#client = undefined
    return true
  }
}
