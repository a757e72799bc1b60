/** The names of the cluster's keys in Redis. All have one hash tag, so that a script may use several. */

export interface ClusterKeys {
  /** The prefix of BullMQ's keys. */
  readonly prefix: string
  /** The prefix of the cluster's own keys. */
  readonly own: string
  /** The stream of cluster events: events of tasks, requests to cancel, new work, changes of instances. */
  readonly feed: string
  /** The record of a task. */
  task(taskId: string): string
  /** The events of a task. */
  log(taskId: string): string
  /** The name of the queue of an instance. */
  queue(instanceId: string): string
  /** The prefix of BullMQ's keys of that queue. Only scripts use more of it (`bullmq-layout.ts`). */
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
