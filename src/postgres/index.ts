/** `agent-tasks/postgres`: a store in PostgreSQL. Needs the package `pg`, version 8. */
export type { PostgresAddress, PostgresClient } from './connection.js'
export { readPostgresHistory, readPostgresStore } from './read-store.js'
export type { StoredPostgresSession } from './read-store.js'
export { postgresStore } from './postgres-store.js'
export type { PostgresStoreOptions } from './postgres-store.js'
