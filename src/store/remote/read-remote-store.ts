/** Reads a store on a server without owning it, also while its owner runs. The store is not changed. */
import { toPastTask } from '../history/history-rows.js'
import type { PastTask, PastTaskQuery } from '../history/task-history.js'
import type { StoreContents } from '../store.js'
import { StoreError } from '../store-errors.js'
import { toContents } from './rows.js'
import type { StoreDatabase } from './store-database.js'

/** One session of a schema. */
export interface RemoteSession {
  /** The name of the session. */
  readonly session: string
  /** The process that owns the session now; undefined when there is none. */
  readonly holder: string | undefined
  /** The content of the session, or the reason why it cannot be read. */
  readonly read: { readonly contents: StoreContents } | { readonly error: Error }
}

/**
 * Reads all sessions of a database, or only one.
 * @throws StoreError when the server cannot be reached, or the schema does not belong to this package
 */
export function readRemoteStore(database: StoreDatabase, wanted?: string): Promise<readonly RemoteSession[]> {
  return readSessions(database, 'rows', wanted, async ({ session, holder }) => {
    const name = `${database.nameOf()}, session ${session}`
    try {
      return { session, holder, read: { contents: toContents(await database.read(session), name) } }
    } catch (error) {
      if (error instanceof StoreError) return { session, holder, read: { error } }
      throw error
    }
  })
}

/**
 * Reads the history of all sessions of a database, or only of one.
 * @throws StoreError as `readRemoteStore` does
 */
export async function readRemoteHistory(
  database: StoreDatabase,
  query: PastTaskQuery,
  wanted?: string,
): Promise<readonly PastTask[]> {
  const found = await readSessions(database, 'history', wanted, async ({ session }) => {
    const rows = await database.history.query(session, query, 0)
    return rows.map((row) => toPastTask(row, database.nameOf()))
  })
  return found.flat()
}

async function readSessions<Result>(
  database: StoreDatabase,
  part: 'rows' | 'history',
  wanted: string | undefined,
  read: (session: Omit<RemoteSession, 'read'>) => Promise<Result>,
): Promise<Result[]> {
  try {
    const found: Result[] = []
    if (!(await database.has(part))) return found
    for (const one of await database.sessions()) {
      if (wanted === undefined || one.session === wanted) found.push(await read(one))
    }
    return found
  } catch (error) {
    throw database.toStoreError(database.nameOf(), error)
  } finally {
    await database.close()
  }
}
