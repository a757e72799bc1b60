/** The names of what a cluster keeps in Redis. All have one hash tag, so that a script may use several. */

export interface ClusterKeys {
  /** What BullMQ's keys begin with. */
  readonly prefix: string
  /** What the cluster's own keys begin with. */
  readonly own: string
  /** The stream of what happens: events of tasks, requests to cancel, new work, changes of instances. */
  readonly feed: string
  /** The record of a task. */
  task(taskId: string): string
  /** The events of a task. */
  log(taskId: string): string
  /** The name of the queue of an instance. */
  queue(instanceId: string): string
  /** What BullMQ's keys of that queue begin with: only scripts know more of them (`bullmq-layout.ts`). */
  queueKey(instanceId: string): string
}

/** @param name of the cluster: several may share a Redis */
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
