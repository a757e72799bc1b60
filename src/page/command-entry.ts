/** A command task in the journal. */
import { statusText, type Task, type TaskCommand } from '../protocol/command-tasks.js'
import { asyncKey } from './async-entry.js'
import type { JournalEntry } from './journal.js'
import { Allowance, type KeptValue } from './kept-values.js'
import { rowText } from './texts.js'
import type { CommandBar, PageTask, PageTaskState } from './wire.js'

/** A command of an ended task. */
export interface KeptCommand extends CommandBar {
  /** The whole name. */
  readonly toolName: string
  readonly intention: string
  readonly timeout?: number | undefined
  readonly args: KeptValue
  readonly result?: KeptValue
  readonly error?: string
}

/** How many commands a row has. */
const ROW_COMMANDS = 20

type Row = Omit<PageTask, 'seq' | 'marks' | 'key' | 'kind' | 'state'>

export class CommandEntry implements JournalEntry {
  readonly kind = 'command'
  readonly key: string
  isEnded = false
  state: PageTaskState
  heldBytes = 0
  progress: PageTask['progress'] | undefined
  /** The commands of an ended task. */
  kept: readonly KeptCommand[] | undefined
  readonly id: string
  readonly instanceId: string
  readonly name: string
  readonly intention: string
  readonly #find: (id: string) => Task | undefined
  #last: Row | undefined

  constructor(task: Task, find: (id: string) => Task | undefined) {
    this.id = task.id
    this.key = commandKey(task.id)
    this.state = commandState(task)
    this.instanceId = task.instanceId
    this.name = task.name
    this.intention = task.intention
    this.#find = find
  }

  /** Keeps what the task manager may forget. */
  keep(task: Task, maxBytes: number): void {
    const room = new Allowance(maxBytes)
    this.#last = rowOf(task, undefined)
    this.kept = task.commands.map((command): KeptCommand => {
      const { intention, timeout, args, result, error } = command
      return {
        ...barOf(command),
        ...{ toolName: command.tool_name, intention: room.keepText(intention), timeout, args: room.keep(args) },
        ...(result !== undefined && { result: room.keep(result) }),
        ...(error !== undefined && { error: room.keepText(error.message) }),
      }
    })
    this.heldBytes = room.used + COMMAND_BYTES * this.kept.length
  }

  row(): Row {
    if (this.isEnded && this.#last !== undefined) return this.#last
    const task = this.#find(this.id)
    if (task !== undefined) this.#last = rowOf(task, this.progress)
    return this.#last ?? { id: this.id, title: '', group: this.instanceId, createdAt: 0 }
  }
}

const COMMAND_BYTES = 300

export const commandKey = (id: string): string => `command:${id}`

const barStates = {
  pending: 'waiting',
  running: 'running',
  success: 'completed',
  error: 'failed',
  skipped: 'skipped',
} as const

/** A command that was given up while it ran has an error; one that has never started has none. */
export function barState(status: TaskCommand['status'], error: TaskCommand['error']): CommandBar['state'] {
  if (status !== 'skipped' || error === undefined) return barStates[status]
  return statusText(status, error) === 'cancelled' ? 'cancelled' : 'failed'
}

export function barOf({ tool_name, status, startedAt, completedAt, error }: TaskCommand): CommandBar {
  return {
    tool: rowText(tool_name),
    state: barState(status, error),
    ...(startedAt !== undefined && { startedAt }),
    ...(completedAt !== undefined && { endedAt: completedAt }),
  }
}

function rowOf(task: Task, progress: PageTask['progress'] | undefined): Row {
  const { id, name, commands, instanceId, createdAt, startedAt, completedAt, error, metadata } = task
  const parentId = metadata?.['asyncTaskId']
  return {
    id,
    title: rowText(name),
    group: instanceId,
    createdAt,
    ...(startedAt !== undefined && { startedAt }),
    ...(completedAt !== undefined && { endedAt: completedAt }),
    ...(typeof parentId === 'string' && { parentKey: asyncKey(parentId) }),
    ...(progress !== undefined && { progress }),
    commands: commands.slice(0, ROW_COMMANDS).map(barOf),
    commandCount: commands.length,
    ...(error !== undefined && { error: rowText(error.message) }),
  }
}

export function commandState({ status, error }: Task): PageTaskState {
  return status === 'failed' && error.code === 'COMMAND_TIMEOUT' ? 'timed-out' : status
}
