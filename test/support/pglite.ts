/** PostgreSQL in this process (PGlite), for machines without a PostgreSQL server. */
import { PGlite } from '@electric-sql/pglite'
import type { PostgresClient } from '../../src/store/postgres/index.js'

export interface LocalPostgres {
  readonly database: PGlite
  readonly connect: () => Promise<PostgresClient>
  /** Connects to the same database. `fail` may make a statement fail instead of the database. */
  readonly connectWith: (
    fail: (text: string, run: () => Promise<unknown>) => Promise<void>,
  ) => () => Promise<PostgresClient>
  close(): Promise<void>
}

/** Makes an empty database. */
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
