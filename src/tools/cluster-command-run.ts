/**
 * The run of an async task that follows a command task of a cluster (promise S10). With a store, a restarted host also follows the command task to its
 * end, because the id of the command task is stored.
 */
import type { FindRunner, ResolvedRunner, RunFunction } from '../engine/runner.js'
import type { ClusterTasks } from '../command-tasks/cluster-tasks.js'
import { completeMessage } from '../command-tasks/task-record.js'
import { AgentTasksError } from '../errors.js'
import type { TaskSubmitMessage } from '../protocol/command-tasks.js'
import { reporterOf, type CommandRun, type SubmitRefusal } from './command-run.js'
import { endText, outputOf } from './command-texts.js'
import { hasSucceeded } from '../../machines/task-status.js'

const FOUND_AS = 'submit_commands of a cluster'

/** Returns a runner that follows a command task. The id is in the context, both at a new launch and after a restart. */
function commandRunner(tasks: ClusterTasks, onEnd: () => void = () => undefined): ResolvedRunner {
  const run: RunFunction = async ({ context: given }, context) => {
    const commandTaskId = String(given?.['commandTaskId'])
    const { signal, durability } = context
    const { left } = durability ?? {}
    const following = left === undefined ? signal : AbortSignal.any([signal, left])
    const ended = await tasks
      .followTask(commandTaskId, { onProgress: reporterOf(context), signal: following })
      .catch((error: unknown) => {
        if (!following.aborted) throw error
        return undefined
      })
      .finally(onEnd)
    // The next process follows the command task.
    if (left?.aborted === true && !signal.aborted) await new Promise(() => undefined)
    if (signal.aborted) {
      await tasks.cancelTask(commandTaskId)
      throw new DOMException('The async task was ended first.', 'AbortError')
    }
    if (ended?.completedAt === undefined) throw lost(commandTaskId)
    const complete = completeMessage(ended)
    if (hasSucceeded(complete.status)) return outputOf(ended, complete)
    throw new Error(endText(ended, complete))
  }
  return { run, survivesHost: true, isUnique: true, foundAs: FOUND_AS }
}

const lost = (taskId: string): AgentTasksError =>
  new AgentTasksError(
    'INTERRUPTED',
    `The cluster does not have command task ${taskId} any more: it may have run, and its end is not known. Launch it again if its result is still needed.`,
  )

/**
 * Returns a `findRunner` for an `AsyncTaskManager` with a store. After a restart, tasks of `submit_commands` are followed again. `createAgentTasks` and
 * the MCP servers do this automatically.
 * @param tasks the command tasks of the cluster
 * @returns a function that finds the runner of `submit_commands` by its name
 */
export const findCommandRunner =
  (tasks: ClusterTasks): FindRunner =>
  (name) =>
    name === FOUND_AS ? commandRunner(tasks) : undefined

export async function submitToCluster(
  tasks: ClusterTasks,
  message: TaskSubmitMessage,
): Promise<CommandRun | SubmitRefusal> {
  const submitted = await tasks.submitTask(message)
  if ('error' in submitted) return submitted
  const { taskId: commandTaskId, queuePosition } = submitted
  const cancel = (): void => void tasks.cancelTask(commandTaskId)
  const abortController = new AbortController()
  const { signal } = abortController
  // A run that is aborted before it starts is never called, so the signal itself cancels the command task.
  signal.addEventListener('abort', cancel, { once: true })
  const stopListening = (): void => signal.removeEventListener('abort', cancel)
  // The id of the instance is only shown to the model, so a failed lookup is ignored.
  const task = await tasks.getTask(commandTaskId).catch(() => undefined)
  const instanceId = task?.instanceId ?? message.instanceId ?? 'of the cluster'
  return {
    commandTaskId,
    instanceId,
    queuePosition,
    abortController,
    context: { commandTaskId },
    runner: commandRunner(tasks, stopListening),
    abandon: () => {
      stopListening()
      cancel()
    },
  }
}
