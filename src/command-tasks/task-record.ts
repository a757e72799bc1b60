/**
 * A task as it is kept and handed out, and what its changes tell. Every change makes a new frozen record (S2). Where a copy gets fields that
 * its original lacks, they come first or by `Object.assign`: one that is given more fields after a spread takes ten times as long.
 */
import type { CommandTaskEnd } from '../../machines/command-task.js'
import type {
  Task,
  TaskCommand,
  TaskCompleteMessage,
  TaskProgressMessage,
  TaskSummary,
} from '../protocol/command-tasks.js'

const freezeTask = <T extends Task>(task: T): T => Object.freeze(task)

/** A task that has not ended. */
export type LiveTask = Extract<Task, { status: 'queued' | 'running' }>

/** A task that has ended. */
export type EndedTask = Exclude<Task, LiveTask>

/** Whether a task has not ended. */
export const isLive = (task: Task): task is LiveTask => task.status === 'queued' || task.status === 'running'

/**
 * Changes one command of a task.
 * @param currentCommandIndex the command that the task has come to
 */
export function withCommand(
  task: Task,
  index: number,
  change: Partial<TaskCommand>,
  currentCommandIndex = task.currentCommandIndex,
): Task {
  const commands = task.commands.map((command, at) =>
    at === index ? Object.freeze(Object.assign({}, command, change)) : command,
  )
  return freezeTask({ ...task, currentCommandIndex, commands: Object.freeze(commands) as TaskCommand[] })
}

/** The task has been taken from its lane. */
export function startedTask(task: LiveTask, at: number): Task {
  return freezeTask({ startedAt: at, ...task, status: 'running' })
}

/**
 * The task has ended: whatever had not been told of a command by then is skipped, the command in flight included, unless it is what
 * failed.
 */
export function endedTask(task: LiveTask, end: CommandTaskEnd, at: number): EndedTask {
  const commands = task.commands.map((command) =>
    command.status === 'pending' || command.status === 'running'
      ? Object.freeze({
          ...(command.status === 'running' && { completedAt: at }),
          ...command,
          status: 'skipped' as const,
        })
      : command,
  )
  const failed = task.commands.find((command) => command.status === 'error')
  const ended = { completedAt: at, ...task, commands: Object.freeze(commands) as TaskCommand[] }
  if (end.status === 'completed') return freezeTask({ ...ended, status: end.status })
  const error = Object.freeze({ ...(failed && { commandId: failed.id }), ...end.error })
  return freezeTask({ error, ...ended, status: end.status })
}

/** What is told when a command starts, reports or ends. */
export function progressMessage(
  task: Task,
  index: number,
  at: number,
  more: Partial<TaskProgressMessage> = {},
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

/** What is told once, at the end. */
export function completeMessage(task: EndedTask): TaskCompleteMessage {
  const { id: taskId, instanceId, commands, startedAt, completedAt } = task
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
      duration: startedAt === undefined ? 0 : Math.max(0, completedAt - startedAt),
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
