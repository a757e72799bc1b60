/** `agent-tasks/store`: stores, which keep tasks and undelivered results when the process ends. */

// Stores
export { memoryStore } from './memory-store.js'
export type { MemoryStore } from './memory-store.js'
export { readStore, sqliteStore } from './sqlite/sqlite-store.js'
export { openStore } from './open-store.js'
export type { RemoteStore } from './open-store.js'
export { StoreError } from './store-errors.js'

// The history of ended tasks
export { readSqliteHistory } from './history/sqlite-history.js'
export type { PastTask, TaskHistory } from './history/task-history.js'

// Your own store
export { STORE_TABLES } from './store.js'
export type { LocalStore, Store, StoreChange, StoreContents } from './store.js'
