/** Reads a store without owning it, also while its owner runs. The store is not changed. */
import type { StoreContents } from '../store/store.js'
import { StoreError } from '../store/store-errors.js'
import { layoutOf } from './layout.js'
import { connectSchema, type PostgresStoreOptions } from './postgres-store.js'
import type { PastTask, PastTaskQuery } from '../store/history/task-history.js'
import { toConditions, toPastTask } from './postgres-history.js'
import { LAYOUT_VERSION } from './statements.js'
import { toStoreError } from './postgres-failure.js'
import { toContents } from './rows.js'

/** One session of a schema. */
export interface StoredPostgresSession {
  /** The name of the session. */
  readonly session: string
  /** The process that owns the session now; undefined when there is none. */
  readonly holder: string | undefined
  /** The content of the session, or the reason why it cannot be read. */
  readonly read: { readonly contents: StoreContents } | { readonly error: Error }
}

/**
 * Reads all sessions of a schema, or only `options.session`.
 * @throws StoreError when the server cannot be reached, or the schema does not belong to this package
 */
export async function readPostgresStore(options: PostgresStoreOptions): Promise<readonly StoredPostgresSession[]> {
  const { connection, statements, schema, name } = connectSchema(options)
  try {
    // The schema has no tables. The first owner of a session creates them.
    if ((await layoutOf(connection, statements, { schema, name })) === 0) return []
    const sessions = await connection.query(statements.sessions)
    const read = async (session: string): Promise<StoredPostgresSession['read']> => {
      try {
        return {
          contents: toContents(await connection.query(statements.read, [session]), `${name}, session ${session}`),
        }
      } catch (error) {
        if (error instanceof StoreError) return { error }
        throw error
      }
    }
    const found: StoredPostgresSession[] = []
    for (const { session, holder } of sessions as unknown as { session: string; holder: string | null }[]) {
      if (options.session !== undefined && session !== options.session) continue
      found.push({ session, holder: holder ?? undefined, read: await read(session) })
    }
    return found
  } catch (error) {
    throw toStoreError(name, error)
  } finally {
    await connection.close()
  }
}

/**
 * Reads the history of all sessions of a schema, or only of `options.session`.
 * @throws StoreError as `readPostgresStore` does
 */
export async function readPostgresHistory(
  options: PostgresStoreOptions,
  query: PastTaskQuery,
): Promise<readonly PastTask[]> {
  const { connection, statements, schema, name } = connectSchema(options)
  try {
    if ((await layoutOf(connection, statements, { schema, name })) !== LAYOUT_VERSION) return []
    const sessions = (await connection.query(statements.sessions)) as unknown as { readonly session: string }[]
    const found: PastTask[] = []
    for (const { session } of sessions) {
      if (options.session !== undefined && session !== options.session) continue
      const rows = await connection.query(statements.history.query, [session, ...toConditions(query, 0)])
      found.push(...rows.map((row) => toPastTask(row, name)))
    }
    return found
  } catch (error) {
    throw toStoreError(name, error)
  } finally {
    await connection.close()
  }
}
