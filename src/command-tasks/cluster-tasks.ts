/** The interface to command tasks that run on the servers of a cluster, for a process that is not one of these servers. */
import type { Task, TaskProgressMessage } from '../protocol/command-tasks.js'
import type { InstanceSummary } from '../protocol/rest.js'
import type { TaskSubmitMessage } from '../protocol/task-submission.js'
import type { SubmitResult } from './options.js'

/**
 * The command tasks of a cluster. `bullmqCluster(…).tasks()` returns this object. `createAgentTasks`, the tool `submit_commands` and the MCP servers
 * accept it as `taskManager`.
 */
export interface ClusterTasks {
  /**
   * Submits a task for an instance on any server. Resolves with the id of the task when the cluster has accepted it. Otherwise resolves with an error
   * code, and the task does not run. Never rejects.
   */
  submitTask(message: TaskSubmitMessage): Promise<SubmitResult>
  /**
   * Reads the current state of a task. Resolves with undefined when the task never existed or was deleted. Rejects when the cluster does not answer
   * in time.
   */
  getTask(taskId: string): Promise<Task | undefined>
  /**
   * Cancels a task that has not ended. If the cluster cannot be reached, tries again until it answers. Resolves with false when the task has ended or
   * is unknown, and after `close`.
   */
  cancelTask(taskId: string): Promise<boolean>
  /**
   * Follows a task on any server, from its first stored event to its end. After an outage of the cluster, the method continues where it stopped.
   * @returns the ended task; undefined when the cluster does not have the task
   * @throws the reason of `options.signal` when it aborts
   * @throws AgentTasksError with the code `DISPOSED` after `close`
   */
  followTask(taskId: string, options: FollowOptions): Promise<Task | undefined>
  /** The tasks that were followed to their ends most recently, with their results; the latest first. */
  listTasks(): readonly Task[]
  /** Lists the instances of all servers. Rejects when the cluster does not answer in time. */
  listInstances(): Promise<InstanceSummary[]>
  /** Stops following tasks and disconnects from the cluster. Its tasks continue. */
  close(): Promise<void>
  /** Calls `close()`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** How a task is followed. */
export interface FollowOptions {
  /** Called once with each start, progress report and end of a command, in order. Must not throw. */
  readonly onProgress: (message: TaskProgressMessage) => void
  /** Aborting this signal stops following. The task itself continues. */
  readonly signal: AbortSignal
}

export const areOfCluster = (tasks: object): tasks is ClusterTasks => 'followTask' in tasks
