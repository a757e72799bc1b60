/** Makes the messages about command tasks, and their summaries. */
import type { TaskProgress } from '../../machines/records.js'
import { omitUndefined } from '../data/omit-undefined.js'
import {
  countFinished,
  type Task,
  type TaskCommand,
  type TaskCompleteMessage,
  type TaskProgressMessage,
  type TaskSummary,
} from '../protocol/command-tasks.js'

export type LiveTask = Extract<Task, { status: 'queued' | 'running' }>

export type EndedTask = Exclude<Task, LiveTask>

interface DescribedTask {
  readonly id: string
  readonly instanceId: string
  readonly commands: readonly TaskCommand[]
}

export type TaskEnd = EndedTask extends infer T
  ? T extends EndedTask
    ? Pick<T, 'status' | 'completedAt' | 'duration' | 'error'>
    : never
  : never

/** The message about a command that has started, reported progress or ended. */
export function progressMessage(
  task: DescribedTask,
  index: number,
  timestamp: number,
  progress?: TaskProgress,
): TaskProgressMessage {
  const command = task.commands[index]
  if (command === undefined) throw new RangeError(`task ${task.id} has no command ${index}`)
  const { id: commandId, status, tool_name, intention, result, error } = command
  const message: Writable<TaskProgressMessage> = {
    type: 'task_progress',
    taskId: task.id,
    instanceId: task.instanceId,
    commandId,
    commandIndex: index,
    totalCommands: task.commands.length,
    status,
    timestamp,
    tool_name,
    intention,
  }
  if (result !== undefined) message.result = result
  if (error !== undefined) message.error = error
  if (progress !== undefined) {
    // Copied field by field: a tool may report any object, and its fields must not overwrite those of the message.
    message.progress = progress.progress
    if (progress.total !== undefined) message.total = progress.total
    if (progress.message !== undefined) message.message = progress.message
  }
  return Object.freeze(message)
}

export function completeMessage(task: DescribedTask & TaskEnd): TaskCompleteMessage {
  const { id: taskId, instanceId, commands, completedAt, duration } = task
  const failedCommandIndex = commands.findIndex((command) => command.status === 'error')
  return Object.freeze({
    type: 'task_complete',
    taskId,
    instanceId,
    timestamp: completedAt,
    summary: Object.freeze({
      totalCommands: commands.length,
      successfulCommands: commands.reduce((count, { status }) => (status === 'success' ? count + 1 : count), 0),
      ...(failedCommandIndex !== -1 && { failedCommandIndex }),
      duration,
    }),
    ...(task.status === 'completed' ? { status: task.status } : { status: task.status, error: task.error }),
    results: commands.map(({ id: commandId, status, result, error }) => {
      const outcome: Writable<TaskCompleteMessage['results'][number]> = { commandId, status }
      if (result !== undefined) outcome.result = result
      if (error !== undefined) outcome.error = error
      return outcome
    }),
  })
}

/** The message type without `readonly`, for construction. */
type Writable<T> = { -readonly [Key in keyof T]: T[Key] }

/** A task without its commands. */
export function summaryOf(task: Task): TaskSummary {
  const { id, name, intention, status, instanceId, currentCommandIndex, createdAt, startedAt, completedAt, commands } =
    task
  return {
    id,
    name,
    intention,
    status,
    instanceId,
    currentCommandIndex,
    totalCommands: commands.length,
    finishedCommands: countFinished(commands),
    createdAt,
    ...omitUndefined({ startedAt, completedAt }),
  }
}
