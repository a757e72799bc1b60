/** One connection to the server, made when it is needed, and made again when it breaks. */
import { StoreError } from '../store/store-errors.js'
import { isAnswer, NotConnectedError } from './postgres-failure.js'

/** A connection to PostgreSQL, as `pg` and PGlite have it. */
export interface PostgresClient {
  /** Runs a statement with the values of its parameters. Rejects with `severity: 'ERROR'` when the server refuses it. */
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
  /** Ends the connection. */
  end(): Promise<void>
  /** Calls a listener when the connection has ended, also when it breaks. Without this method the next statement finds it out. */
  on?(event: 'end', listener: () => void): unknown
}

/** Where the server is, as `pg` takes it; its further options may be given too (https://node-postgres.com/apis/client). */
export interface PostgresAddress {
  /** Its name or address. Default `localhost`. */
  readonly host?: string
  /** Default 5432. */
  readonly port?: number
  /** Default: the name of the user. */
  readonly database?: string
  /** Default: the user of this process. */
  readonly user?: string
  /** The password, or a function that gets it for each connection. */
  readonly password?: string | (() => string | Promise<string>)
  /** Options of TLS, or true. */
  readonly ssl?: boolean | object
  readonly [option: string]: unknown
}

/** A row that the server has sent. */
export type Row = Readonly<Record<string, unknown>>

/** How long connecting and a statement may take, in ms: a connection that says nothing is taken for broken. */
const LIMITS = { connectionTimeoutMillis: 10_000, query_timeout: 30_000 } as const

/** Connects with `pg`. */
export async function connectWithPg(address: string | PostgresAddress): Promise<PostgresClient> {
  const { Client } = await loadPg()
  const given = typeof address === 'string' ? { connectionString: address } : address
  const client = new Client({ ...LIMITS, keepAlive: true, application_name: 'agent-tasks', ...given })
  // It ends after that.
  client.on('error', () => undefined)
  try {
    await client.connect()
  } catch (error) {
    // A statement on a client that has not connected would never settle.
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
  /** The last statement; it never rejects. A client takes one at a time. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(connect: () => Promise<PostgresClient>) {
    this.#connect = connect
  }

  /**
   * Runs a statement, after the earlier ones.
   * @throws NotConnectedError if it was not sent; an error of the server, if the server refused it; any other error if nobody knows what became of it
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
      // It was broken already.
    }
  }

  #drop(connecting: Promise<PostgresClient>): void {
    this.#forget(connecting)
    // Ending a connection that says nothing may take as long as it likes.
    connecting.then((client) => client.end()).catch(() => undefined)
  }

  #forget(connecting: Promise<PostgresClient>): void {
    if (this.#client === connecting) this.#client = undefined
  }
}
