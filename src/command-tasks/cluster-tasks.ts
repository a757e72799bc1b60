/** Command tasks that run on the servers of a cluster, for a process that is not one of these servers. */
import type { Task, TaskProgressMessage } from '../protocol/command-tasks.js'
import type { InstanceSummary } from '../protocol/rest.js'
import type { TaskSubmitMessage } from '../protocol/task-submission.js'
import type { SubmitResult } from './options.js'

/** The command tasks of a cluster. `tasks()` of a cluster makes them; `createAgentTasks`, the tool `submit_commands` and the MCP servers take them. */
export interface ClusterTasks {
  /**
   * Submits a task for an instance of any server. Resolves when the cluster has accepted it, or with why it was refused and does not run. Never rejects.
   */
  submitTask(message: TaskSubmitMessage): Promise<SubmitResult>
  /**
   * Returns the current state of a task; undefined when the cluster does not have it, or no longer. Rejects when the cluster does not answer in time.
   */
  getTask(taskId: string): Promise<Task | undefined>
  /** Cancels a task that has not ended; while the cluster is away, it waits. False when the task has ended or is unknown, or after `close`. */
  cancelTask(taskId: string): Promise<boolean>
  /**
   * Follows a task from its first stored event to its end, on any server. It continues after an outage of the cluster.
   * @returns the ended task; undefined when the cluster does not have it. Rejects when the signal aborts, and on `close`
   */
  followTask(taskId: string, options: FollowOptions): Promise<Task | undefined>
  /** The last tasks that were followed to their ends, with their results; the latest first. */
  listTasks(): readonly Task[]
  /** The instances of all servers. Rejects when the cluster does not answer in time. */
  listInstances(): Promise<InstanceSummary[]>
  /** Stops following, and leaves the cluster. Its tasks continue. */
  close(): Promise<void>
  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** How a task is followed. */
export interface FollowOptions {
  /** Called with each step, once and in order. Must not throw. */
  readonly onProgress: (message: TaskProgressMessage) => void
  /** Stops following; the task continues. */
  readonly signal: AbortSignal
}

/** Whether these tasks are those of a cluster. */
export const areOfCluster = (tasks: object): tasks is ClusterTasks => 'followTask' in tasks
