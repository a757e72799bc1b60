/** `agent-tasks/bullmq`: many machines, over BullMQ on Redis or Valkey. It needs the packages `bullmq` and `ioredis`. */

// Redis
export type { RedisAccess } from './connection.js'
export type { RedisFinding } from './redis-checks.js'

// A cluster of task servers
export { bullmqCluster, type BullmqClusterOptions } from './cluster/bullmq-cluster.js'
