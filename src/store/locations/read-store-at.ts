/** Reads the store at a location without owning it: a file, the sessions in a folder (`agent-tasks mcp --store DIR`), or those at a URL. */
import { statSync } from 'node:fs'
import { readSqliteHistory } from '../history/sqlite-history.js'
import type { PastTask, PastTaskQuery } from '../history/task-history.js'
import { listHistories, listSessions } from '../sessions/session-folder.js'
import { runningOwnerOf } from '../sqlite/owner-lock.js'
import { readStore } from '../sqlite/sqlite-store.js'
import type { StoreContents } from '../store.js'
import { shownLocation, storeUrlAt } from './store-url.js'

/** A session: one file in a folder, or rows on a server. */
export interface StoredSession {
  /** The name of the session; undefined if the file that contains the name is missing. */
  readonly session: string | undefined
  readonly file: string
  /** The process that owns the session. In a folder this is a pid, on a server the name of a process and its machine. */
  readonly owner: number | string | undefined
  /** The contents of the session, or the error if they could not be read. */
  readonly read: { readonly contents: StoreContents } | { readonly error: Error }
}

/** Whether a path is a folder of sessions. Otherwise it is the file of a store. */
export const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/**
 * Reads the sessions of a folder, or those at a URL. Returns undefined for the file of a single store.
 * @throws StoreError if the folder or the server cannot be read
 * @throws INVALID_SETTING for an invalid URL
 */
export async function readSessionsAt(location: string): Promise<readonly StoredSession[] | undefined> {
  const url = storeUrlAt(location, 'store')
  if (url === undefined) return isFolder(location) ? readSessions(location) : undefined
  const file = shownLocation(location)
  return (await url.read()).map(({ session, holder, read }) => ({ session, file, owner: holder, read }))
}

/** Reads each session of a location, or the single store in a file. */
export async function partsOf(location: string): Promise<readonly (StoredSession | Omit<StoredSession, 'session'>)[]> {
  const sessions = await readSessionsAt(location)
  return sessions ?? [{ file: location, owner: runningOwnerOf(location), read: { contents: readStore(location) } }]
}

/**
 * Reads every session in a folder.
 * @throws StoreError if the folder cannot be read
 */
export function readSessions(folder: string): StoredSession[] {
  return listSessions(folder).flatMap(({ key, files }) =>
    files.map((file) => ({ session: key, file, owner: runningOwnerOf(file), read: attempt(file) })),
  )
}

/**
 * Reads the past tasks that match a query.
 * @throws StoreError if a history cannot be read
 * @throws INVALID_SETTING for an invalid URL
 */
export async function readHistoryAt(
  location: string,
  setting: string,
  query: PastTaskQuery,
): Promise<readonly PastTask[]> {
  const url = storeUrlAt(location, setting)
  if (url !== undefined) return url.readHistory(query)
  const files = isFolder(location) ? listHistories(location).map(({ file }) => file) : [`${location}-history`]
  return (await Promise.all(files.map((file) => readSqliteHistory(file, query)))).flat()
}

function attempt(file: string): StoredSession['read'] {
  try {
    return { contents: readStore(file) }
  } catch (error) {
    return { error: error as Error }
  }
}
