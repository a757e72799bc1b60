/** Converts command tasks to fields of a hash in Redis, and back. The start or end of a command writes one field instead of the whole task. */
import { createActor } from 'xstate'
import { commandTaskMachine } from '../../../machines/command-task.js'
import { CommandTask, type SubmittedTask } from '../../command-tasks/command-task.js'
import { UNLIMITED } from '../../command-tasks/task-bytes.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import {
  countFinished,
  type Task,
  type TaskCommand,
  type TaskCompleteMessage,
  type TaskSummary,
} from '../../protocol/command-tasks.js'
import { toPlainData } from '../../data/plain-data.js'

/** The fields of a Redis hash. */
export type Fields = Readonly<Record<string, string>>

export interface ClusterTask {
  readonly task: Task
  readonly submitted: SubmittedTask
  /** The number of the task in the order of submission, from 1. */
  readonly place: number
  /** The sequence number of the last event. */
  readonly seq: number
  /** The reason of a requested cancellation, or undefined if nobody has asked to cancel the task. */
  readonly cancel: string | undefined
}

export const submissionField = ({
  name,
  intention,
  commands,
  metadata,
}: Omit<SubmittedTask, 'id' | 'createdAt'>): string =>
  JSON.stringify({ name, intention, commands, ...omitUndefined({ metadata }) })

/** The part of a submission that lists of tasks show, as JSON. */
export const summaryField = ({
  name,
  intention,
  commands,
}: Pick<SubmittedTask, 'name' | 'intention' | 'commands'>): string =>
  JSON.stringify({ name, intention, totalCommands: commands.length })

/** The fields that `toSummary` reads, in this order. */
export const SUMMARY_FIELDS = [
  'summary',
  'status',
  'instanceId',
  'index',
  'createdAt',
  'startedAt',
  'completedAt',
  'place',
  'finished',
]

/** Reads the summary of a task, without its commands. Returns undefined when the task does not exist. */
export function toSummary(id: string, values: readonly (string | null)[]): TaskSummary | undefined {
  const [summary, status, instanceId, index, createdAt, startedAt, completedAt, , finished] = values
  if (summary === null || summary === undefined) return undefined
  return {
    id,
    ...(JSON.parse(summary) as Pick<TaskSummary, 'name' | 'intention' | 'totalCommands'>),
    status: status as TaskSummary['status'],
    instanceId: instanceId ?? '',
    currentCommandIndex: Number(index),
    ...(typeof finished === 'string' && { finishedCommands: Number(finished) }),
    createdAt: Number(createdAt),
    ...(typeof startedAt === 'string' && { startedAt: Number(startedAt) }),
    ...(typeof completedAt === 'string' && { completedAt: Number(completedAt) }),
  }
}

/** Reads a task from its hash. Returns undefined when the task does not exist. */
export function toTask(id: string, fields: Fields): ClusterTask | undefined {
  const { record, instanceId = '', status, startedAt, completedAt, duration, error, cancel } = fields
  if (record === undefined) return undefined
  const submitted = {
    ...(toPlainData(JSON.parse(record)) as Omit<SubmittedTask, 'id' | 'createdAt'>),
    id,
    createdAt: Number(fields['createdAt']),
  }
  const commands = submitted.commands.map((command, index): TaskCommand => {
    const outcome = fields[`c${index}`]
    if (outcome !== undefined) return { ...command, ...(toPlainData(JSON.parse(outcome)) as Partial<TaskCommand>) }
    return completedAt === undefined ? command : { ...command, status: 'skipped' }
  })
  const task = {
    ...submitted,
    instanceId,
    commands,
    status,
    currentCommandIndex: Number(fields['index']),
    ...(startedAt !== undefined && { startedAt: Number(startedAt) }),
    ...(completedAt !== undefined && { completedAt: Number(completedAt), duration: Number(duration) }),
    ...(error !== undefined && { error: JSON.parse(error) as unknown }),
  } as Task
  return { task, submitted, place: Number(fields['place']), seq: Number(fields['seq']), cancel }
}

export function commandField({ commands }: Task, index: number): Fields {
  const { status, startedAt, completedAt, result, error } = commands[index] ?? {}
  return { [`c${index}`]: JSON.stringify({ status, startedAt, completedAt, result, error }) }
}

/** The fields with the state of a task, without its commands. */
export const statusFields = ({
  status,
  startedAt,
  completedAt,
  duration,
  error,
  currentCommandIndex,
  commands,
}: Task): Fields => ({
  status,
  index: String(currentCommandIndex),
  finished: String(countFinished(commands)),
  ...(startedAt !== undefined && { startedAt: String(startedAt) }),
  ...(completedAt !== undefined && { completedAt: String(completedAt), duration: String(duration) }),
  ...(error !== undefined && { error: JSON.stringify(error) }),
})

/** The fields of a task that has ended. They include the commands that were running when the task ended, because their status has changed to skipped. */
export const endFields = (task: Task): Fields => ({
  ...statusFields(task),
  ...Object.fromEntries(
    task.commands.flatMap(({ status, completedAt }, index) =>
      status === 'skipped' && completedAt !== undefined ? Object.entries(commandField(task, index)) : [],
    ),
  ),
})

/** Ends a task that is not running. It uses the same state machine as a running task. */
export function endTask(
  { task, submitted, place }: ClusterTask,
  end: (task: CommandTask) => void,
  now: number,
): { readonly task: Task; readonly message: TaskCompleteMessage } {
  // The task may have been started by another node whose clock is ahead. The end must not be earlier than the start.
  const at = Math.max(now, task.startedAt ?? task.createdAt)
  const ref = createActor(commandTaskMachine, { input: { totalCommands: submitted.commands.length } }).start()
  let message: TaskCompleteMessage | undefined
  const origin = { instanceId: task.instanceId, place, restored: task, bytes: 0 }
  const ended = new CommandTask(submitted, origin, ref, {
    budget: UNLIMITED,
    now: () => at,
    elapsed: () => at,
    emit: (emitted) => {
      if (emitted.type === 'task_complete') message = emitted
    },
    onChange: () => undefined,
  })
  end(ended)
  ref.stop()
  if (message === undefined) throw new Error(`Task ${task.id} did not end.`)
  return { task: ended.record, message }
}
