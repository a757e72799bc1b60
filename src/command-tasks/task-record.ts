/** Command tasks as plain data: the messages about them and their summaries. */
import type {
  Task,
  TaskCommand,
  TaskCompleteMessage,
  TaskProgressMessage,
  TaskSummary,
} from '../protocol/command-tasks.js'

/** A task that has not ended. */
export type LiveTask = Extract<Task, { status: 'queued' | 'running' }>

/** A task that has ended. */
export type EndedTask = Exclude<Task, LiveTask>

/** The part of an ended task that its message has. */
type CompletedTask = TaskEnd & {
  readonly id: string
  readonly instanceId: string
  readonly commands: readonly TaskCommand[]
}

/** How and when a task has ended. */
export type TaskEnd = EndedTask extends infer T
  ? T extends EndedTask
    ? Pick<T, 'status' | 'completedAt' | 'duration' | 'error'>
    : never
  : never

/** The message about a command that has started, reported progress or ended. */
export function progressMessage(
  task: { readonly id: string; readonly instanceId: string; readonly commands: readonly TaskCommand[] },
  index: number,
  at: number,
  more?: Partial<TaskProgressMessage>,
): TaskProgressMessage {
  const command = task.commands[index]
  if (command === undefined) throw new RangeError(`task ${task.id} has no command ${index}`)
  const { id: commandId, status, tool_name, intention, result, error } = command
  return Object.freeze({
    type: 'task_progress',
    taskId: task.id,
    instanceId: task.instanceId,
    commandId,
    commandIndex: index,
    totalCommands: task.commands.length,
    status,
    timestamp: at,
    tool_name,
    intention,
    ...(result !== undefined && { result }),
    ...(error !== undefined && { error }),
    ...more,
  })
}

/** The message about the end of a task. */
export function completeMessage(task: CompletedTask): TaskCompleteMessage {
  const { id: taskId, instanceId, commands, completedAt, duration } = task
  const failedCommandIndex = commands.findIndex((command) => command.status === 'error')
  return Object.freeze({
    type: 'task_complete',
    taskId,
    instanceId,
    timestamp: completedAt,
    summary: Object.freeze({
      totalCommands: commands.length,
      successfulCommands: commands.filter((command) => command.status === 'success').length,
      ...(failedCommandIndex !== -1 && { failedCommandIndex }),
      duration,
    }),
    ...(task.status === 'completed' ? { status: task.status } : { status: task.status, error: task.error }),
    results: commands.map(({ id: commandId, status, result, error: failure }) => ({
      commandId,
      status,
      ...(result !== undefined && { result }),
      ...(failure !== undefined && { error: failure }),
    })),
  })
}

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
    createdAt,
    ...(startedAt !== undefined && { startedAt }),
    ...(completedAt !== undefined && { completedAt }),
  }
}
