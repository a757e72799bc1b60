/** `agent-tasks/postgres`: a store in PostgreSQL. Needs the package `pg`, version 8. */
export type { PostgresClient } from './connection.js'
export { postgresStore, readPostgresHistory, readPostgresStore } from './postgres-store.js'
