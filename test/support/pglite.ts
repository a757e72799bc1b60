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
  /** Makes it empty for the next test file. */
  close(): Promise<void>
}

/** The database of this process. Its start takes seconds, so test files that share a process share it, one after the other. */
let started: Promise<PGlite> | undefined

/** Returns an empty database. */
export async function localPostgres(): Promise<LocalPostgres> {
  const database = await (started ??= PGlite.create())
  const connectWith: LocalPostgres['connectWith'] = (fail) => () =>
    Promise.resolve({
      query: async (text, values) => {
        const run = () => database.query(text, values)
        await fail(text, run)
        return run()
      },
      end: () => Promise.resolve(),
    })
  return { database, connect: connectWith(() => Promise.resolve()), connectWith, close: () => empty(database) }
}

/** Ends what the session has begun, and drops every schema. */
async function empty(database: PGlite): Promise<void> {
  await database.exec('ROLLBACK')
  await database.exec('DISCARD ALL')
  const { rows } = await database.query<{ name: string }>(
    `SELECT quote_ident(nspname) AS name FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'`,
  )
  for (const { name } of rows) await database.exec(`DROP SCHEMA ${name} CASCADE`)
  await database.exec('CREATE SCHEMA public')
}
