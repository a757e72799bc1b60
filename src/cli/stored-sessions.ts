/** Reads the sessions in a folder (`agent-tasks mcp --store DIR`) or in PostgreSQL, and does not change them. */
import { statSync } from 'node:fs'
import { readStore, type StoreContents } from '../store/index.js'
import { readPostgresStore } from '../postgres/read-store.js'
import { isPostgresUrl, parsePostgresUrl } from '../postgres/store-url.js'
import { listSessions } from '../store/sessions/session-folder.js'
import { runningOwnerOf } from '../store/sqlite/owner-lock.js'

/** A session: one file in a folder, or rows in PostgreSQL. */
export interface StoredSession {
  /** The name of the session; undefined if the file that contains the name is missing. */
  readonly session: string | undefined
  readonly file: string
  /** The process that owns the session. In a folder this is a pid, in PostgreSQL the name of a process and its machine. */
  readonly owner: number | string | undefined
  /** The contents of the session, or the error if they could not be read. */
  readonly read: { readonly contents: StoreContents } | { readonly error: Error }
}

/** Whether a path is a folder of sessions. Otherwise it is the file of a store. */
export const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

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
 * Reads the sessions on a PostgreSQL server, or only the session that the URL names.
 * @throws StoreError if the server cannot be read
 * @throws InvalidSettingError for an invalid URL
 */
export async function readSessionsAt(url: string): Promise<StoredSession[]> {
  const sessions = await readPostgresStore(parsePostgresUrl(url, 'store'))
  return sessions.map(({ session, holder, read }) => ({ session, file: withoutSecrets(url), owner: holder, read }))
}

/** Reads the sessions of a folder or of a server. Returns undefined for the file of a single store. */
export async function sessionsAt(location: string): Promise<readonly StoredSession[] | undefined> {
  if (isPostgresUrl(location)) return readSessionsAt(location)
  return isFolder(location) ? readSessions(location) : undefined
}

/** Reads each session of a location, or the single store in a file. */
export async function partsOf(location: string): Promise<readonly (StoredSession | Omit<StoredSession, 'session'>)[]> {
  const sessions = await sessionsAt(location)
  return sessions ?? [{ file: location, owner: runningOwnerOf(location), read: { contents: readStore(location) } }]
}

/** The URL without its user and password, which must not be printed. */
function withoutSecrets(url: string): string {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}

function attempt(file: string): StoredSession['read'] {
  try {
    return { contents: readStore(file) }
  } catch (error) {
    return { error: error as Error }
  }
}
