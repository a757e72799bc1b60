/** A task of either kind, in the form in which the commands of `agent-tasks tasks` list and print it. */
import { hasEnded, STATUSES, type AsyncTaskStatus } from '../../../machines/task-status.js'
import { countFinished, type Task, type TaskSummary } from '../../protocol/command-tasks.js'
import type { StoredTask } from '../../store/store.js'
import type { PageTask, PageTaskState } from '../../page/wire.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { formatAge, formatTable, oneLine } from '../table.js'

/** States that a list shows instead of the status. `interrupted`: the host of the task has ended. */
const STATE_TABLE = {
  asking: true,
  wrapping: true,
  stopping: true,
  'timed-out': true,
  interrupted: true,
} satisfies Record<Exclude<PageTaskState, AsyncTaskStatus> | 'interrupted', true>

export type TaskState = keyof typeof STATE_TABLE

export const STATES = Object.keys(STATE_TABLE) as TaskState[]

export interface TaskRef {
  readonly task_id: string
  readonly kind: 'async' | 'command'
}

/** A task as a line of `--json`. Times are in ms since the epoch. */
export interface ListedTask extends TaskRef {
  readonly status: AsyncTaskStatus
  /** A state that says more than the status, such as `asking`. */
  readonly state?: TaskState
  readonly subagent?: string
  readonly goal?: string
  readonly owner?: string
  readonly delivery?: string
  /** The name of a command task. Only command tasks have this field and the next five. */
  readonly name?: string
  readonly intention?: string
  readonly instanceId?: string
  readonly currentCommandIndex?: number
  readonly totalCommands?: number
  /** How many commands have succeeded or failed. */
  readonly finishedCommands?: number
  readonly createdAt: number
  readonly startedAt?: number
  readonly completedAt?: number
  readonly error?: string
  /** How long the program of an ended task may take to end, in ms, while it is being stopped. */
  readonly stopsWithinMs?: number
  /** The code of the error, if the source of the task provides the code. */
  readonly errorCode?: string
  /** Why the task was cancelled, if somebody has said so. */
  readonly cancelReason?: string
}

export function fromSummary({ id, startedAt, completedAt, finishedCommands, ...task }: TaskSummary): ListedTask {
  return { task_id: id, kind: 'command', ...task, ...omitUndefined({ startedAt, completedAt, finishedCommands }) }
}

export function fromPage(task: PageTask): ListedTask {
  const { id, kind, title, group, subagent, state, createdAt, startedAt, endedAt, delivery, error } = task
  const { commands = [], commandCount, stopsWithinMs } = task
  const status = statusOf(state)
  const finished = commands.filter((command) => command.state === 'completed' || command.state === 'failed').length
  // A page lists only the first commands of a long task.
  const isWhole = commands.length === commandCount
  return {
    task_id: id,
    kind,
    status,
    ...omitUndefined({ state: stopsWithinMs === undefined ? STATES.find((more) => more === state) : 'stopping' }),
    ...(kind === 'async' ? { goal: title, owner: group } : { name: title, instanceId: group }),
    ...omitUndefined({ subagent, delivery, totalCommands: commandCount }),
    ...(isWhole && { currentCommandIndex: finished, finishedCommands: finished }),
    createdAt,
    ...omitUndefined({ startedAt, completedAt: endedAt, error, stopsWithinMs }),
  }
}

export function fromStore({ id, owner, status, delivery, launchedAt, completedAt, record }: StoredTask): ListedTask {
  return {
    task_id: id,
    kind: 'async',
    status,
    owner,
    delivery,
    createdAt: launchedAt,
    ...omitUndefined({
      completedAt,
      subagent: textOf(record['subagentName']),
      goal: textOf(record['goalPrompt']),
      error: textOf(record['error']),
      errorCode: textOf(record['errorCode']),
      cancelReason: textOf(record['cancelReason']),
    }),
  }
}

export function fromTask({ commands, error, ...task }: Task): ListedTask {
  const { id, name, instanceId, status, currentCommandIndex, createdAt, startedAt, completedAt } = task
  return {
    task_id: id,
    kind: 'command',
    status,
    name,
    instanceId,
    currentCommandIndex,
    totalCommands: commands.length,
    finishedCommands: countFinished(commands),
    createdAt,
    ...omitUndefined({ startedAt, completedAt, error: error?.message, errorCode: error?.code }),
  }
}

/** Converts a state of the page to a status. For example, a task that asks a question is running. */
function statusOf(state: string): AsyncTaskStatus {
  if (state === 'timed-out') return 'failed'
  return STATUSES.find((status) => status === state) ?? 'running'
}

/** Marks a task of a store whose host has ended as interrupted, unless the task had ended or had not started. */
export const interrupted = <Task extends ListedTask>(task: Task): Task =>
  task.status === 'running' ? { ...task, state: 'interrupted' } : task

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

export const isOver = ({ status }: ListedTask): boolean => hasEnded(status)

/** The number of finished commands and of all commands, such as `1/2`; an empty text for an async task. */
export function doneText({
  status,
  finishedCommands,
  currentCommandIndex: index,
  totalCommands: total,
}: ListedTask): string {
  if (total === undefined) return ''
  if (status === 'completed') return `${total}/${total}`
  // An earlier version of the server sends only the index of the current command.
  const finished = finishedCommands ?? index
  return `${finished === undefined ? '?' : Math.min(finished, total)}/${total}`
}

/** The lines of a table. If there are only command tasks, the table has columns for these. */
export function taskTable(tasks: readonly ListedTask[]): string[] {
  if (tasks.every(({ kind }) => kind === 'command')) {
    const rows = tasks.map((task) => [
      task.task_id,
      task.state ?? task.status,
      doneText(task),
      oneLine(task.instanceId ?? '', 40),
      formatAge(task.createdAt),
      oneLine(task.name ?? '', 60),
    ])
    return formatTable(['ID', 'STATUS', 'DONE', 'INSTANCE', 'AGE', 'NAME'], rows)
  }
  const rows = tasks.map((task) => [
    oneLine(task.task_id, 60),
    task.state ?? task.status,
    task.kind === 'command' ? `(commands ${doneText(task)})` : oneLine(task.subagent ?? '', 30),
    oneLine(task.owner ?? task.instanceId ?? '', 30),
    task.delivery ?? '',
    formatAge(task.createdAt),
    oneLine(task.goal ?? task.name ?? '', 60),
  ])
  return formatTable(['TASK', 'STATUS', 'SUBAGENT', 'OWNER', 'DELIVERY', 'AGE', 'GOAL'], rows)
}
