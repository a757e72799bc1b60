/** `agent-tasks/store`: stores that keep tasks and undelivered results when the process ends. */
export { memoryStore } from './memory-store.js'
export type { MemoryStore } from './memory-store.js'
export { openStore } from './open-store.js'
export type { OpenStore, RemoteStore } from './open-store.js'
export type { HistoryPlace, PastTask, PastTaskQuery, RetentionLimits, TaskHistory } from './history/task-history.js'
export { readSqliteHistory } from './history/sqlite-history.js'
export { readStore, sqliteStore } from './sqlite/sqlite-store.js'
export type { SqliteStoreOptions } from './sqlite/sqlite-store.js'
export { STORE_TABLES } from './store.js'
export { StoreError, StoreInUseError } from './store-errors.js'
export type { StoreErrorCode, StoreRow } from './store-errors.js'
export type {
  LocalStore,
  Store,
  StoreChange,
  StoreContents,
  StoredCommand,
  StoredCommandTask,
  StoredDelivery,
  StoredFeatureState,
  StoredInstance,
  StoredJson,
  StoredTask,
  StoreTable,
  StoreTables,
} from './store.js'
