/** Command tasks that the servers of a cluster run, as a host uses them that is none of these servers. */
import type { Task, TaskProgressMessage } from '../protocol/command-tasks.js'
import type { InstanceSummary } from '../protocol/rest.js'
import type { TaskSubmitMessage } from '../protocol/task-submission.js'
import type { SubmitResult } from './options.js'

/** The command tasks of a cluster: made by `tasks()` of a cluster, taken by `createAgentTasks`, the tool `submit_commands` and the MCP servers. */
export interface ClusterTasks {
  /** Submits a task for an instance of any server. Resolves when the cluster has it, or with why it was refused: then it does not run. Never rejects. */
  submitTask(message: TaskSubmitMessage): Promise<SubmitResult>
  /** A task as it is now; undefined when the cluster does not have it, or not any more. Rejects when the cluster does not answer in time. */
  getTask(taskId: string): Promise<Task | undefined>
  /** Cancels a task that has not ended, also when the cluster has to come back first. False when it has ended, is unknown, or this was closed. */
  cancelTask(taskId: string): Promise<boolean>
  /**
   * Follows a task from its first event that is kept, on whichever server it runs, and while the cluster is away.
   * @returns the task when it has ended; undefined when the cluster does not have it. Rejects when the signal aborts, or this was closed
   */
  followTask(taskId: string, options: FollowOptions): Promise<Task | undefined>
  /** The last tasks that were followed to their ends, with their results; the latest end first. */
  listTasks(): readonly Task[]
  /** The instances of all servers. Rejects when the cluster does not answer in time. */
  listInstances(): Promise<InstanceSummary[]>
  /** Follows nothing any more, and leaves the cluster. Its tasks go on. */
  close(): Promise<void>
  /** The same as `close()`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** How a task is followed. */
export interface FollowOptions {
  /** Called with each step, once and in order. Must not throw. */
  readonly onProgress: (message: TaskProgressMessage) => void
  /** Ends it; the task goes on. */
  readonly signal: AbortSignal
}

/** Whether tasks are those of a cluster. */
export const areOfCluster = (tasks: object): tasks is ClusterTasks => 'followTask' in tasks
