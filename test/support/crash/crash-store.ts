/** The store of the hosts of `npm run crash`: a file in their folder, or a schema on the server in `SERVER_VARIABLE`. */
import { basename, join } from 'node:path'
import { postgresStore } from 'agent-tasks/postgres'
import { sqliteStore, type RemoteStore, type Store } from 'agent-tasks/store'

/** The environment variable with the URL of a PostgreSQL server. */
export const SERVER_VARIABLE = 'AGENT_TASKS_CRASH_SERVER'

/** How long the next host has to wait after a host was killed, in ms. */
const LEASE_MS = 500

export const isOnServer = process.env[SERVER_VARIABLE] !== undefined

export const fileIn = (folder: string): string => join(folder, 'tasks.db')

export function crashStore(folder: string): Store | RemoteStore {
  const connection = process.env[SERVER_VARIABLE]
  if (connection === undefined) return sqliteStore(fileIn(folder))
  return postgresStore({ connection, session: basename(folder), leaseMs: LEASE_MS })
}
