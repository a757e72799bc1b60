/**
 * `agent-tasks/bullmq` runs subagents and task servers on many machines, with BullMQ on Redis or Valkey. It needs the packages `bullmq` and `ioredis`.
 */

// A cluster of task servers
export { bullmqCluster, type BullmqCluster } from './cluster/bullmq-cluster.js'
export type { ClusterTasks } from '../command-tasks/cluster-tasks.js'

// Subagents on workers
export { bullmqRunner } from './bullmq-runner.js'
export { startWorker } from './start-worker.js'
export type { AgentWorker } from './start-worker.js'
