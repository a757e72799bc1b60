/** Reads a store without possessing it, also while its owner runs. Nothing is changed. */
import type { StoreContents } from '../store/store.js'
import { StoreError } from '../store/store-errors.js'
import { hasLayout } from './layout.js'
import { connectSchema, type PostgresStoreOptions } from './postgres-store.js'
import { toStoreError } from './postgres-failure.js'
import { toContents } from './rows.js'

/** The tasks of one session, as they are stored. */
export interface StoredPostgresSession {
  readonly session: string
  /** Which process has it now. */
  readonly holder: string | undefined
  /** What it holds, or why it cannot be read. */
  readonly read: { readonly contents: StoreContents } | { readonly error: Error }
}

/**
 * Reads the sessions of a schema, or the one of `options.session`.
 * @throws StoreError if the server cannot be reached, or the schema is none of this package
 */
export async function readPostgresStore(options: PostgresStoreOptions): Promise<readonly StoredPostgresSession[]> {
  const { connection, statements, schema, name } = connectSchema(options)
  try {
    // The first owner creates it.
    if (!(await hasLayout(connection, statements, { schema, name }))) return []
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
