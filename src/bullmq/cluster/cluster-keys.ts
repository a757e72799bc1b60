/** The names of the cluster's keys in Redis. All names contain the same hash tag, so that one script may use several keys on a Redis Cluster. */

export interface ClusterKeys {
  readonly prefix: string
  /** The prefix of the keys that belong to this package. */
  readonly own: string
  /** The stream of cluster events: events of tasks, requests to cancel a task, new work, and changes of instances. */
  readonly feed: string
  /** The hash with the record of a task. */
  task(taskId: string): string
  /** The stream with the events of a task. */
  log(taskId: string): string
  /** The name of the BullMQ queue of an instance. */
  queue(instanceId: string): string
  /** The prefix of BullMQ's keys of that queue. Only Lua scripts use the keys under this prefix (`bullmq-layout.ts`). */
  queueKey(instanceId: string): string
}

/** @param name the name of the cluster; several clusters may share a Redis */
export function clusterKeys(name: string): ClusterKeys {
  const prefix = `{${name}}`
  const own = `${prefix}:cluster:`
  // BullMQ allows no colon in the name of a queue.
  const queue = (instanceId: string): string => `i-${encodeURIComponent(instanceId)}`
  return {
    prefix,
    own,
    feed: `${own}feed`,
    task: (taskId) => `${own}task:${taskId}`,
    log: (taskId) => `${own}log:${taskId}`,
    queue,
    queueKey: (instanceId) => `${prefix}:${queue(instanceId)}`,
  }
}
