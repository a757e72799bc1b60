/** The store of the hosts of `npm run crash`: a file in their folder, or a schema of the server that the environment names. */
import { basename, join } from 'node:path'
import { postgresStore } from 'agent-tasks/postgres'
import { sqliteStore, type RemoteStore, type Store } from 'agent-tasks/store'

/** The URL of the server. */
export const SERVER_VARIABLE = 'AGENT_TASKS_CRASH_SERVER'

/** How long a host that was killed keeps the next one waiting, in ms. */
const LEASE_MS = 500

export const isOnServer = process.env[SERVER_VARIABLE] !== undefined

export const fileIn = (folder: string): string => join(folder, 'tasks.db')

export function crashStore(folder: string): Store | RemoteStore {
  const connection = process.env[SERVER_VARIABLE]
  if (connection === undefined) return sqliteStore(fileIn(folder))
  return postgresStore({ connection, session: basename(folder), leaseMs: LEASE_MS })
}
