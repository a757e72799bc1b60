/** The folder of an MCP server's sessions (`agent-tasks mcp --store DIR`), as commands read it. Nothing is changed. */
import { statSync } from 'node:fs'
import { readStore, type StoreContents } from '../store/index.js'
import { listSessions } from '../store/sessions/session-folder.js'
import { runningOwnerOf } from '../store/sqlite/owner-lock.js'

/** A file of a session. */
export interface StoredSession {
  /** The session key; undefined if the file that names it is missing. */
  readonly session: string | undefined
  readonly file: string
  /** The process that owns the file. */
  readonly pid: number | undefined
  /** What the file holds, or why it cannot be read. */
  readonly read: { readonly contents: StoreContents } | { readonly error: Error }
}

/** Whether a path is a folder of sessions, and not the file of a store. */
export const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true

/** Every file of a folder. @throws StoreError if the folder cannot be read */
export function readSessions(folder: string): StoredSession[] {
  return listSessions(folder).flatMap(({ key, files }) =>
    files.map((file) => ({ session: key, file, pid: runningOwnerOf(file), read: attempt(file) })),
  )
}

function attempt(file: string): StoredSession['read'] {
  try {
    return { contents: readStore(file) }
  } catch (error) {
    return { error: error as Error }
  }
}
