/** The expected records and events of a task (S2, S7). */
import type {
  CommandError,
  EndStatus,
  Task,
  TaskCommand,
  TaskCompleteMessage,
  TaskProgressMessage,
  TaskSubmitMessage,
} from '../../../src/protocol/command-tasks.js'
import type { TaskProgress } from '../../../machines/records.js'

/** The record of a newly accepted task. */
export function acceptedTask(id: string, instanceId: string, message: TaskSubmitMessage, now: number): Task {
  return {
    id,
    instanceId,
    name: message.task_name,
    intention: message.task_intention ?? '',
    commands: message.commands.map(({ tool_name, intention = '', args = {}, timeout }, index) => ({
      id: `cmd_${index + 1}`,
      tool_name,
      intention,
      args,
      ...(timeout !== undefined && { timeout }),
      status: 'pending',
    })),
    status: 'queued',
    currentCommandIndex: 0,
    createdAt: now,
    ...(message.metadata !== undefined && { metadata: message.metadata }),
  }
}

/** The record with one command changed. */
export function changeCommand(task: Task, index: number, change: Partial<TaskCommand>): Task {
  return { ...task, commands: task.commands.map((one, at) => (at === index ? { ...one, ...change } : one)) }
}

export type TaskEnd =
  { readonly status: 'completed' } | { readonly status: 'failed' | 'cancelled'; readonly error: CommandError }

type EndedTask = Extract<Task, { status: EndStatus }>

/**
 * The record of an ended task. The first failure ends a task, so commands without an end were skipped; the one that was running has the
 * task's error.
 */
export function endTask(task: Task, end: TaskEnd, now: number, duration: number): EndedTask {
  const culprit = task.commands.find((command) => command.status === 'error')
  const { error: _, ...fields } = task
  const ended = {
    ...fields,
    completedAt: now,
    duration,
    commands: task.commands.map((command): TaskCommand => {
      if (command.status === 'pending') return { ...command, status: 'skipped' }
      if (command.status !== 'running') return command
      const { code, message } = end.status === 'completed' ? { code: '', message: '' } : end.error
      return { ...command, status: 'skipped', completedAt: now, ...(code !== '' && { error: { code, message } }) }
    }),
  }
  if (end.status === 'completed') return { ...ended, status: end.status }
  const error = { ...end.error, ...(culprit !== undefined && { commandId: culprit.id }) }
  return { ...ended, status: end.status, error }
}

/** The progress event of a command in its current state. */
export function progressOf(task: Task, index: number, now: number, report?: TaskProgress): TaskProgressMessage {
  const { id, status, tool_name, intention, result, error } = commandOf(task, index)
  return {
    type: 'task_progress',
    taskId: task.id,
    instanceId: task.instanceId,
    commandId: id,
    commandIndex: index,
    totalCommands: task.commands.length,
    status,
    timestamp: now,
    tool_name,
    intention,
    ...(result !== undefined && { result }),
    ...(error !== undefined && { error }),
    ...report,
  }
}

/** The complete event of an ended task. */
export function completeOf(task: EndedTask, now: number): TaskCompleteMessage {
  const { id, instanceId, commands, duration } = task
  const failed = commands.findIndex((command) => command.status === 'error')
  return {
    type: 'task_complete',
    taskId: id,
    instanceId,
    timestamp: now,
    summary: {
      totalCommands: commands.length,
      successfulCommands: commands.filter((command) => command.status === 'success').length,
      ...(failed >= 0 && { failedCommandIndex: failed }),
      duration,
    },
    ...(task.status === 'completed' ? { status: task.status } : { status: task.status, error: task.error }),
    results: commands.map((command) => ({
      commandId: command.id,
      status: command.status,
      ...(command.result !== undefined && { result: command.result }),
      ...(command.error !== undefined && { error: command.error }),
    })),
  }
}

/** @throws RangeError when the task has no such command */
export function commandOf(task: Task, index: number): TaskCommand {
  const command = task.commands[index]
  if (command === undefined) throw new RangeError(`task ${task.id} has no command ${index}`)
  return command
}
