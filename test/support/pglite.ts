/** PostgreSQL in this process (PGlite), where no server is available. */
import { PGlite } from '@electric-sql/pglite'
import type { PostgresClient } from '../../src/postgres/index.js'

export interface LocalPostgres {
  readonly database: PGlite
  readonly connect: () => Promise<PostgresClient>
  /** Connects to the same database; `fail` may end a statement in place of the server. */
  readonly connectWith: (
    fail: (text: string, run: () => Promise<unknown>) => Promise<void>,
  ) => () => Promise<PostgresClient>
  close(): Promise<void>
}

/** An empty database. */
export async function localPostgres(): Promise<LocalPostgres> {
  const database = await PGlite.create()
  const connectWith: LocalPostgres['connectWith'] = (fail) => () =>
    Promise.resolve({
      query: async (text, values) => {
        const run = () => database.query(text, values)
        await fail(text, run)
        return run()
      },
      end: () => Promise.resolve(),
    })
  return { database, connect: connectWith(() => Promise.resolve()), connectWith, close: () => database.close() }
}
