/** Reads the sessions in a folder (`agent-tasks mcp --store DIR`) or in a PostgreSQL, without changing them. */
import { statSync } from 'node:fs'
import { readStore, type StoreContents } from '../store/index.js'
import { readPostgresStore } from '../postgres/read-store.js'
import { isPostgresUrl, parsePostgresUrl } from '../postgres/store-url.js'
import { listSessions } from '../store/sessions/session-folder.js'
import { runningOwnerOf } from '../store/sqlite/owner-lock.js'

/** A file of a session, or its rows on a server. */
export interface StoredSession {
  /** The session key; undefined if the file that names it is missing. */
  readonly session: string | undefined
  readonly file: string
  /** Its owner: a pid, or in a PostgreSQL the name of a process and its machine. */
  readonly owner: number | string | undefined
  /** Its contents, or the error of reading it. */
  readonly read: { readonly contents: StoreContents } | { readonly error: Error }
}

/** Whether a path is a folder of sessions instead of the file of a store. */
export const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** Every file of a folder. @throws StoreError if the folder cannot be read */
export function readSessions(folder: string): StoredSession[] {
  return listSessions(folder).flatMap(({ key, files }) =>
    files.map((file) => ({ session: key, file, owner: runningOwnerOf(file), read: attempt(file) })),
  )
}

/** The sessions on a server, or the one that the URL names. @throws StoreError, InvalidSettingError */
export async function readSessionsAt(url: string): Promise<StoredSession[]> {
  const sessions = await readPostgresStore(parsePostgresUrl(url, 'store'))
  return sessions.map(({ session, holder, read }) => ({ session, file: withoutSecrets(url), owner: holder, read }))
}

/** The sessions of a folder or of a server; undefined for a file. */
export async function sessionsAt(location: string): Promise<readonly StoredSession[] | undefined> {
  if (isPostgresUrl(location)) return readSessionsAt(location)
  return isFolder(location) ? readSessions(location) : undefined
}

/** Each file or session of a location. */
export async function partsOf(location: string): Promise<readonly (StoredSession | Omit<StoredSession, 'session'>)[]> {
  const sessions = await sessionsAt(location)
  return sessions ?? [{ file: location, owner: runningOwnerOf(location), read: { contents: readStore(location) } }]
}

/** A URL without its user and password. */
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
